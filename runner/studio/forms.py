"""Forms made from a JSON schema, as values: which fields there are, and what the entries of a person amount to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from pydantic import ValidationError

from graphagent.engine.questions import adapter_of, type_of
from graphagent.errors import UsageError
from graphagent.unset import UNSET

Kind = Literal["bool", "choice", "text", "secret", "integer", "number", "object", "json"]
"""How a field is entered. `object`: by fields of its own; `json`: as text, whatever no other kind is for."""
Entry: TypeAlias = str | bool | int | None
"""What was entered: a text, True or False of a `bool`, the place of a `choice`; None if nothing was."""
Path = tuple[str, ...]

_DEEPEST = 4
_WHOLE = re.compile(r"[+-]?\d+")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form. `path`: of names from the outside in, empty for the whole answer. `required`: it may not be
    left out; `nullable`: it may be null, which it is if it is left out all the same. `default`: UNSET if there is none.
    """

    path: Path
    kind: Kind
    schema: Any
    label: str = ""
    help: str = ""
    required: bool = True
    nullable: bool = False
    choices: tuple[Any, ...] = ()
    fields: tuple[Field, ...] = ()
    default: Any = UNSET

    @property
    def leaves(self) -> Iterator[Field]:
        """The fields that something is entered in, in order."""
        if self.kind != "object":
            yield self
        for one in self.fields:
            yield from one.leaves


class FormError(UsageError):
    """Entries that are no answer. `problems`: by the path of the field."""

    def __init__(self, problems: Mapping[Path, str]) -> None:
        self.problems = dict(problems)
        super().__init__("; ".join(f"{'.'.join(path) or 'the answer'}: {text}" for path, text in problems.items()))


def form_of(schema: Any) -> Field:
    """The form for what a JSON schema describes; None for anything."""
    return _field(schema, (), schema if isinstance(schema, Mapping) else {}, required=True)


def entries_of(form: Field, value: Any) -> dict[Path, Entry]:
    """The entries that amount to a value; UNSET for those that the form begins with."""
    found: dict[Path, Entry] = {}
    for one in form.leaves:
        inner = _at(value, one.path[len(form.path) :])
        inner = one.default if inner is UNSET else inner
        found[one.path] = None if inner is UNSET else _entry(one, inner)
    return found


def value_of(form: Field, entries: Mapping[Path, Entry]) -> Any:
    """What the entries amount to, as plain data. Raises FormError with everything that is wrong."""
    problems: dict[Path, str] = {}
    value = _value(form, entries, problems)
    if value is UNSET and not problems:
        problems[form.path] = "this is needed"
    if problems:
        raise FormError(problems)
    return value


def _field(schema: Any, path: Path, root: Mapping[str, Any], *, required: bool, depth: int = 0) -> Field:
    """The field for a part of a schema."""
    if not isinstance(schema, Mapping):
        return Field(path, "json", None, path[-1] if path else "", required=required)
    schema, nullable = _simple(schema, root)
    label = str(schema.get("title") or (path[-1].replace("_", " ") if path else ""))
    made = Field(path, "json", schema, label, str(schema.get("description") or ""), required, nullable)
    made = replace(made, default=schema.get("default", UNSET))
    kind = schema.get("type")
    if "const" in schema:
        return replace(made, kind="choice", choices=(schema["const"],), default=schema["const"])
    if "enum" in schema:
        return replace(made, kind="choice", choices=tuple(schema["enum"]))
    if kind == "string":
        hidden = schema.get("writeOnly") is True or schema.get("format") == "password"
        return replace(made, kind="secret" if hidden else "text")
    if kind in ("boolean", "integer", "number"):
        return replace(made, kind="bool" if kind == "boolean" else kind)
    inside = schema.get("properties")
    if kind == "object" and isinstance(inside, Mapping) and inside and depth < _DEEPEST:
        needed = set(schema.get("required", ()))
        fields = tuple(
            _field(part, (*path, name), root, required=name in needed, depth=depth + 1) for name, part in inside.items()
        )
        return replace(made, kind="object", fields=fields)
    return made


