"""Interrupts: how questions are raised, named, kept, and how answers find them.

Pure over values; the loop stores what comes out.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, Union

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from graphagent.checkpoint.codec import encode_any
from graphagent.checkpoint.record import Question
from graphagent.engine.result import Interrupt, public
from graphagent.errors import AnswerError, EncodeError, alternatives
from graphagent.unset import UNSET


class InterruptSignal(BaseException):
    """Unwinds a node that asked. Not an `Exception`: a broad handler in user code must not swallow a question."""


@functools.lru_cache(maxsize=256)
def _cached_adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)


def adapter_of(annotation: Any) -> TypeAdapter[Any]:
    """The validator of an answer type, made once where the type can be a key."""
    try:
        return _cached_adapter(annotation)
    except TypeError:
        return TypeAdapter(annotation)


def question_id(namespace: str, activation: str, ordinal: int) -> str:
    """`<namespace>/<activation>.<ordinal>`; the activation has branch path, node and visit."""
    return f"{namespace}/{activation}.{ordinal}" if namespace else f"{activation}.{ordinal}"


def answer_schema(answer_type: Any) -> Any:
    """The JSON schema of an answer type; None for `Any`, and for types that have none."""
    if answer_type is Any or answer_type is None:
        return None
    try:
        return _cached_schema(answer_type)
    except TypeError:  # a type that can't be a key
        return _schema(answer_type)


def _schema(answer_type: Any) -> Any:
    try:
        return adapter_of(answer_type).json_schema()
    except Exception:
        return None


_cached_schema = functools.lru_cache(maxsize=256)(_schema)


def asks_for_secret(schema: Any) -> bool:
    """True if what the JSON schema describes is, or has inside, a pydantic secret (those are `writeOnly`)."""
    if isinstance(schema, Mapping):
        return schema.get("writeOnly") is True or any(map(asks_for_secret, schema.values()))
    return isinstance(schema, list) and any(map(asks_for_secret, schema))


def plain_prompt(prompt: Any) -> Any:
    """A prompt as plain data: what it shows to a person is kept, whatever class it is."""
    return to_jsonable_python(prompt, fallback=str)


def checked_answer(answer_type: Any, value: Any, question: Question) -> Any:
    """A stored answer as the type that the node asked for. Raises AnswerError."""
    if answer_type is Any:
        return value
    try:
        return adapter_of(answer_type).validate_python(value)
    except ValidationError as error:
        raise _wrong(question, value, error) from error


def _wrong(question: Question, value: Any, error: ValidationError) -> AnswerError:
    first = error.errors(include_url=False)[0]
    return AnswerError(
        f"the answer to '{question.key}' ({question.id}) is {value!r:.80}: {first['msg']}; expected {question.schema}",
        (public(question),),
    )


def pending(questions: Sequence[Question]) -> list[Question]:
    """The questions that wait for an answer."""
    return [q for q in questions if not q.answered and q.kind == "ask"]


def carried(questions: Sequence[Question]) -> tuple[Question, ...]:
    """What goes on of the questions of a row when its step does: those that want an answer, and the breakpoints before
    a node, which are passed now and stay so until the node has ended."""
    passed = {q.id: replace(q, answered=True) for q in questions if q.kind == "before"}
    return tuple(passed.get(q.id, q) for q in questions if q.kind == "ask" or q.id in passed)


def take_answers(questions: Sequence[Question], answers: Mapping[str, Any], answer: Any) -> list[Question]:
    """The questions with the given answers in them. Nothing is taken unless everything fits. Raises AnswerError."""
    open_ones = pending(questions)
    shown: list[Interrupt] = [public(q) for q in open_ones]
    given: dict[str, Any] = {}
    if answer is not UNSET:
        if len(open_ones) != 1:
            raise AnswerError(f"a bare answer needs exactly one pending interrupt; {_listing(open_ones)}", shown)
        given[open_ones[0].id] = answer
    for name, value in answers.items():
        matches = [q for q in open_ones if q.id == name] or [q for q in open_ones if q.key == name]
        if not matches:
            known = [text for q in open_ones for text in (q.key, q.id)]
            hint = f": {alternatives(name, known)}" if known else ""
            raise AnswerError(f"no interrupt '{name}' is pending{hint}; {_listing(open_ones)}", shown)
        if len(matches) > 1:
            raise AnswerError(
                f"'{name}' is the key of {len(matches)} pending interrupts; answer by id: "
                f"{', '.join(q.id for q in matches)}",
                shown,
            )
        if matches[0].id in given:
            raise AnswerError(f"interrupt '{name}' is answered twice", shown)
        given[matches[0].id] = value
    plain = {q.id: _plain(q, given[q.id]) for q in open_ones if q.id in given}
    return [replace(q, answered=True, answer=plain[q.id]) if q.id in plain else q for q in questions]


def _listing(open_ones: Sequence[Question]) -> str:
    if not open_ones:
        return "nothing is pending"
    return "pending: " + ", ".join(f"'{q.key}' ({q.id})" for q in open_ones)


def _plain(question: Question, value: Any) -> Any:
    """The answer as it is stored: checked against the schema, made of plain data."""
    try:
        value = adapter_of(type_of(question.schema)).validate_python(to_jsonable_python(value, fallback=lambda v: v))
    except ValidationError as error:
        raise _wrong(question, value, error) from error
    try:
        encode_any(value, f"answers[{question.key!r}]")
    except EncodeError as error:
        raise AnswerError(f"the answer to '{question.key}' can't be stored: {error}", (public(question),)) from error
    return value


_SCALARS: dict[str, Any] = {"boolean": bool, "integer": int, "number": float, "string": str, "null": None}
_BOUNDS = {
    "minimum": "ge",
    "exclusiveMinimum": "gt",
    "maximum": "le",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
}


def type_of(schema: Any) -> Any:
    """A type that accepts what a JSON schema describes, as far as checks before a run need it; `Any` beyond that.

    The node checks the answer once more against the type it asked for, and asks again if it doesn't fit.
    """
    if not isinstance(schema, dict):
        return Any
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if "const" in schema:
        return Literal[schema["const"]]
    if "anyOf" in schema:
        return Union[tuple(type_of(part) for part in schema["anyOf"])]  # noqa: UP007 -- the parts are known at run time
    kind = schema.get("type")
    found: Any = _SCALARS.get(str(kind), Any)
    if kind == "array":
        found = list[type_of(schema.get("items"))]  # type: ignore[misc]
    elif kind == "object":
        found = dict[str, Any]
    bounds = {_BOUNDS[word]: value for word, value in schema.items() if word in _BOUNDS}
    return Annotated[found, Field(**bounds)] if bounds else found
