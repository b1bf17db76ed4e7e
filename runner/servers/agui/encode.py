"""Events as server-sent ones, each with the number under which its reader goes on after it."""

from __future__ import annotations

import json

from ag_ui.core import BaseEvent


def encoded(event: BaseEvent, number: int | None) -> str:
    """One event as text. `number`: None for one after which nobody can go on."""
    head = "" if number is None else f"id: {number}\n"
    return f"{head}data: {_json(event)}\n\n"


def _json(event: BaseEvent) -> str:
    try:
        return event.model_dump_json(by_alias=True)
    except ValueError:  # half of a surrogate pair in what a model said: JSON can escape it, UTF-8 can't hold it
        return json.dumps(event.model_dump(by_alias=True, mode="python"), ensure_ascii=True, default=str)