def _simple(schema: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """A schema without references, and without the alternative null; whether it had that."""
    nullable = False
    for _ in range(8):
        if isinstance(schema.get("$ref"), str):
            target: Any = root
            for part in schema["$ref"].removeprefix("#/").split("/"):
                target = target.get(part, {}) if isinstance(target, Mapping) else {}
            schema = {**target, **{name: part for name, part in schema.items() if name != "$ref"}}
        elif len(schema.get("allOf", ())) == 1:
            schema = {**schema["allOf"][0], **{name: part for name, part in schema.items() if name != "allOf"}}
        elif "anyOf" in schema:
            parts = [part for part in schema["anyOf"] if part != {"type": "null"}]
            nullable = nullable or len(parts) < len(schema["anyOf"])
            rest = {name: part for name, part in schema.items() if name != "anyOf"}
            if parts and isinstance(parts[0], Mapping) and parts[0].get("type") == "boolean":
                parts = parts[:1]  # yes or no, where more could be said too: an approval
            if len(parts) != 1 or not isinstance(parts[0], Mapping):
                return {**rest, "anyOf": parts}, nullable
            schema = {**parts[0], **rest}
        else:
            break
    if "enum" in schema and None in schema["enum"]:
        return {**schema, "enum": [one for one in schema["enum"] if one is not None]}, True
    return schema, nullable


def _at(value: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return UNSET
        value = value[name]
    return value


def _entry(form: Field, value: Any) -> Entry:
    """What is entered for a value."""
    if value is None and (form.nullable or form.kind != "json"):
        return None
    if form.kind == "choice":
        texts = [json.dumps(one) for one in form.choices]
        told = json.dumps(value)
        return texts.index(told) if told in texts else None
    if form.kind in ("bool", "text", "secret"):
        return value if isinstance(value, bool | str) else None
    if form.kind in ("integer", "number"):
        return json.dumps(value)
    return json.dumps(value, ensure_ascii=False, indent=2)


def _value(form: Field, entries: Mapping[Path, Entry], problems: dict[Path, str]) -> Any:
    """The value of a field, UNSET if it is left out; what is wrong is put into `problems`."""
    if form.kind == "object":
        if not form.required and all(entries.get(one.path) is None for one in form.leaves):
            return None if form.nullable else UNSET
        inside = {one.path[-1]: _value(one, entries, problems) for one in form.fields}
        return {name: value for name, value in inside.items() if value is not UNSET}
    entry = entries.get(form.path)
    if entry is None or (entry == "" and form.kind not in ("text", "secret")):
        if form.nullable:
            return None
        if form.required:
            problems[form.path] = "this is needed"
        return UNSET
    try:
        value = _read(form, entry)
        adapter_of(type_of(form.schema)).validate_python(value)
    except ValidationError as error:
        problems[form.path] = error.errors(include_url=False)[0]["msg"]
        return UNSET
    except ValueError as error:
        problems[form.path] = str(error)
        return UNSET
    return value


def _read(form: Field, entry: str | bool | int) -> Any:
    """The value of an entry. Raises ValueError with what is wrong."""
    if form.kind == "choice":
        return form.choices[int(entry)]
    if form.kind in ("bool", "text", "secret"):
        return entry
    text = str(entry).strip()
    if form.kind == "integer":
        if _WHOLE.fullmatch(text) is None:
            raise ValueError(f"'{text}' is no whole number")
        return int(text)
    if form.kind == "number":
        return _number(text)
    try:
        return read_json(text)
    except ValueError:
        if form.schema is None:  # anything goes, so a text that is no JSON is meant as it stands
            return str(entry)
        raise


def read_json(text: str) -> Any:
    """What a text says in JSON. Raises ValueError in words."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"this is no JSON: {error.msg} in {place}; texts stand in double quotes") from error


def _number(text: str) -> int | float:
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"'{text}' is no number; write for example 3.5") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"'{text}' is no finite number")
    return value
