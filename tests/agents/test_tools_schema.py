"""Tools made of functions: what is read off a signature and a docstring, and how arguments are checked."""

from __future__ import annotations

import enum
import functools
import json
import subprocess
import sys
import warnings
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, SecretStr
from support.tooling import call, ran, texts

from graphagent.agents.function_tool import FunctionTool, tool
from graphagent.agents.tool import Tool, ToolContext
from graphagent.engine.context import NodeContext, SyncContext
from graphagent.errors import AgentError

if TYPE_CHECKING:
    from decimal import Decimal

pytestmark = pytest.mark.anyio


class Unit(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


class Place(BaseModel):
    """A place on a map."""

    name: str
    within: Place | None = None


async def weather(place: Place, days: int = 3, unit: Unit = Unit.C) -> str:
    """Look up the weather.

    Only for places on land.

    Args:
        place: where, as exactly as
            it is known
        days: how many days
    """
    return f"{place.name} {days} {unit.name}"


def test_name_description_and_parameters_come_from_the_function() -> None:
    """A model sees the function's name, its docstring without the parameters, and a JSON schema of the parameters."""
    spec = tool(weather).spec
    assert (spec.name, spec.description) == ("weather", "Look up the weather.\n\nOnly for places on land.")
    schema = spec.parameters
    assert schema["required"] == ["place"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["days"] == {"default": 3, "description": "how many days", "type": "integer"}
    assert schema["properties"]["place"]["description"] == "where, as exactly as\nit is known"
    assert schema["properties"]["unit"]["default"] == "celsius"
    json.dumps(spec.parameters)


def test_slow_packages_are_imported_late() -> None:
    """Importing what tools are made of loads neither the MCP client nor the parser of docstrings."""
    names = "function_tool, mcp_tools, agent_tool, transfer, external, toolset, tool_runner"
    probe = f"import sys; from graphagent.agents import {names}; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"mcp", "mcp_types", "httpx2", "docstring_parser", "litellm"}


def test_self_referential_types_use_defs() -> None:
    """A type that holds itself is described once under `$defs` and referred to."""
    schema = tool(weather).spec.parameters
    assert schema["$defs"]["Place"]["properties"]["within"]["anyOf"][0] == {"$ref": "#/$defs/Place"}


@pytest.mark.parametrize(
    "text",
    [
        "Do it.\n\nArgs:\n    x: the x\n",
        "Do it.\n\nParameters\n----------\nx : int\n    the x\n",
        "Do it.\n\n:param x: the x\n:returns: nothing\n",
    ],
    ids=["google", "numpy", "rest"],
)
def test_descriptions_are_found_in_every_usual_style(text: str) -> None:
    """Google, NumPy and reST docstrings all describe parameters."""

    def fn(x: int) -> None: ...

    fn.__doc__ = text
    spec = tool(fn).spec
    assert spec.description == "Do it."
    assert spec.parameters["properties"]["x"]["description"] == "the x"


def test_a_field_describes_and_bounds_a_parameter() -> None:
    """`Field` counts over the docstring, in `Annotated` and as a default, with its bounds."""

    def fn(x: Annotated[int, Field(description="own", ge=1)], y: str = Field("a", max_length=3), z: int | None = None):
        """Do it.

        Args:
            x: from the docstring
            y: why
        """

    properties = tool(fn).spec.parameters["properties"]
    assert properties["x"] == {"description": "own", "minimum": 1, "type": "integer"}
    assert properties["y"] == {"default": "a", "maxLength": 3, "type": "string", "description": "why"}
    assert properties["z"]["default"] is None


def test_names_that_pydantic_models_refuse_are_parameters_like_any_other() -> None:
    """`json`, `schema`, `copy`, `model_x` and `self_` are parameters; nothing is warned about."""

    def fn(json: str, schema: str, copy: int, model_x: int, title: str, description: str): ...

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names = ["json", "schema", "copy", "model_x", "title", "description"]
        assert list(tool(fn).spec.parameters["properties"]) == names


def by_name(a: int, ctx) -> str:
    """By name."""
    return f"{a} {type(ctx).__name__}"


def by_type(context: ToolContext, a: int) -> str:
    """By type."""
    return f"{a} {type(context).__name__}"


def by_node(a: int, node: NodeContext) -> str:
    """By node."""
    return f"{a} {type(node).__name__}"


def optional(a: int, context: ToolContext | None = None) -> str:
    """If there is one."""
    return f"{a} {type(context).__name__}"


@pytest.mark.parametrize(
    ("fn", "told"),
    [(by_name, "ToolContext"), (by_type, "ToolContext"), (by_node, SyncContext.__name__), (optional, "ToolContext")],
    ids=lambda value: getattr(value, "__name__", value),
)
async def test_a_context_is_given_and_not_shown(fn: Any, told: str) -> None:
    """A parameter named `ctx` or annotated as a context gets it; the model doesn't see it."""
    made = tool(fn)
    assert list(made.spec.parameters["properties"]) == ["a"]
    assert await texts([made], call(fn.__name__, a=1)) == [f"1 {told}"]


async def test_a_parameter_named_ctx_of_another_type_is_an_argument() -> None:
    """`ctx: str` is what the model gives."""

    def fn(ctx: str) -> str:
        return ctx

    assert await texts([fn], call("fn", ctx="here")) == ["here"]


async def test_arguments_arrive_as_the_declared_types() -> None:
    """Models, enums, dates and sets are made of what JSON can say; defaults are filled in."""
    seen: list[Any] = []

    def fn(place: Place, unit: Unit, when: datetime, tags: set[str], kind: Literal["a", "b"] = "a") -> None:
        seen.extend([place, unit, when, tags, kind])

    given = {"place": {"name": "x"}, "unit": "celsius", "when": "2026-01-02T03:04:05Z", "tags": ["a", "a"]}
    assert await texts([fn], call("fn", **given)) == ["null"]
    assert seen[0] == Place(name="x")
    assert seen[1] is Unit.C
    assert seen[2].year == 2026
    assert seen[3:] == [{"a"}, "a"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "'place' is missing"),
        ({"place": {}}, "'place.name' Field required"),
        ({"place": {"name": "x"}, "day": 1}, "'day' is no parameter of this tool"),
        ({"place": {"name": "x"}, "days": "many"}, "'days' Input should be a valid integer"),
    ],
    ids=["missing", "inside", "unknown", "type"],
)
async def test_wrong_arguments_are_told_to_the_model(arguments: dict[str, Any], told: str) -> None:
    """Arguments that don't fit are a result that says where and what; the function isn't called."""
    (text,) = await texts([weather], call("weather", **arguments))
    assert text.startswith("Error: the arguments of tool 'weather' don't fit: ")
    assert told in text


