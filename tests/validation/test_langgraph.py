"""The converter from LangGraph: other people's graphs are left alone, broken ones are found, as LangGraph runs them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from support.langgraph import END, START, Branch, Builder, Command, Compiled, Send, Spec, Wrapped

from graphagent.errors import UsageError
from graphagent.validation import Report, load_document, validate
from runner.convert.langgraph import documents, from_langgraph
from runner.convert.routers import Leads, leads

KEPT = Path(__file__).parent / "langgraph_graphs"


def judged(document: dict[str, Any]) -> Report:
    """What the validator says of a document, by the engine that it names."""
    source = load_document(document)
    return validate(source.builder, facts=source.facts)


def found(graph: Any) -> dict[str, str]:
    """Codes with severities."""
    return {one.code: one.severity for one in judged(from_langgraph(graph)).findings}


# -- other people's graphs ---------------------------------------------------------------------------


def published() -> Iterator[Any]:
    """Every document and drawing that was kept of a package."""
    for path in sorted(KEPT.glob("*.json")):
        content = json.loads(path.read_text())
        for name, document in content["objects"].items():
            yield pytest.param(document, id=f"{path.stem}:{name}")
        for name, drawing in content["drawings"].items():
            yield pytest.param(from_langgraph(drawing, name=name), id=f"{path.stem}:{name} drawn")


@pytest.mark.parametrize("document", list(published()))
def test_no_error_on_a_published_graph(document: dict[str, Any]) -> None:
    """Graphs that people use have no errors, and the search decides each of them within its bounds."""
    report = judged(document)
    assert [str(one.message) for one in report.at_least("error")] == []
    assert report.complete


def test_many_packages_are_looked_at() -> None:
    """The prebuilt agents, supervisor, swarm and others are among them."""
    packages = {json.loads(path.read_text())["package"] for path in KEPT.glob("*.json")}
    assert packages >= {"langgraph-prebuilt", "langgraph-supervisor", "langgraph-swarm", "langchain", "deepagents"}
    assert len(packages) >= 10


# -- broken graphs -----------------------------------------------------------------------------------


def either(state: Any) -> str:
    """One of two."""
    return "a" if state else "b"


def fan(state: Any) -> list[Send]:
    """A task for every item."""
    return [Send("w", {"item": item}) for item in state]


def fan_or_end(state: Any) -> Any:
    """Tasks, or the end."""
    if not state:
        return END
    return [Send("w", {"item": item}) for item in state]


def anywhere(state: Any) -> Any:
    """Whatever the state says."""
    return state["next"]


def named(state: Any) -> Any:
    """A node that can be seen."""
    return "b" if state else END


def both(state: Any) -> list[str]:
    """Always the same two."""
    return ["a", "b"]


def some(state: Any) -> list[str]:
    """Some that can't be seen."""
    return list(state)


def jumps(state: Any) -> Command[Literal["a", "b"]]:
    """Always goes somewhere."""
    return Command(goto="a" if state else "b")


def may_jump(state: Any) -> Any:
    """Goes somewhere, or not."""
    return Command(goto="b") if state else {}


