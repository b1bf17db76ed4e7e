"""The secrets of a state as texts, and texts without them: what is shown to people never has them in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import BaseModel

from graphagent.graph.schema import StateSchema

MASK = "**********"
"""What is shown in place of a secret."""


def secrets_of(schema: StateSchema, values: Mapping[str, Any]) -> frozenset[str]:
    """The secrets in the fields that declare to have some, as texts."""
    found = (text for name in schema.secret if name in values for text in _texts(values[name]))
    return frozenset(text for text in found if text)


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text with `MASK` in place of each secret; longer ones first, since one may be a part of another."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def masked_data(value: Any, secrets: Iterable[str]) -> Any:
    """Plain data with `masked` texts in it, at every depth."""
    if isinstance(value, str):
        return masked(value, secrets)
    if isinstance(value, Mapping):
        return {masked(str(key), secrets): masked_data(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked_data(item, secrets) for item in value]
    return value


def _texts(value: Any) -> Iterator[str]:
    """The secrets inside a value, at every depth."""
    if hasattr(value, "get_secret_value"):
        inner = value.get_secret_value()
        yield inner.decode(errors="replace") if isinstance(inner, bytes) else str(inner)
    elif isinstance(value, BaseModel):
        yield from _texts(list(value.__dict__.values()))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _texts([getattr(value, one.name) for one in fields(value)])
    elif isinstance(value, Mapping):
        yield from _texts([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _texts(item)
