"""What a function takes, read off its signature and docstring: the JSON schema a model sees, and the check of what the
model sends."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ArgsKwargs

from graphagent.agents.tool import ToolContext
from graphagent.engine.context import NodeContext, SyncContext
from graphagent.errors import AgentError, ToolError

CONTEXT = "ctx"
"""A parameter of this name gets the context of the call, unless it is annotated as something else."""
CONTEXT_TYPES: tuple[type, ...] = (ToolContext, NodeContext, SyncContext)
_PLAIN = {"missing_keyword_only_argument": "is missing", "unexpected_keyword_argument": "is no parameter of this tool"}

Parameter = inspect.Parameter


class _Schema(GenerateJsonSchema):
    """Without the titles that pydantic makes from names: a model pays for every word."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never."""
        return False


class Arguments:
    """The parameters of a tool's function.

    `description`: the docstring without its list of parameters. `schema`: a JSON schema of an object. Raises
    AgentError for a function whose parameters a model can't give.
    """

    def __init__(self, fn: Callable[..., Any], name: str) -> None:
        self._name = name
        self.description, told = documented(fn)
        hints = _hints(fn, name)
        self._context: dict[str, type] = {}
        self._positional: list[str] = []
        taking = _taking(list(self._taken(fn, hints, told)))
        try:
            adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(taking)  # type: ignore[arg-type]
            schema = adapter.json_schema(schema_generator=_Schema)
        except PydanticUserError as error:
            raise AgentError(
                f"tool '{name}' has a parameter that JSON can't hold: {error.message.splitlines()[0]}; give it a type "
                f"of plain data, or a pydantic model"
            ) from error
        self.schema = {"type": "object", "properties": {}, **schema}
        self._validate: Callable[[ArgsKwargs], dict[str, Any]] = adapter.validator.validate_python

    def _taken(
        self, fn: Callable[..., Any], hints: Mapping[str, Any], told: Mapping[str, str]
    ) -> Iterator[inspect.Parameter]:
        """The parameters that a model gives, as keyword ones."""
        for parameter in inspect.signature(fn).parameters.values():
            annotation = hints.get(parameter.name, Any)
            kind = _context_type(parameter.name, annotation)
            if kind is not None:
                self._context[parameter.name] = kind
                continue
            if parameter.kind is Parameter.VAR_POSITIONAL:
                raise AgentError(
                    f"tool '{self._name}' takes *{parameter.name}, which a model can't give by name; take a list"
                )
            if parameter.name in told and not _described(annotation, parameter.default):
                annotation = Annotated[annotation, Field(description=told[parameter.name])]
            if parameter.kind is Parameter.POSITIONAL_ONLY:
                self._positional.append(parameter.name)
            keyword = parameter.kind if parameter.kind is Parameter.VAR_KEYWORD else Parameter.KEYWORD_ONLY
            yield parameter.replace(annotation=annotation, kind=keyword)

    def parsed(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What the function is called with: validated values, defaults filled in. Raises ToolError, which says what is
        wrong without repeating any value."""
        try:
            return self._validate(ArgsKwargs((), dict(arguments)))
        except ValidationError as error:
            raise ToolError(f"the arguments of tool '{self._name}' don't fit: {'; '.join(_problems(error))}") from error

    def call(self, fn: Callable[..., Any], parsed: dict[str, Any], context: ToolContext) -> Any:
        """`fn` called with parsed arguments and, where it wants it, the context."""
        for name, kind in self._context.items():
            parsed[name] = context if kind is ToolContext else context.node
        if not self._positional:
            return fn(**parsed)
        first = [parsed.pop(name) for name in self._positional if name in parsed]
        return fn(*first, **parsed)


def documented(fn: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What a function's docstring says of it, and of its parameters (Google, NumPy, reST or Epydoc style)."""
    from docstring_parser import parse

    while isinstance(fn, functools.partial):
        fn = fn.func
    plain = inspect.isfunction(fn) or inspect.ismethod(fn)
    found = inspect.getdoc(fn if plain or isinstance(fn, type) else type(fn))
    text = parse(found or "")
    return (text.description or "").strip(), {p.arg_name: (p.description or "").strip() for p in text.params}


def _hints(fn: Callable[..., Any], name: str) -> dict[str, Any]:
    while isinstance(fn, functools.partial):
        fn = fn.func
    target = fn if inspect.isroutine(fn) else type(fn).__call__
    try:
        return typing.get_type_hints(
            target, localns={kind.__name__: kind for kind in CONTEXT_TYPES}, include_extras=True
        )
    except NameError as error:
        raise AgentError(
            f"tool '{name}' has an annotation that can't be looked up ({error}); import the type at run time, or "
            f"define the function where it can be seen"
        ) from error


def _context_type(name: str, annotation: Any) -> type | None:
    """The kind of context that a parameter stands for, if it does."""
    kinds = [kind for kind in (annotation, *get_args(annotation)) if kind in CONTEXT_TYPES]
    if kinds:
        return typing.cast(type, kinds[0])
    return ToolContext if name == CONTEXT and annotation is Any else None


def _described(annotation: Any, default: Any) -> bool:
    """True if a parameter has a description of its own."""
    metadata = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return any(isinstance(item, FieldInfo) and item.description for item in (*metadata, default))


def _taking(parameters: list[inspect.Parameter]) -> Callable[..., dict[str, Any]]:
    """A function that takes these and returns what it was given: pydantic validates a call of it."""

    def arguments(**given: Any) -> dict[str, Any]:
        return given

    arguments.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    arguments.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return arguments


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        where = ".".join(str(part) for part in problem["loc"])
        yield f"'{where}' {_PLAIN.get(problem['type'], problem['msg'])}"
