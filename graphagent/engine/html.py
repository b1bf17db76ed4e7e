"""A result as a small HTML table, for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic_core import to_json

from graphagent.graph.view import values_of

if TYPE_CHECKING:
    from graphagent.engine.result import RunResult

LONGEST = 200
"""Characters of a value that are shown."""


def table(result: RunResult) -> str:
    """The result as a table: how the run ended and why, what it waits for, the fields of its state."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in _rows(result)
    )
    return f"<table><caption>graphagent run {escape(result.lineage)}</caption>{rows}</table>"


def _rows(result: RunResult) -> Iterator[tuple[str, str]]:
    yield "status", result.status
    if result.reason and result.reason != result.status:
        yield "why", result.reason
    yield "steps", str(result.steps)
    if result.checkpoint is not None:
        yield "checkpoint", result.checkpoint
    for asked in result.interrupts:
        yield f"waits for {asked.key}", _short(asked.prompt)
    for warning in result.warnings:
        yield "warning", warning
    for name, value in values_of(result.state).items():
        yield f"state.{name}", _short(value)


def _short(value: Any) -> str:
    if isinstance(value, SecretStr | SecretBytes):
        return "**********"
    text = value if isinstance(value, str) else to_json(value, fallback=_told, inf_nan_mode="strings").decode()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"


def _told(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else str(value)
