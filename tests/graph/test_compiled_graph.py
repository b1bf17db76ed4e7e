"""The compiled graph: frozen, fingerprinted by meaning, told as JSON and back, drawn as it runs."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
import typing_extensions
from pydantic import BaseModel
from support.graphs import Trail, flow, says

from graphagent import (
    END,
    START,
    Command,
    CompiledGraph,
    Executor,
    Limits,
    Message,
    MessagesState,
    RetryPolicy,
    StateGraph,
    add,
    append,
    merge,
)

pytestmark = pytest.mark.anyio


def by_size(state: Any) -> Literal["small", "big"]:
    """A router with two labels."""
    return "small" if state.n < 10 else "big"


async def fix(state: Any) -> Command:
    """Jumps by label."""
    return Command(goto="again")


def rich(order: int = 1, **options: Any) -> StateGraph:
    """A graph with every kind of node and edge; `order=-1` declares everything the other way round."""
    child = flow("START -> inner -> END").compile()
    builder = StateGraph(Trail, name="rich", inputs=["item", "n"], outputs=["log"], **options)
    calls: list[Callable[[], Any]] = [
        lambda: builder.add_node("first", says("first"), reads=["item"], writes=["log"], description="the first"),
        lambda: builder.add_node("small", says("small"), effects=["mail"], idempotent=True, formerly=["tiny"]),
        lambda: builder.add_node("big", says("big")),
        lambda: builder.add_node("fixer", fix, destinations={"again": "first", "stop": END}),
        lambda: builder.add_node("meet", says("meet")),
        lambda: builder.add_subgraph_node("sub", child),
        lambda: builder.add_interrupt_node("ask", prompt="which?", key="item", answer_type=str),
        lambda: builder.add_map_node("fan", "small", over="log", item_key="item", collect="meet"),
        lambda: builder.set_entry_point("first"),
        lambda: builder.add_conditional_edges("first", by_size, {"small": "small", "big": "big"}, default="fixer"),
        lambda: builder.add_multi_conditional_edges("meet", lambda state: [], ["sub", "ask"], default="fan"),
        lambda: builder.add_join_edge(["big", "sub"], "ask", mode="any"),
        lambda: builder.add_edge("ask", "meet"),
        lambda: builder.add_edge("sub", END),
        lambda: builder.add_error_edge("big", "fixer", errors=(ValueError, KeyError)),
        lambda: builder.interrupt_before_nodes("big"),
        lambda: builder.must_pass("sub", through="first"),
        lambda: builder.limits(steps=50),
        lambda: builder.with_version("7"),
    ]
    for call in calls[::order]:
        call()
    return builder


FUNCTIONS: dict[str, Any] = {
    "first": says("first"),
    "small": says("small"),
    "big": says("big"),
    "fixer": fix,
    "meet": says("meet"),
    "sub": flow("START -> inner -> END").compile(),
    "first:router": by_size,
    "meet:router": lambda state: [],
}


# -- fingerprint -----------------------------------------------------------------------------------


def test_fingerprint_does_not_depend_on_the_order_of_declaration() -> None:
    """Declared backwards the graph has the same fingerprint; the order is kept apart, since it decides merges."""
    one, other = rich().compile(), rich(order=-1).compile()
    assert one.fingerprint == other.fingerprint
    assert one.order != other.order
    assert set(one.order) == set(other.order)
    assert re.fullmatch("[0-9a-f]{16}", one.fingerprint)


def test_fingerprint_does_not_depend_on_source_text() -> None:
    """Other functions, descriptions, policies, names of the graph and versions leave the fingerprint as it is."""

    async def quite_another(state: Trail) -> None:
        """Something else altogether."""

    async def plain(state: Trail) -> None: ...

    def build(fn: Any, **options: Any) -> CompiledGraph:
        builder = StateGraph(Trail, name=str(options)).add_node("a", fn, **options)
        return builder.set_entry_point("a").set_finish_point("a").with_version(str(options)).compile()

    reference = build(plain).fingerprint
    assert build(quite_another).fingerprint == reference
    assert build(plain, retry=RetryPolicy(), timeout=3, description="x", metadata={"k": 1}).fingerprint == reference


CHANGES: dict[str, Callable[[StateGraph], Any]] = {
    "node": lambda b: b.add_node("new", says("new")),
    "edge": lambda b: b.add_edge("big", "meet"),
    "entry": lambda b: b.set_entry_point("big"),
    "route": lambda b: b.add_conditional_edges("big", by_size, {"small": "small", "big": END}),
    "join": lambda b: b.add_join_edge(["small", "big"], "sub"),
    "error edge": lambda b: b.add_error_edge("small", "fixer"),
    "destinations": lambda b: b.add_node("new", says("new"), destinations=["big"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_fingerprint_tells_another_topology(change: str) -> None:
    """Whatever may lead control elsewhere makes another fingerprint."""
    builder = rich()
    CHANGES[change](builder)
    assert builder.compile().fingerprint != rich().compile().fingerprint


@pytest.mark.parametrize(
    "declared", [Annotated[list[str], append], Annotated[dict[str, int], merge], int, str | None, Annotated[int, add]]
)
def test_fingerprint_tells_another_state(declared: Any) -> None:
    """Type, merge rule and presence of each field count; the name of the state class doesn't."""

    def build(name: str, **annotations: Any) -> str:
        state = type(name, (BaseModel,), {"__annotations__": {"n": int, **annotations}, "n": 0})
        return flow("START -> a -> END", state=state).compile().fingerprint

    assert build("One") == build("Other")
    assert build("One", x=declared) != build("One")
    assert build("One", x=declared) != build("One", x=bytes)


