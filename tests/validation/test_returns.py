"""What a node's source shows of where it goes: several ids in one goto, END, and returns that go nowhere. What is
predicted happens in the real executor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from graphagent import END, START, Command, Executor, Send, StateGraph
from graphagent.errors import UsageError
from graphagent.testing.scripted import play
from graphagent.validation import Facts, validate


class State(BaseModel):
    """A flag to choose by."""

    x: int = 0
    y: str = ""


def quiet(state: State) -> None:
    """Does nothing."""


def both(state: State) -> Command:
    """Starts two nodes at once."""
    return Command(goto=["b", "c"])


def one_or_both(state: State) -> Command:
    """Starts one node, or two."""
    return Command(goto=["b", "c"] if state.x else "b")


def on_or_end(state: State) -> Command:
    """Goes on, or ends the branch."""
    return Command(goto="b" if state.x else END)


def mentions(state: State) -> Command:
    """Names a node in what it writes, and jumps to another."""
    return Command(update={"y": "c"}, goto="b")


def falls_off(state: State) -> Any:  # noqa: RET503
    """Jumps in one case and says nothing in the other."""
    if state.x:
        return Command(goto="b")


def updates_only(state: State) -> Any:
    """Jumps in one case and only writes in the other."""
    return Command(goto="b") if state.x else {"y": "done"}


def commands_only(state: State) -> Any:
    """Jumps in one case; in the other its Command has no goto."""
    if state.x:
        return Command(goto="b")
    return Command(update={"y": "done"})


def always(state: State) -> Any:
    """Jumps whatever happens."""
    while True:
        try:
            if state.x:
                return Command(goto="b")
            raise ValueError("x")
        except ValueError:
            return Command(goto="c")


def matched(state: State) -> Any:
    """Jumps in every case of a match."""
    match state.x:
        case 0:
            return Command(goto="b")
        case _:
            return Command(goto="c")


def forks(fn: Callable[..., Any], *, joined: bool, destinations: list[str] | None) -> StateGraph:
    """A node that jumps to b and c, which lead to m."""
    graph = StateGraph(State).add_node("a", fn, destinations=destinations)
    for name in ("b", "c", "m"):
        graph.add_node(name, quiet)
    graph.add_edge(START, "a").add_edge("m", END)
    return graph.add_join_edge(["b", "c"], "m") if joined else graph.add_edge("b", "m").add_edge("c", "m")


def found(graph: StateGraph) -> dict[str, str]:
    """The script of the first finding, by its code; notes are left out."""
    report = validate(graph, facts=Facts(engine="eager"))
    return {f.code: f.script for f in report.findings if f.severity != "info"}


@pytest.mark.parametrize("destinations", [["b", "c"], None], ids=["declared", "seen"])
@pytest.mark.parametrize(
    ("fn", "joined", "codes"),
    [(both, True, set()), (both, False, {"GA302"}), (one_or_both, True, {"GA301"}), (one_or_both, False, {"GA302"})],
    ids=["both-joined", "both", "one-or-both-joined", "one-or-both"],
)
def test_several_ids_in_one_goto_start_together(
    fn: Callable[..., Any], joined: bool, codes: set[str], destinations: list[str] | None
) -> None:
    """A goto of two ids is a fork: joined it is fine, merged by plain edges the node behind runs twice."""
    graph = forks(fn, joined=joined, destinations=destinations)
    scripts = found(graph)
    assert scripts.keys() == codes
    for code, script in scripts.items():
        played = asyncio.run(play(graph.compile(), script))
        names = [graph.compile().names[pick.node] for pick in played.picks]
        assert played.result.status == "stalled" if code == "GA301" else names.count("m") == 2


def test_a_goto_to_the_end_need_not_be_declared() -> None:
    """The branch that ends leaves the join behind it waiting; the trace stalls in the executor."""
    graph = StateGraph(State).add_node("a", on_or_end)
    for name in ("s", "b", "d", "j"):
        graph.add_node(name, quiet)
    graph.add_edge(START, "s").add_edge("s", "a").add_edge("s", "d").add_join_edge(["b", "d"], "j").add_edge("j", END)
    scripts = found(graph)
    assert scripts.keys() == {"GA301"}
    assert asyncio.run(play(graph.compile(), scripts["GA301"])).result.status == "stalled"


def test_an_output_that_a_goto_to_the_end_leaves_out_is_missed() -> None:
    """What is written behind the jump only is not there when the run ends at once."""

    class Needed(BaseModel):
        x: int = 0
        out: str

    def writes(state: Needed) -> dict[str, str]:
        return {"out": "done"}

    graph = StateGraph(Needed, inputs=["x"], outputs=["out"]).add_node("a", on_or_end).add_node("b", writes)
    graph.add_edge(START, "a").add_edge("b", END)
    assert "GA406" in {finding.code for finding in validate(graph).findings}


def test_a_loop_that_is_left_by_a_jump_to_the_end_is_left() -> None:
    """A supervisor that jumps to END, undeclared, beside a node that has an edge there: no false alarm."""
    graph = StateGraph(State).add_node("a", on_or_end).add_node("b", quiet).add_node("z", quiet)
    graph.add_edge(START, "a").add_edge("b", "a").add_error_edge("b", "z").add_edge("z", END)
    assert not found(graph)


def test_a_name_in_what_is_written_is_no_jump() -> None:
    """Where every goto is written out, other constants that are node ids are not taken for targets."""
    graph = StateGraph(State).add_node("a", mentions).add_node("b", quiet).add_node("c", quiet).add_node("s", quiet)
    graph.add_edge(START, "s").add_edge("s", "a").add_edge("s", "c").add_join_edge(["b", "c"], END)
    assert not found(graph)


def test_a_goto_to_the_target_of_its_own_join_counts() -> None:
    """A source that jumps straight to the join's target skips its other edges, and the join waits for what is there."""

    def skips(state: State) -> Any:
        if state.x:
            return Command(goto="j")
        return {"y": "on"}

    graph = StateGraph(State).add_node("a", skips).add_node("b", quiet).add_node("j", quiet)
    graph.add_edge(START, "a").add_edge("a", "b").add_join_edge(["a", "b"], "j").add_edge("j", END)
    assert "GA301" in found(graph)
    assert asyncio.run(Executor(graph.compile()).run({"x": 1})).status == "stalled"


