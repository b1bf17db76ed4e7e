"""GA0xx beyond what `compile()` refuses: graphs that run themselves, children that don't fit, entries, strictness."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.graphs import Trail, flow, says
from support.rules import nothing, with_child
from typing_extensions import TypedDict

from graphagent import END, START, CompiledGraph, Executor, Send, StateGraph, add, append, reducer
from graphagent.errors import GraphDefinitionError
from graphagent.validation import Diagnostic, validate
from graphagent.validation.example import report


def found(graph: CompiledGraph | StateGraph, code: str) -> list[Diagnostic]:
    """The findings of one rule."""
    return list(validate(graph, rules=[code]).findings)


# -- GA001 ----------------------------------------------------------------------------------------

ENTRIES = [
    ("entry\na -> b\nb -> a", "there is only a ring: 'a' -> 'b' -> 'a'", ("a", "b")),
    ("entry\na -> b\nb -> c\nc -> b", "nothing leads to 'a'; call", ()),
    ("entry\na -> END\nb ? c\nc & b => b", "nothing leads to 'a'; there is only a ring: 'b' -> 'c' -> 'b'", ("b", "c")),
    ("entry\na ? b\nb !> c\nc -> a, d\nd -> END", "a ring: 'a' -> 'b' -> 'c' -> 'a'", ("a", "b", "c")),
]


@pytest.mark.parametrize(("text", "message", "at"), ENTRIES)
def test_a_graph_without_an_entry_names_where_it_could_begin(
    text: str, message: str, at: tuple[str, ...] | None
) -> None:
    """The nodes that nothing leads to, and a ring that none of them leads to."""
    (finding,) = [finding for finding in report(text).findings if finding.code == "GA001"]
    assert message in finding.message
    assert finding.at == at


# -- compile(strict=...) --------------------------------------------------------------------------


def test_compile_keeps_its_warnings_on_the_graph() -> None:
    """Errors stop a strict compile; warnings and notes are on the compiled graph, and validate has them again."""
    builder = flow("START -> a -> b -> END", "a -> b")
    builder.add_join_edge(["a"], "b")
    graph = builder.compile(strict=True)
    assert [(problem.code, problem.severity) for problem in graph.warnings] == [("GA011", "warning"), ("GA019", "info")]
    assert {"GA011", "GA019"} <= {finding.code for finding in validate(graph).findings}


def test_a_router_without_targets_stops_a_strict_compile_only() -> None:
    """GA008 is an error of a strict graph and a warning of another, for compile() and validate alike."""
    builder = flow("START -> a -> END", b=says("b")).add_conditional_edges("a", lambda state: "b", with_edges=True)
    with pytest.raises(GraphDefinitionError, match="GA008"):
        builder.compile(strict=True)
    graph = builder.compile(strict=False)
    assert [problem.code for problem in graph.warnings] == ["GA008"]
    assert [finding.severity for finding in found(graph, "GA008")] == ["warning"]
    assert [finding.severity for finding in found(builder, "GA008")] == ["error"]


# -- GA016 ----------------------------------------------------------------------------------------


def alone(fn: Callable[..., Any], name: str = "tree") -> StateGraph:
    """A graph of one node."""
    return StateGraph(Trail, name=name).add_node("a", fn).add_edge(START, "a").add_edge("a", END)


async def by_global(state: Trail) -> None:
    """Runs the graph that it is a node of."""
    await Executor(GLOBAL).run({})


async def by_helper(state: Trail) -> None:
    """Runs it by way of another function."""
    await helper()


async def helper() -> None:
    """Runs a graph."""
    await EXECUTOR.run({})


def by_nested(state: Trail) -> Any:
    """Names it in a function inside."""
    return [GLOBAL for _ in (lambda: GLOBAL)()]


def by_attribute(state: Any) -> Any:
    """`GLOBAL` is an attribute here, not the global."""
    return state.GLOBAL


class Runner:
    """A node that is a method."""

    def run(self, state: Trail) -> Any:
        """Names the graph."""
        return METHOD


GLOBAL = alone(by_global).compile()
HELPED = alone(by_helper).compile()
EXECUTOR = Executor(HELPED)
METHOD = alone(Runner().run)


def test_a_function_that_runs_its_own_graph_is_found() -> None:
    """By name, by way of a helper with an executor, as a method with a builder: a warning, for depth isn't known."""
    for graph in (GLOBAL, HELPED, METHOD):
        (finding,) = found(graph, "GA016")
        assert (finding.severity, finding.at) == ("warning", ("a",))
        assert "'tree.a' -> 'tree'" in finding.message