# -- immutability ----------------------------------------------------------------------------------


@pytest.mark.parametrize("attribute", ["name", "nodes", "edges", "fingerprint", "schema", "definition", "anything"])
def test_a_compiled_graph_can_not_be_assigned_to(attribute: str) -> None:
    """Every attribute is read-only."""
    with pytest.raises((AttributeError, TypeError)):
        setattr(rich().compile(), attribute, None)


def test_parts_of_a_compiled_graph_can_not_be_changed() -> None:
    """Its mappings refuse items, its sequences are tuples, its nodes are frozen."""
    graph = rich().compile()
    with pytest.raises(TypeError):
        graph.nodes["x"] = graph.nodes["first"]  # type: ignore[index]
    for sequence in (graph.edges, graph.joins, graph.routes, graph.error_edges, graph.warnings, graph.order):
        assert isinstance(sequence, tuple)
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.nodes["first"].timeout = 3  # type: ignore[misc]


async def test_a_compiled_graph_does_not_follow_its_builder() -> None:
    """Going on with the builder changes neither what was compiled nor what runs; a second compile has the change."""
    builder = flow("START -> a -> END")
    graph = builder.compile()
    before = (graph.to_json(), graph.to_mermaid(), graph.to_dot(), graph.fingerprint)
    builder.add_node("b", says("b")).add_edge("a", "b").interrupt_before_nodes("a").with_version("2")
    builder.add_join_edge(["a", "b"], END, id="late").limits(steps=3).must_pass("b", through="a")
    assert (graph.to_json(), graph.to_mermaid(), graph.to_dot(), graph.fingerprint) == before
    assert (await Executor(graph).run()).unwrap().log == ["a"]
    assert builder.compile().fingerprint != graph.fingerprint


async def test_runs_do_not_change_a_graph() -> None:
    """After runs that fanned out, jumped and were cut off the graph tells and draws the same."""
    graph = rich().compile()
    before = (graph.to_json(), graph.to_dot())
    for n in (1, 99):
        await Executor(graph, limits=Limits(max_steps=4)).run({"n": n})
    assert (graph.to_json(), graph.to_dot()) == before


# -- JSON ------------------------------------------------------------------------------------------