@pytest.mark.parametrize("fn", [falls_off, updates_only, commands_only])
def test_a_return_without_a_jump_ends_in_silence(fn: Callable[..., Any]) -> None:
    """A node whose only ways out are jumps, and which may return without one: the run ends without reaching END."""
    graph = StateGraph(State).add_node("a", fn, destinations=["b"]).add_node("b", quiet)
    graph.add_edge(START, "a").add_edge("b", END)
    scripts = found(graph)
    assert scripts.keys() == {"GA308"}
    assert asyncio.run(play(graph.compile(), scripts["GA308"])).result.reason.startswith("end_not_reached")
    assert asyncio.run(Executor(graph.compile()).run({})).reason.startswith("end_not_reached")


@pytest.mark.parametrize("fn", [always, matched])
def test_a_node_that_always_jumps_is_left_alone(fn: Callable[..., Any]) -> None:
    """Every way through the body ends in a jump."""
    graph = StateGraph(State).add_node("a", fn, destinations=["b", "c"]).add_node("b", quiet).add_node("c", quiet)
    graph.add_edge(START, "a").add_edge("b", END).add_edge("c", END)
    assert not found(graph)


def none_at_all(state: State) -> list[Literal["b", "c"]]:
    """May pick nothing."""
    if not state.x:
        return []
    return ["b", "c"]


def some(state: State) -> list[Literal["b", "c"]]:
    """Picks at least one, as far as can be told."""
    return ["b", "c"] if state.x else ["b"]


@pytest.mark.parametrize(
    ("router", "default", "codes"),
    [(none_at_all, None, {"GA308"}), (none_at_all, "b", set()), (some, None, set())],
    ids=["none", "default", "some"],
)
def test_a_router_that_may_pick_none(router: Callable[..., Any], default: str | None, codes: set[str]) -> None:
    """An empty list that is written out is an outcome: the branch ends there, unless there is a default."""
    graph = StateGraph(State).add_node("a", quiet).add_node("b", quiet).add_node("c", quiet)
    graph.add_multi_conditional_edges("a", router, default=default).add_edge(START, "a")
    graph.add_join_edge(["b", "c"], END, mode="active")
    assert found(graph).keys() == codes


def sends(state: State) -> list[Send]:
    """Fans out; a list of Sends is a jump."""
    return [Send("b", {"x": 1})] if state.x else [Send("c", {})]


def test_sends_are_jumps() -> None:
    """A list of Sends, and a conditional one, are no return without a jump."""
    graph = StateGraph(State).add_node("a", sends, destinations=["b", "c"]).add_node("b", quiet).add_node("c", quiet)
    graph.add_edge(START, "a").add_edge("b", END).add_edge("c", END)
    assert "stay" not in str([f.script for f in validate(graph).findings])


def test_a_child_must_be_given_what_it_reads() -> None:
    """A child without declared inputs takes what is set: a field it reads first, and nobody sets, is missed."""

    class Needing(BaseModel):
        x: int

    def reads(state: Needing) -> dict[str, int]:
        return {"x": state.x + 1}

    def writes(state: Needing) -> dict[str, int]:
        return {"x": 1}

    child = StateGraph(Needing, name="child").add_node("c", reads).add_edge(START, "c").add_edge("c", END).compile()

    def parent(*before: str) -> StateGraph:
        graph = StateGraph(Needing, inputs=[]).add_subgraph_node("n", child).add_edge("n", END)
        if before:
            return graph.add_node("w", writes).add_edge(START, "w").add_edge("w", "n")
        return graph.add_edge(START, "n")

    assert "GA401" in {finding.code for finding in validate(parent()).findings}
    assert "UnsetField" in repr(asyncio.run(Executor(parent().compile()).run({})).error)
    assert "GA401" not in {finding.code for finding in validate(parent("w")).findings}


def test_a_script_of_an_unknown_goto_names_the_known() -> None:
    """A pick of several ids is named by all of them."""
    with pytest.raises(UsageError, match=r"goto:b\+c"):
        asyncio.run(play(forks(one_or_both, joined=True, destinations=None).compile(), "a=goto:nowhere"))