FORK = [(START, "s"), ("s", "a"), ("s", "b")]
CASES: dict[str, tuple[Callable[[], Builder], dict[str, str]]] = {
    "a join behind a choice": (
        lambda: Builder((START, "s"), (["a", "b"], "j"), ("j", END)).route("s", either, ["a", "b"]),
        {"GA301": "error", "GA202": "info"},
    ),
    "a join behind a command": (
        lambda: Builder((START, "s"), (["a", "b"], "j"), ("j", END), s=Spec(Wrapped(jumps), ends=("a", "b"))),
        {"GA301": "error", "GA202": "info"},
    ),
    "a join behind all": (lambda: Builder(*FORK, (["a", "b"], "j"), ("j", END)), {}),
    "a join behind a list of all": (
        lambda: Builder((START, "s"), (["a", "b"], "j"), ("j", END)).route("s", both, ["a", "b"]),
        {},
    ),
    "a join behind some": (
        lambda: Builder((START, "s"), (["a", "b"], "j"), ("j", END)).route("s", some, ["a", "b"]),
        {"GA301": "error", "GA202": "info"},
    ),
    "branches of two lengths": (
        lambda: Builder(*FORK, ("a", "c"), ("c", "m"), ("b", "m"), ("m", END)),
        {"GA302": "error"},
    ),
    "branches of one length": (
        lambda: Builder(*FORK, ("a", "m"), ("b", "m"), ("m", END)),
        {"GA201": "warning", "GA302": "warning"},
    ),
    "a deferred merge": (
        lambda: Builder(*FORK, ("a", "c"), ("c", "m"), ("b", "m"), ("m", END), m=Spec(Wrapped(None), defer=True)),
        {},
    ),
    "a deferred merge behind a choice": (
        lambda: Builder(*FORK, ("a", "m"), ("m", END), m=Spec(Wrapped(None), defer=True)).route("b", named, ["m", END]),
        {},
    ),
    "a fan-out over nothing": (
        lambda: Builder((START, "s"), ("w", "c"), ("c", END)).route("s", fan, ["w"]),
        {"GA308": "warning", "GA018": "info"},
    ),
    "a fan-out or the end": (
        lambda: Builder((START, "s"), ("w", "c"), ("c", END)).route("s", fan_or_end, ["w", END]),
        {},
    ),
    "a fan-out that is not declared": (
        lambda: Builder((START, "s"), ("w", "c"), ("c", END)).route("s", fan_or_end),
        {},
    ),
    "a loop for ever": (lambda: Builder((START, "a"), ("a", "b"), ("b", "a")), {"GA104": "error", "GA303": "error"}),
    "a node on its own": (lambda: Builder((START, "a"), ("a", END), ("z", "a")), {"GA101": "error"}),
    "targets that can't be seen": (
        lambda: Builder((START, "a"), ("b", END)).route("a", anywhere),
        {"GA008": "warning"},
    ),
    "targets that can be seen": (lambda: Builder((START, "a"), ("b", END)).route("a", named), {}),
    "a jump that can be seen": (lambda: Builder((START, "a"), ("b", END), a=Spec(Wrapped(may_jump))), {}),
    "an entry by choice": (lambda: Builder(("a", END), ("b", END)).route(START, either, ["a", "b"]), {}),
    "a branch beside an edge": (
        lambda: Builder((START, "a"), ("a", "c"), ("b", END), ("c", END)).route("a", named, ["b", END]),
        {},
    ),
    "an error handler": (
        lambda: Builder((START, "a"), ("a", END), ("h", END), a=Spec(Wrapped(None), handler="h")),
        {},
    ),
}


@pytest.mark.parametrize(("make", "expected"), CASES.values(), ids=CASES)
def test_what_is_found_is_what_langgraph_does(make: Callable[[], Builder], expected: dict[str, str]) -> None:
    """Findings on the shapes of LangGraph; loops and data apart, they were compared with runs of LangGraph."""
    hints = {"GA106", "GA109"}
    assert {code: how for code, how in found(Compiled(make())).items() if code not in hints} == expected


@pytest.mark.parametrize(("between", "severity"), [([], "warning"), (["c"], "error")])
def test_a_choice_of_a_joins_target_is_no_arrival(between: list[str], severity: str) -> None:
    """In LangGraph it triggers the target beside the join: two runs, unless both come in one step."""
    last, *_ = [*between, "b"]
    shape: list[Any] = [*FORK, *(("b", name) for name in between), (["a", last], "j"), ("j", END)]
    assert found(Builder(*shape).route("a", lambda state: "j", {"x": "j", "y": END}))["GA302"] == severity


def test_a_send_is_trusted_as_far_as_it_is_declared() -> None:
    """A Send past the path map counts only if nothing else leads to its node."""
    routed = from_langgraph(Builder((START, "s"), ("w", END), ("x", "w")).route("s", fan, ["x"]))
    assert "w" not in json.dumps(routed["routes"])
    alone = from_langgraph(Builder((START, "s"), ("w", END)).route("s", fan_or_end, [END]))
    assert "w" in json.dumps(alone["routes"])