def test_json_round_trip() -> None:
    """Written and read back with its functions, the graph is the same: document, fingerprint, order, drawing."""
    graph = rich().compile()
    text = json.dumps(graph.to_json())
    again = StateGraph.from_json(text, FUNCTIONS, state=Trail).compile()
    assert again.to_json() == graph.to_json()
    assert (again.fingerprint, again.order, again.to_mermaid()) == (graph.fingerprint, graph.order, graph.to_mermaid())
    assert [problem.code for problem in again.warnings] == [problem.code for problem in graph.warnings]


async def test_json_without_the_state_class() -> None:
    """The state class is made from the document: fields, types, merge rules and defaults; the graph runs."""
    graph = flow("START -> a -> b -> END").compile()
    functions = {"a": says("a"), "b": says("b", n=3)}
    again = StateGraph.from_json(json.dumps(graph.to_json()), functions).compile()
    assert again.fingerprint == graph.fingerprint
    state = (await Executor(again).run({"log": ["in"]})).unwrap()
    assert (state.log, state.n, state.item) == (["in", "a", "b"], 3, "")


class Typed(BaseModel):
    """Types that a document can name."""

    flag: bool = True
    ratio: float = 0.5
    names: list[str] = ["x"]
    table: dict[str, list[int]] = {}
    pair: tuple[int, ...] = (1, 2)
    maybe: int | None = None
    anything: Any = None
    when: datetime.datetime = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    needed: str
    history: list[Message] = []


@pytest.mark.parametrize("state", [Typed, MessagesState])
def test_json_keeps_types_and_defaults(state: type[BaseModel]) -> None:
    """Field types and defaults survive the document, so the fingerprint is the same without the class."""

    async def node(_: Any) -> None: ...

    graph = StateGraph(state).add_node("a", node).set_entry_point("a").set_finish_point("a").compile()
    again = StateGraph.from_json(json.dumps(graph.to_json()), {"a": node}).compile()
    assert again.schema.describe() == graph.schema.describe()
    assert again.schema.start_values() == graph.schema.start_values()
    assert again.fingerprint == graph.fingerprint


