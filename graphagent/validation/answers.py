"""JSON schemas of answers: whether what one accepts another accepts too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NOTES = ("title", "description", "examples", "default", "$comment")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_SHAPE = ("type", "items", "properties", "required", "additionalProperties", "enum", "const", "anyOf")


def accepts(new: Any, old: Any) -> bool:
    """Whether `new` takes every answer that `old` takes. None, and a schema that says nothing, take anything.

    False where it can't be told: a keyword that is not understood must be the same in both.
    """
    new, old = _bare(new), _bare(old)
    if not new or new == old:
        return True
    if not old:
        return False
    if "anyOf" in old:
        return all(accepts(new, arm) for arm in old["anyOf"])
    values = old.get("enum", [old["const"]] if "const" in old else None)
    if values is not None:
        return all(_takes(new, value) for value in values)
    if "anyOf" in new:
        return any(accepts(arm, old) for arm in new["anyOf"])
    if "enum" in new or "const" in new:
        return False
    return _type_covers(new, old) and _bounds_cover(new, old) and _contents_cover(new, old)


def _bare(schema: Any) -> dict[str, Any]:
    return {word: value for word, value in schema.items() if word not in _NOTES} if isinstance(schema, Mapping) else {}


def _takes(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether one value is accepted."""
    if not schema:
        return True
    if "anyOf" in schema:
        return any(_takes(_bare(arm), value) for arm in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        listed = schema.get("enum", [schema.get("const")])
        return any(type(item) is type(value) and item == value for item in listed)
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
    own = {"const": value, "type": kinds.get(type(value), "object")}
    return set(schema) <= {"type"} and _type_covers(schema, own)


def _type_covers(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    if "type" not in new:
        return True
    wanted, given = (_listed(schema.get("type", [])) for schema in (new, old))
    if "number" in wanted:
        wanted = [*wanted, "integer"]
    return bool(given) and set(given) <= set(wanted)


def _listed(kinds: Any) -> list[str]:
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _bounds_cover(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    lower = all(word in old and old[word] >= new[word] for word in _LOWER if word in new)
    upper = all(word in old and old[word] <= new[word] for word in _UPPER if word in new)
    known = {*_LOWER, *_UPPER, *_SHAPE}
    return lower and upper and all(old.get(word) == value for word, value in new.items() if word not in known)


def _contents_cover(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    if "items" in new and not accepts(new["items"], old.get("items")):
        return False
    have, want = old.get("properties", {}), new.get("properties", {})
    if not set(new.get("required", ())) <= set(old.get("required", ())):
        return False
    closed = old.get("additionalProperties") is False and set(have) <= set(want)
    if new.get("additionalProperties") is False and not closed:
        return False
    return all(accepts(schema, have[name]) for name, schema in want.items() if name in have)