def test_destinations_that_are_only_drawn_may_be_passed_over() -> None:
    """An agent with destinations may hand over or end; a function that must return a command goes to one of them."""
    swarm = Builder(a=Spec(Compiled(Builder()), ends=("b",)), b=Spec(Compiled(Builder()), ends={"a": "to a"}))
    document = from_langgraph(swarm.route(START, either, ["a", "b"]))
    assert [route["targets"] for route in document["routes"][1:]] == [
        {"b": "b", "no goto": END},
        {"to a": "a", "no goto": END},
    ]
    assert judged(document).at_least("error") == ()
    bound = from_langgraph(Builder((START, "s"), ("a", END), ("b", END), s=Spec(Wrapped(jumps), ends=("a", "b"))))
    assert bound["routes"][0]["targets"] == {"a": "a", "b": "b"}


def test_what_a_compiled_graph_adds() -> None:
    """Breakpoints, the checkpointer and the name come from the compiled graph."""
    builder = Builder((START, "a"), ("a", END))
    document = from_langgraph(Compiled(builder, name="mine", before="*", after=["a"], checkpointer=object()))
    assert document["name"] == "mine"
    assert (document["interrupt_before"], document["interrupt_after"]) == (["a"], ["a"])
    assert document["checkpointer"] is True
    assert "checkpointer" not in from_langgraph(Compiled(builder))
    assert from_langgraph(builder, name="own")["name"] == "own"


def test_names_that_a_state_of_ours_can_t_have() -> None:
    """Channels that begin with an underscore are left out; a router of START gets an id of its own."""
    builder = Builder((START, "start"), ("start", END), ("b", END)).route(START, named, ["b", END])
    builder.channels = {"_hidden": object(), "messages": object()}
    document = from_langgraph(builder)
    assert list(document["state"]) == ["messages"]
    assert document["entry"] == ["start_"]
    assert judged(document).at_least("error") == ()


def test_graphs_inside_are_converted_too() -> None:
    """`documents` gives the graph and all inside it by path, whatever their depth."""
    leaf = Compiled(Builder((START, "x"), ("x", END)))
    inner = Compiled(Builder((START, "y"), ("y", END)), inside={"y": leaf})
    outer = Compiled(Builder((START, "z"), ("z", END)), name="top", inside={"z": inner})
    assert list(documents(outer)) == ["top", "top/z", "top/z/y"]


def test_older_branches_with_a_then() -> None:
    """What comes `then` waits for those that were chosen."""
    builder = Builder((START, "s"), ("t", END), a=Spec(Wrapped(None)), b=Spec(Wrapped(None)))
    branch = Branch(Wrapped(some), {"a": "a", "b": "b"})
    branch.then = "t"  # type: ignore[attr-defined]
    builder.branches["s"]["x"] = branch
    assert found(builder) == {}


@pytest.mark.parametrize("thing", [None, 3, "graph", {"nodes": []}, object(), Builder])
def test_anything_else_is_refused(thing: Any) -> None:
    """A typed error names what can be passed."""
    with pytest.raises(UsageError, match="get_graph"):
        from_langgraph(thing)


# -- drawings ----------------------------------------------------------------------------------------


def drawn(*edges: tuple[Any, ...], nodes: str = "", **metadata: Any) -> dict[str, Any]:
    """The data of a drawing: (source, target) or (source, target, label) for a conditional edge."""
    ids = [*dict.fromkeys([*(end for edge in edges for end in edge[:2]), *nodes.split()])]
    made: list[dict[str, Any]] = []
    for edge in edges:
        more = {"conditional": True, **({"data": edge[2]} if edge[2] else {})} if len(edge) > 2 else {}
        made.append({"source": edge[0], "target": edge[1], **more})
    listed = [{"id": id, **({"metadata": metadata[id]} if id in metadata else {})} for id in ids]
    return {"nodes": listed, "edges": made}


def test_conditional_edges_of_a_drawing_are_one_route() -> None:
    """Labels are kept, also where two edges have the same; conditional edges out of START get a router."""
    drawing = drawn((START, "a", ""), (START, "b", "x"), ("a", "b", "yes"), ("a", END, "yes"), ("b", END))
    document = from_langgraph(drawing)
    assert document["entry"] == ["start"]
    assert {route["from"]: route["targets"] for route in document["routes"]} == {
        "start": {"a": "a", "x": "b"},
        "a": {"yes": "b", f"yes to {END}": END},
    }
    assert judged(document).at_least("warning") == ()


