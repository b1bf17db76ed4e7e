"""Plain data: what JSON holds and gives back equal. Services keep nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from graphagent.errors import ServiceError

_SCALARS = (int, bool, type(None))


def plain(value: Any, path: str) -> Any:
    """A copy of a value made of dicts, lists, texts, numbers, booleans and None; tuples become lists.

    Raises ServiceError for anything else, saying where it is: it would come back as something else.
    """
    kind = type(value)
    if kind is str:
        if not value.isprintable() and any("\ud800" <= char <= "\udfff" for char in value):
            raise ServiceError(f"{path} has a text with a lone surrogate, which is no character; take it out")
        return value
    if kind in _SCALARS:
        return value
    if kind is float:
        if math.isfinite(value):
            return value
        raise ServiceError(f"{path} is {value!r}, which JSON doesn't know; store None or a text")
    if kind is list or kind is tuple:
        return [plain(item, f"{path}[{place}]") for place, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if type(key) is not str:
                raise ServiceError(f"{path} has the key {key!r}, but JSON has texts for keys only; use '{key}'")
        return {plain(key, path): plain(item, f"{path}[{key!r}]") for key, item in value.items()}
    hint = "; store `.model_dump(mode='json')` of it" if hasattr(value, "model_dump") else ""
    raise ServiceError(f"{path} is a '{kind.__name__}', but services keep plain JSON data only{hint}")


def copied(value: Any) -> Any:
    """A copy of plain data that shares no list or dict with it."""
    kind = type(value)
    if kind is dict:
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if kind is list else value


def dumps(value: Any, path: str) -> str:
    """Plain data as JSON. Raises ServiceError (see `plain`)."""
    return json.dumps(plain(value, path), ensure_ascii=False, separators=(",", ":"))


def loads(text: str) -> Any:
    """What `dumps` was given."""
    return json.loads(text)