@pytest.mark.parametrize(
    "text",
    ["().__class__", "__import__('os').getcwd()", "[x for x in ()]", "print(1)", "list[print(1)]", "(", "lambda: 1"],
)
def test_json_types_are_never_executed(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A type text that is no type is `Any`; nothing of a document is run."""
    doc = flow("START -> a -> END").compile().to_json()
    doc["state"]["item"] = {"type": text}
    graph = StateGraph.from_json(doc, {"a": says("a")}).compile()
    assert graph.schema.fields["item"].declared is Any
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("doc", "words"),
    [("[]", "object, not a list"), ("{}", "no 'entry' and no 'nodes'"), ('{"nodes": {}}', "no 'entry'")],
)
def test_json_that_is_no_graph(doc: str, words: str) -> None:
    """A document that can't be one is refused with what is missing."""
    with pytest.raises(ValueError, match=words):
        StateGraph.from_json(doc, {})


class HouseRule(Exception):
    """An error of the user's own."""


def test_json_error_edges() -> None:
    """Classes that are built in are found by name; others must be passed, and the error says how."""
    doc = flow("START -> a, b -> END").add_error_edge("a", "b", errors=(HouseRule, OSError)).compile().to_json()
    functions = {"a": says("a"), "b": says("b")}
    with pytest.raises(ValueError, match=r"edge of 'a' names 'HouseRule'.*functions\['HouseRule'\]"):
        StateGraph.from_json(doc, functions)
    again = StateGraph.from_json(doc, {**functions, "HouseRule": HouseRule}).compile()
    assert set(again.error_edges[0].errors) == {HouseRule, OSError}


def test_json_without_a_function() -> None:
    """A function that is missing is found by the checks of compile, by node."""
    doc = flow("START -> a -> END").compile().to_json()
    with pytest.raises(Exception, match=r"GA015 error: node 'a' is bound to None"):
        StateGraph.from_json(doc, {}).compile()


# -- drawings --------------------------------------------------------------------------------------

DRAWN = {
    (START, "first", "edge", ""),
    ("first", "small", "route", ""),
    ("first", "big", "route", ""),
    ("first", "fixer", "route", "otherwise"),
    ("fixer", "first", "jump", "again"),
    ("fixer", END, "jump", "stop"),
    ("meet", "sub", "route", ""),
    ("meet", "ask", "route", ""),
    ("meet", "fan", "route", "otherwise"),
    ("fan", "small", "map", "each"),
    ("fan", "meet", "map", "none"),
    ("small", "meet", "edge", ""),
    ("big", "ask", "join", "any"),
    ("sub", "ask", "join", "any"),
    ("ask", "meet", "edge", ""),
    ("sub", END, "edge", ""),
    ("big", "fixer", "error", "KeyError, ValueError"),
}


def test_networkx_has_every_transition() -> None:
    """The multigraph has the nodes with their kinds and exactly the declared transitions."""
    drawn = rich().compile().to_networkx()
    edges = {(source, target, data["kind"], data["label"]) for source, target, data in drawn.edges(data=True)}
    assert edges == DRAWN
    assert drawn.number_of_edges() == len(DRAWN)
    assert {name: data["kind"] for name, data in drawn.nodes(data=True)} == {
        START: "start",
        END: "end",
        "first": "function",
        "small": "function",
        "big": "function",
        "fixer": "function",
        "meet": "function",
        "sub": "subgraph",
        "ask": "interrupt",
        "fan": "map",
    }


def mermaid_edges(text: str) -> set[tuple[str, str]]:
    """The edges of a Mermaid text, by node name."""
    names = dict(re.findall(r'^    (\w+)[\[({]+"?(.*?)"?[\])}]+$', text, re.MULTILINE))
    names |= {"start": START, "finish": END}
    found = re.findall(r"^    (\w+) (?:-->|==>|-\.->)(?:\|.*?\|)? (\w+)$", text, re.MULTILINE)
    return {(names[source], names[target]) for source, target in found}


def test_mermaid_and_dot_agree_with_the_edges() -> None:
    """All three drawings show the same transitions, each once."""
    graph = rich().compile()
    pairs = {(source, target) for source, target, *_ in DRAWN}
    assert mermaid_edges(graph.to_mermaid()) == pairs
    assert set(re.findall(r'^    "(.*?)" -> "(.*?)"', graph.to_dot(), re.MULTILINE)) == pairs
    assert graph.to_mermaid().count("\n    ") - len(graph.names) - 2 == len(DRAWN)
    assert graph.to_dot().count(" -> ") == len(DRAWN)


@pytest.mark.parametrize("label", ['say "hi"', "a|b", "<b>", "back\\slash", "two\nlines", "end", "ünï"])
def test_drawings_survive_odd_names(label: str) -> None:
    """Quotes, bars, brackets, line breaks and reserved words in ids and labels stay inside their quotes."""
    builder = StateGraph(Trail).add_node(label, says("x")).add_node("b", says("b")).set_entry_point(label)
    graph = builder.add_conditional_edges(label, lambda state: label, {label: "b", "x": END}).compile()
    for text, arrow in ((graph.to_mermaid(), r"-->"), (graph.to_dot(), r"->")):
        lines = [line for line in text.split("\n") if re.search(f" {arrow}", line)]
        assert len(lines) == 3
        assert all(line.count('"') % 2 == 0 for line in (item.replace('\\"', "") for item in lines))
    assert set(graph.to_networkx().nodes) == {START, END, label, "b"}


class Older(typing_extensions.TypedDict):
    x: typing_extensions.Required[int]


async def test_typeddict_of_typing_extensions_is_a_state():
    """A TypedDict made by `typing_extensions` is a state class like that of `typing`."""
    graph = StateGraph(Older).add_node("a", lambda state: {"x": state["x"] + 1}, inline=True)
    graph.add_edge(START, "a").add_edge("a", END)
    assert (await Executor(graph.compile()).run({"x": 1})).state["x"] == 2