async def test_c241_a_wrong_argument_is_not_echoed() -> None:
    """What a model sent for a secret parameter is in no error text."""

    def login(password: SecretStr, user: int) -> None: ...

    (text,) = await texts([login], call("login", password={"v": "hunter2"}, user="hunter2"))
    assert "password" in text
    assert "hunter2" not in text


def starred(*names: str):
    """Not a tool."""


def hidden(amount: Decimal):
    """Not a tool."""


def opaque(what: object, lock: type(json)):  # type: ignore[valid-type]
    """Not a tool."""


@pytest.mark.parametrize(
    ("fn", "traits", "told"),
    [
        (starred, {}, "takes *names, which a model can't give by name"),
        (hidden, {}, "an annotation that can't be looked up"),
        (opaque, {}, "a parameter that JSON can't hold"),
        (lambda x: x, {}, "'<lambda>' is no name for a tool"),
        (weather, {"name": "look up"}, "'look up' is no name for a tool"),
    ],
    ids=["starred", "hidden", "opaque", "lambda", "name"],
)
def test_a_function_that_is_no_tool_is_refused(fn: Any, traits: Any, told: str) -> None:
    """What a model could not call is refused where it is declared, with the mend."""
    with pytest.raises(AgentError) as raised:
        tool(fn, **traits)
    assert told in str(raised.value)


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.sum = 0

    def add(self, n: int, /, *, times: int = 1) -> int:
        """Add n."""
        self.sum += n * times
        return self.sum

    async def __call__(self, n: int) -> int:
        return self.add(n)


async def test_methods_partials_and_objects_are_functions_too() -> None:
    """A bound method, a `functools.partial` and an object with an async `__call__` become tools; `**rest` takes what is
    left over."""
    counter = Counter()

    def rest(**more: int) -> dict[str, int]:
        return more

    tools = [
        counter.add,
        tool(functools.partial(counter.add, times=10), name="tens"),
        tool(counter, name="count"),
        rest,
    ]
    calls = [call("add", n=1), call("tens", n=1), call("count", n=5), call("rest", a=1, b=2)]
    assert await texts(tools, *calls) == ["1", "11", "16", '{"a": 1, "b": 2}']


async def test_the_decorator_takes_options() -> None:
    """`@tool(...)` sets name, description and traits; a plain `@tool` takes all from the function."""

    @tool(name="pay", description="Pay.", ends_turn=True)
    async def _pay(amount: int) -> str:
        return f"paid {amount}"

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    assert isinstance(_pay, Tool)
    assert isinstance(look, FunctionTool)
    assert (_pay.spec.name, _pay.spec.description, look.spec.description) == ("pay", "Pay.", "Look.")
    assert (await ran([_pay, look], call("look"))).ends_turn is False
    assert (await ran([_pay, look], call("pay", amount=3))).ends_turn is True


@pytest.mark.parametrize("arguments", [{}, {"x": 1}])
async def test_a_tool_without_parameters_takes_nothing(arguments: dict[str, Any]) -> None:
    """Empty arguments are taken by a tool without parameters; others are not."""

    def now() -> str:
        return "noon"

    (text,) = await texts([now], call("now", **arguments))
    assert (text == "noon") == (not arguments)