def test_a_ring_through_another_graph_is_named() -> None:
    """The finding has the way: parent, child, and back."""

    def back(state: Any) -> Any:
        return outer

    inner = alone(back, "leaf").compile()
    outer = StateGraph(Trail, name="tree").add_subgraph_node("sub", inner).add_edge(START, "sub").add_edge("sub", END)
    (finding,) = [finding for finding in found(outer, "GA016") if finding.graph == "tree"]
    assert "'tree.sub' -> 'leaf.a' -> 'tree'" in finding.message
    assert finding.at == ("sub",)


def test_naming_another_graph_is_fine() -> None:
    """Other graphs, attributes of that name, partials of harmless functions: nothing is reported."""
    for fn in (by_attribute, by_nested, partial(lambda n, state: None, 1)):
        assert found(alone(fn), "GA016") == []


def test_a_bounded_recursion_can_be_allowed() -> None:
    """With a reason on the node that the message names."""

    def again(state: Any) -> Any:
        return graph

    builder = StateGraph(Trail).add_node("a", again, allow=("GA016: stops at depth 3",))
    graph = builder.add_edge(START, "a").add_edge("a", END).compile()
    assert validate(graph, rules=["GA016", "GA900"]).findings == ()


# -- GA017 ----------------------------------------------------------------------------------------


def state(**fields: Any) -> type[BaseModel]:
    """A state class; a field is a type, or a type with its default."""
    plain = {name: spec if isinstance(spec, tuple) else (spec, None) for name, spec in fields.items()}
    return type("State", (BaseModel,), {
        "__annotations__": {name: declared for name, (declared, _) in plain.items()},
        **{name: default for name, (_, default) in plain.items() if default is not None},
    })  # fmt: skip


CHILDREN: list[tuple[str, type, type, list[str]]] = [
    ("alike", state(x=(int, 1)), state(x=(int, 2)), []),
    ("wider", state(x=(int, 1)), state(x=(float, 2.0)), []),
    ("no field in common", state(x=(int, 1)), state(y=(str, "a")), []),
    ("number into text", state(x=(int, 1)), state(x=(str, "a")), ["error"]),
    ("text into number", state(x=(str, "a")), state(x=(int, 1)), ["warning"]),
    ("list into dict", state(x=(list[str], [])), state(x=(dict[str, str], {})), ["error"]),
    ("items", state(x=(list[int], [])), state(x=(list[str], [])), ["error"]),
    ("maybe none", state(x=(int | None, 1)), state(x=(int, 1)), ["warning"]),
    ("anything", state(x=(Any, 1)), state(x=(int, 1)), []),
]


@pytest.mark.parametrize(
    ("parent", "child", "expected"), [row[1:] for row in CHILDREN], ids=[row[0] for row in CHILDREN]
)
def test_shared_fields_have_to_fit(parent: type, child: type, expected: list[str]) -> None:
    """An error where no value fits, a warning where only some do."""
    assert [finding.severity for finding in found(with_child(parent, child), "GA017")] == expected


def parent_of(child: StateGraph, parent: type, **options: Any) -> StateGraph:
    """A graph with that child."""
    outer = StateGraph(parent, name="parent").add_subgraph_node("inner", child.compile(), **options)
    return outer.add_edge(START, "inner").add_edge("inner", END)


