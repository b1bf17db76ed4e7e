"""One field of a state: its type, merge rule, default and the prebuilt validator of its updates."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import (
    BeforeValidator,
    ConfigDict,
    PydanticUserError,
    SecretBytes,
    SecretStr,
    TypeAdapter,
    ValidationError,
)

from graphagent.graph.reducers import Form, Reducer, any_of, container_of, last, latest, messages
from graphagent.unset import UNSET

T = TypeVar("T")


class _TransientMark:
    def __repr__(self) -> str:
        return "Transient"


TRANSIENT = _TransientMark()
Transient = Annotated[T, TRANSIENT]
"""`Transient[T]` marks a state field that is never persisted (an open client, a cache): unset after a resume."""


@dataclass(frozen=True, slots=True)
class FieldSource:
    """What a state class says of a field, before it is compiled."""

    name: str
    declared: Any
    metadata: tuple[Any, ...] = ()
    default: Any = UNSET
    default_factory: Callable[[], Any] | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A compiled field.

    `validate` takes an update and returns it validated (pydantic's `ValidationError` otherwise). `form`, `writers`
    and `apply` are those of the merge rule, kept here because every step reads them.
    """

    name: str
    declared: Any
    reducer: Reducer[Any]
    form: Form
    writers: str
    apply: Callable[[Any, Any], Any]
    validate: Callable[[Any], Any]
    validate_value: Callable[[Any], Any]
    update_type: Any
    container: type
    transient: bool
    secret: bool
    default: Any = UNSET
    default_factory: Callable[[], Any] | None = None
    plain: bool = False  # replaced as a whole by one writer: no reducer to call
    replaced: bool = False  # an update of one writer is the new value, also if several could write

    @property
    def required(self) -> bool:
        """True if the field has no default and so may be unset."""
        return self.default is UNSET and self.default_factory is None

    def initial(self) -> Any:
        """A fresh default value, or UNSET."""
        return self.default if self.default_factory is None else self.default_factory()


def compile_field(source: FieldSource, config: Mapping[str, Any]) -> tuple[Field, list[str]]:
    """The compiled field and what is wrong with its declaration."""
    problems: list[str] = []
    if source.metadata and _shadowed(source):
        problems.append(
            f"the annotation of field '{source.name}' has the field's own default in it: in the body of the class "
            f"'{source.name}' is the field; import what you mean under another name"
        )
    rules = [item for item in source.metadata if isinstance(item, Reducer)]
    if len(rules) > 1:
        problems.append(f"field '{source.name}' has {len(rules)} merge rules, one is allowed")
    rule = rules[0] if rules else last
    problem = None if source.declared is Any else rule.problem(source.declared)  # Any: it can't be known
    if problem:
        problems.append(f"field '{source.name}' is declared '{type_name(source.declared)}', but {problem}")
    constraints = tuple(m for m in source.metadata if not isinstance(m, Reducer) and m is not TRANSIENT)
    value_type = Annotated[(source.declared, *constraints)] if constraints else source.declared
    update_type = rule.update_type(source.declared)
    update = value_type if update_type is source.declared else update_type
    validate_value = _validator(value_type, config)
    field = Field(
        name=source.name,
        declared=source.declared,
        reducer=rule,
        form=rule.form,
        writers=rule.writers,
        apply=rule.apply,
        validate=validate_value if update is value_type else _validator(_listed(rule, update), config),
        validate_value=validate_value,
        update_type=update_type,
        container=container_of(source.declared) if rule.form == "list" else object,
        transient=any(m is TRANSIENT for m in source.metadata),
        secret=holds_secret(source.declared),
        default=source.default,
        default_factory=source.default_factory,
        plain=rule is last,
        replaced=rule in (last, latest, any_of),
    )
    problems += _default_problems(field)
    return field, problems


def _default_problems(field: Field) -> list[str]:
    """Whether the default is of the field's type; that of a transient field may be anything, or costly to make."""
    if field.required or field.transient:
        return []
    try:
        field.validate_value(field.initial())
    except ValidationError as error:
        shown = "" if field.secret else f" {field.initial()!r:.60}"
        text = f"field '{field.name}' is declared '{type_name(field.declared)}', but its default{shown} is refused: "
        return [text + error.errors(include_url=False, include_input=False)[0]["msg"]]
    return []


def _shadowed(source: FieldSource) -> bool:
    """True if the metadata holds the default: the name of a merge rule was read as the field of the same name."""
    default = getattr(source.default_factory, "__self__", source.default)  # a list is kept as its own `copy`
    plain = (list, dict, set, tuple, str, int, float, bool, type(None))
    return any(type(item) in plain and type(item) is type(default) and item == default for item in source.metadata)


def _listed(rule: Reducer[Any], update: Any) -> Any:
    """A message history also takes a lone item, and a text as a message of the user."""
    if rule is not messages:
        return update

    def to_list(value: Any) -> Any:
        if value is None:
            return []
        items = value if isinstance(value, list | tuple) else [value]
        return [{"role": "user", "content": item} if isinstance(item, str) else item for item in items]

    return Annotated[update, BeforeValidator(to_list)]


def _validator(annotation: Any, config: Mapping[str, Any]) -> Callable[[Any], Any]:
    try:
        adapter = TypeAdapter(annotation, config=ConfigDict(**{"arbitrary_types_allowed": True, **config}))  # type: ignore[typeddict-item]
    except PydanticUserError as error:
        if error.code != "type-adapter-config-unused":
            raise
        adapter = TypeAdapter(annotation)
    return adapter.validator.validate_python


def holds_secret(annotation: Any) -> bool:
    """True if a type is, or has inside, pydantic's SecretStr or SecretBytes."""
    if annotation in (SecretStr, SecretBytes):
        return True
    return any(holds_secret(arg) for arg in get_args(annotation) if not isinstance(arg, str | int | bytes))


def type_name(annotation: Any) -> str:
    """A type as a person would write it: `list[str]`, not `typing.List[str]`."""
    if annotation is None or annotation is types.NoneType:
        return "None"
    if get_origin(annotation) in (typing.Union, types.UnionType):
        return " | ".join(type_name(arg) for arg in get_args(annotation))
    if get_origin(annotation) is not None:
        return str(annotation).replace("typing.", "")
    return getattr(annotation, "__name__", str(annotation))