def test_a_drawing_that_can_t_be_all_is_not_called_clean() -> None:
    """Without a way to END, or with a node that is cut off, targets count as unknown: warnings, no errors."""
    for drawing in (
        drawn((START, "a"), ("a", "b", ""), ("b", "a", "")),
        drawn((START, "a"), ("a", END), nodes="b"),
    ):
        report = judged(from_langgraph(drawing))
        assert {one.code for one in report.findings} >= {"GA008"}
        assert report.at_least("error") == ()


def test_a_drawing_shows_breakpoints_and_deferred_nodes() -> None:
    """Metadata of nodes is read."""
    fork = [(START, "s"), ("s", "a"), ("s", "b"), ("b", "c"), ("a", "m"), ("c", "m"), ("m", END)]
    document = from_langgraph(drawn(*fork, m={"defer": True}, a={"__interrupt": "before,after"}))
    assert (document["interrupt_before"], document["interrupt_after"]) == (["a"], ["a"])
    assert judged(document).findings == ()
    assert "GA302" in {one.code for one in judged(from_langgraph(drawn(*fork))).findings}


def test_a_drawing_object_will_do() -> None:
    """What `get_graph()` returns, or an object that has nothing else."""

    class Drawing:
        edges: list[Any] = []

        def to_json(self) -> dict[str, Any]:
            return drawn((START, "a"), ("a", END))

    class Pregel:
        name = "functional"

        def get_graph(self) -> Drawing:
            return Drawing()

    assert from_langgraph(Drawing())["edges"] == [["a", END]]
    assert from_langgraph(Pregel())["name"] == "functional"


def test_a_sequence_that_can_t_be_drawn_is_refused() -> None:
    """A sequence of runnables with a graph inside: the error says to pass the graph."""

    class Sequence:
        def get_graph(self) -> Any:
            raise ValueError("has no first node")

    with pytest.raises(UsageError, match="pass the graph inside"):
        from_langgraph(Sequence())


# -- what a router shows -----------------------------------------------------------------------------

NODES = ["a", "b", "w"]
NEXT = "b"


def through_a_variable(state: Any) -> str:
    """A name that is assigned first."""
    going = "a"
    if state:
        going = NEXT
    return going


def through_a_call(state: Any) -> str:
    """A name that something else knows."""
    return str(state)


def fan_by_name(state: Any, target: str = "w") -> Any:
    """Sends to a node that is no constant."""
    return [Send(target, item) for item in state]


def command_list(state: Any) -> Any:
    """A goto with several."""
    return Command(goto=["a", "b"])


def command_sends(state: Any) -> Any:
    """A goto with Sends."""
    return Command(goto=[Send("w", item) for item in state])


async def later(state: Any) -> Literal["a"]:
    """An async router."""
    return "a"


no_source: dict[str, Any] = {"Send": Send}
exec("def sends(state):\n    return [Send('w', x) for x in state]\n", no_source)

SHOWN: dict[str, tuple[Any, Leads]] = {
    "a conditional expression": (either, Leads(("a", "b"), (), False, False, True)),
    "a variable": (through_a_variable, Leads(("a", "b"), (), False, False, True)),
    "a call": (through_a_call, Leads((), (), False, False, False)),
    "the state": (anywhere, Leads((), (), False, False, False)),
    "an async one": (Wrapped(None, later), Leads(("a",), (), False, False, True, (("a",),))),
    "a partial twin": (Wrapped(either, partial(anywhere)), Leads(("a", "b"), (), False, False, True)),
    "Sends": (fan, Leads(("w",), ("w",), False, True, True)),
    "Sends by name": (fan_by_name, Leads(("w",), None, False, True, False)),
    "Sends without source": (no_source["sends"], Leads(("w",), ("w",), False, True, True)),
    "a list": (both, Leads(("a", "b"), (), True, False, True, (("a", "b"),))),
    "a goto with several": (command_list, Leads(("a", "b"), (), True, True, True, (("a", "b"),))),
    "a goto with Sends": (command_sends, Leads(("w",), ("w",), False, True, True)),
    "no function": (Wrapped(None), Leads()),
}


@pytest.mark.parametrize(("router", "shown"), SHOWN.values(), ids=SHOWN)
def test_what_a_router_shows(router: Any, shown: Leads) -> None:
    """Names, Sends, several at once; whether nothing else can be chosen."""
    assert leads(router, NODES) == shown