def child_of(child: type, writes: tuple[str, ...] | None = None, **options: Any) -> StateGraph:
    """A child of one node."""
    made = StateGraph(child, name="child", **options).add_node("a", nothing, writes=writes)
    return made.add_edge(START, "a").add_edge("a", END)


def test_inputs_and_outputs_need_counterparts() -> None:
    """A required input that the parent lacks, and outputs of which it has none, are warnings."""
    asks = child_of(state(question=str, answer=(str, "-")), inputs=["question"], outputs=["answer"])
    findings = found(parent_of(asks, state(qestion=(str, "-"))), "GA017")
    assert [(finding.severity, finding.at) for finding in findings] == [
        ("warning", ("inner",)),
        ("warning", ("inner", "question")),
    ]
    assert "did you mean 'qestion'?" in findings[1].message
    assert found(parent_of(asks, state(question=(str, "-"), answer=(str, "-"))), "GA017") == []


def test_a_merge_rule_has_to_say_what_was_added() -> None:
    """A custom rule, or `add` of texts, can't: an error where the child declares that it writes the field."""
    custom = Annotated[list[str], reducer(lambda old, new: [*(old or []), *new])]
    for declared, default in ((custom, []), (Annotated[str, add], "")):
        parent = state(x=(declared, default or "")) if default == "" else state(x=(declared, default))
        for writes, expected in ((("x",), ["error"]), (None, ["warning"]), ((), [])):
            child = child_of(state(x=(type(default), default)), writes)
            assert [f.severity for f in found(parent_of(child, parent), "GA017")] == expected
    fine = state(x=(Annotated[list[str], append], []))
    assert found(parent_of(child_of(fine, ("x",)), fine), "GA017") == []


class Known(TypedDict):
    x: int


class Unknown(TypedDict):
    y: int


def gives_known(state: Any) -> Known:
    """Names a field that is there."""
    return {"x": 1}


def gives_unknown(state: Any) -> Unknown:
    """Names a field that isn't."""
    return {"y": 1}


def takes_nothing() -> dict[str, Any]:
    """Can't be called with a state."""
    return {}


def says_nothing(state: Any) -> dict[str, Any]:
    """Names no field."""
    return {"y": 1}


@pytest.mark.parametrize("role", ["input_mapper", "output_mapper"])
def test_what_a_mapper_promises_has_to_be_there(role: str) -> None:
    """Fields of the return annotation are looked up in the state they go to; what isn't said isn't judged."""
    text, number = state(x=(str, "a")), state(x=(int, 1))
    other = {"input_mapper": "output_mapper", "output_mapper": "input_mapper"}[role]
    for mapper, expected in ((gives_known, []), (gives_unknown, [("inner", "y")]), (says_nothing, [])):
        graph = parent_of(child_of(number), text, **{role: mapper, other: says_nothing})
        findings = found(graph, "GA017")
        assert [(finding.at, finding.severity) for finding in findings] == [(at, "error") for at in expected]
    graph = parent_of(child_of(number), text, **{role: takes_nothing, other: says_nothing})
    assert "needs a function of the state" in found(graph, "GA017")[0].message


# -- GA018 ----------------------------------------------------------------------------------------


async def sends(state: Trail) -> list[Send]:
    """Fans out to 'w'."""
    return [Send("w", {"item": text}) for text in state.log]


def test_a_fan_out_by_a_function_has_no_collector() -> None:
    """Sends without another way on are noted; a map node has its collector."""
    assert [finding.at for finding in found(flow("START -> p", "w -> r -> END", p=sends, w=says("w")), "GA018")] == [
        ("p",)
    ]
    fan = (
        StateGraph(Trail)
        .add_map_node("m", says("w"), over="log", item_key="item", collect="r")
        .add_node("r", says("r"))
    )
    assert found(fan.add_edge(START, "m").add_edge("r", END), "GA018") == []
