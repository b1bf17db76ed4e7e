"""The compiled state: its fields, how updates of them are checked, how views and start values are made."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, NotRequired, Required, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError
from typing_extensions import ReadOnly, is_typeddict

from graphagent.errors import InvalidUpdate, UndeclaredField, alternatives
from graphagent.graph.fields import Field, FieldSource, compile_field, type_name
from graphagent.graph.reducers import any_of, latest, merge
from graphagent.graph.reducers import messages as message_history  # in the class below `messages` is the field
from graphagent.graph.view import view_maker
from graphagent.messages import Message
from graphagent.unset import UNSET

_QUALIFIERS = (NotRequired, ReadOnly, Required)


class MessagesState(BaseModel):
    """The state of a conversational graph; subclass it to add fields.

    Model nodes that run side by side all write the last response: that of the last one in graph order stands.
    """

    messages: Annotated[list[Message], message_history] = []
    user_input: Annotated[str, any_of] = ""
    last_response: Annotated[str, latest] = ""
    last_response_id: Annotated[str, latest] = ""
    last_tool_response: Annotated[str, latest] = ""
    node_responses: Annotated[dict[str, Any], merge] = {}
    one_shot_messages: Annotated[list[Message], any_of] = []
    one_shot_messages_by_node: Annotated[dict[str, list[Message]], merge] = {}
    metadata: Annotated[dict[str, Any], merge] = {}


class StateSchema:
    """A state class made ready for the engine.

    Attributes: `state` (the class), `fields` (by name, in order of declaration), `view` (makes the read-only state
    of a node), `assign` (None, or a function that runs the class's own validators on a changed state),
    `problems` (what is wrong with the declaration, as texts).
    """

    def __init__(self, state: type) -> None:
        self.state = state
        self.name = state.__name__
        self.problems: list[str] = []
        fields: dict[str, Field] = {}
        config = _config(state)
        for source in _sources(state):
            try:
                field, problems = compile_field(source, config)
            except Exception as error:
                self.problems.append(f"field '{source.name}' of '{self.name}' has a type without a validator: {error}")
                continue
            self.problems += problems
            fields[source.name] = field
        self.fields: Mapping[str, Field] = fields
        self.names = tuple(fields)
        self.persistent = frozenset(name for name, field in fields.items() if not field.transient)
        self.secret = frozenset(name for name, field in fields.items() if field.secret)
        self.view: Callable[[dict[str, Any]], Any] = view_maker(state, self.names)
        self.assign = _assigner(state)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields.values())

    def start_values(self) -> dict[str, Any]:
        """Fresh default values; required fields are absent."""
        values = {}
        for field in self.fields.values():
            value = field.initial()
            if value is not UNSET:
                values[field.name] = value
        return values

    def check(self, name: str, update: Any, who: str) -> Any:
        """The update validated for field `name`. Raises UndeclaredField or InvalidUpdate, naming `who` wrote it."""
        field = self.fields.get(name)
        if field is None:
            raise UndeclaredField(
                f"{who} writes '{name}', which '{self.name}' doesn't declare: {alternatives(name, self.names)}; "
                f"declare the field or correct the name",
                field=name,
            )
        try:
            return field.validate(update)
        except ValidationError as error:
            raise self.invalid(field, error, who) from error

    def invalid(self, field: Field, error: ValidationError, who: str, update: bool = True) -> InvalidUpdate:
        """The error for a value that a field refuses. Secret values are not shown."""
        problems = error.errors(include_url=False, include_context=False, include_input=not field.secret)
        first = problems[0]
        place = "".join(f"[{part!r}]" for part in first["loc"])
        shown = "" if field.secret else f", got {_short(first['input'])} ({type(first['input']).__name__})"
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        expected = type_name(field.update_type if update else field.declared)
        return InvalidUpdate(
            f"{who} writes '{field.name}{place}' wrongly: {first['msg']}{shown}{more}; "
            f"the field takes '{expected}' (merge rule '{field.reducer.name}')",
            field=field.name,
        )

    def describe(self) -> dict[str, dict[str, Any]]:
        """Type, rule, whether required and whether persistent, per field: what the fingerprint is made of."""
        return {
            field.name: {
                "type": type_name(field.declared),
                "reducer": field.reducer.name,
                "required": field.required,
                "persistent": not field.transient,
            }
            for field in self
        }


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _config(state: type) -> dict[str, Any]:
    if isinstance(state, type) and issubclass(state, BaseModel):
        kept = ("strict", "str_strip_whitespace", "str_to_lower", "use_enum_values", "coerce_numbers_to_str")
        return {key: value for key, value in state.model_config.items() if key in kept}
    return {}


def _sources(state: Any) -> Iterator[FieldSource]:
    if isinstance(state, type) and issubclass(state, BaseModel):
        for name, info in state.model_fields.items():
            default = UNSET if info.is_required() or info.default_factory else info.default
            factory = _factory(info, default)
            yield FieldSource(name, info.annotation, tuple(info.metadata), UNSET if factory else default, factory)
    elif is_typeddict(state):
        for name, hint in get_type_hints(state, include_extras=True).items():
            yield FieldSource(name, *_split(hint))
    elif dataclasses.is_dataclass(state):
        hints = get_type_hints(state, include_extras=True)
        for item in dataclasses.fields(state):
            default = UNSET if item.default is dataclasses.MISSING else item.default
            factory = None if item.default_factory is dataclasses.MISSING else item.default_factory
            yield FieldSource(item.name, *_split(hints[item.name]), default, factory)
    else:
        raise TypeError(f"a state is a pydantic model, a TypedDict or a dataclass, not '{state!r}'")


def _factory(info: Any, default: Any) -> Callable[[], Any] | None:
    if info.default_factory is not None:
        factory: Callable[[], Any] = info.default_factory
        return factory
    if isinstance(default, list | dict | set):  # pydantic copies such a default for every instance
        return default.copy
    return None


def _split(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    metadata: tuple[Any, ...] = ()
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            metadata = (*hint.__metadata__, *metadata)
            hint = hint.__origin__
        elif origin is not None and origin in _QUALIFIERS:
            hint = get_args(hint)[0]
        else:
            return hint, metadata


def _assigner(state: Any) -> Callable[[dict[str, Any], Mapping[str, Any]], dict[str, Any]] | None:
    """For a class with validators of its own: a function that assigns `changes` to `values` through them."""
    if not (isinstance(state, type) and issubclass(state, BaseModel)):
        return None
    found = state.__pydantic_decorators__
    if not (found.field_validators or found.model_validators or found.root_validators or found.validators):
        return None
    validator = state.__pydantic_validator__

    def assign(values: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
        instance = state.model_construct()
        object.__setattr__(instance, "__dict__", dict(values))
        for name, value in changes.items():
            validator.validate_assignment(instance, name, value)
        return dict(instance.__dict__)

    return assign
