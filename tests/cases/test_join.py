"""Public fault reports about joins (kind `join`): starved, early, doubled and forgotten joins."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated, Any

import anyio
import pytest
from pydantic import BaseModel
from support.graphs import says
from support.ordering import Turns

from graphagent import END, Command, Executor, StateGraph, add, append
from graphagent.errors import RunStalled

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["superstep", "eager"])
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine; the way without debug mode is the same as far as this file goes."""
    return str(request.param)


class Log(BaseModel):
    log: Annotated[list[str], append] = []
    pick: list[str] = []
    laps: list[list[str]] = []
    lap: Annotated[int, add] = 0


def choice(mode: Any, *, beside: bool = False) -> StateGraph:
    """A router sends control to some of p1 and p2; the join `j` waits for them; `beside` also ends at END."""
    graph = StateGraph(Log).add_node("entry", says("entry")).add_node("p1", says("p1")).add_node("p2", says("p2"))
    graph.add_node("j", says("j")).add_node("d", says("d")).set_entry_point("entry").set_finish_point("d")
    graph.add_multi_conditional_edges("entry", lambda state: state.pick, ["p1", "p2"])
    graph.add_join_edge(["p1", "p2"], "j", mode=mode).add_edge("j", "d")
    return graph.add_edge("p1", END) if beside else graph


@pytest.mark.parametrize("mode", ["all", 2])
@pytest.mark.parametrize("beside", [False, True])
async def test_c004_a_starved_join_is_a_stall(store: Any, engine: Any, lineage: str, mode: Any, beside: bool) -> None:
    """A join whose parent was skipped ends the run `stalled`, naming join and parent, also when END was reached."""
    executor = Executor(choice(mode, beside=beside).compile(), store, engine)
    result = await executor.run({"pick": ["p1"]}, lineage=lineage)
    assert result.status == "stalled"
    assert "'j'" in result.reason
    assert "'p2'" in result.reason
    assert result.state.log == ["entry", "p1"]
    with pytest.raises(RunStalled, match="'p2'"):
        result.unwrap()
    again = await executor.resume(lineage)
    assert (again.status, again.state.log) == ("stalled", ["entry", "p1"])


@pytest.mark.parametrize("mode", ["active", "any", 1])
@pytest.mark.parametrize("pick", [["p1"], ["p2"], ["p1", "p2"]])
async def test_c004_a_join_that_can_do_without_fires_once(store: Any, engine: Any, mode: Any, pick: list[str]) -> None:
    """A join that treats the unreachable parent as skipped runs exactly once, and so does what follows."""
    result = await Executor(choice(mode).compile(), store, engine).run({"pick": pick})
    assert result.status == "completed"
    assert result.state.log == ["entry", *pick, "j", "d"]


async def test_c004_a_child_that_stalls_fails_its_node(store: Any, engine: Any) -> None:
    """A starved join inside a child graph is a failure of the node that runs it, never a finished child."""
    parent = StateGraph(Log).add_subgraph_node("child", choice("all").compile()).add_node("after", says("after"))
    parent.set_entry_point("child").add_edge("child", "after").set_finish_point("after")
    result = await Executor(parent.compile(), store, engine).run({"pick": ["p2"]})
    assert result.status == "failed"
    assert isinstance(result.error, RunStalled)
    assert "'child'" in result.reason
    assert "'p1'" in result.reason
    assert result.state.log == []


async def test_c004_a_failed_parent_with_an_error_edge_does_not_starve_an_active_join(store: Any, engine: Any) -> None:
    """A parent that fails and leaves by its error edge can't come any more: an active join runs without it."""

    async def fails(_: Any) -> None:
        raise ValueError("no")

    graph = StateGraph(Log).add_node("p1", says("p1")).add_node("p2", fails).add_node("mend", says("mend"))
    graph.add_node("j", says("j")).set_entry_point("p1", "p2").add_error_edge("p2", "mend").set_finish_point("j")
    graph.add_join_edge(["p1", "p2"], "j", mode="active")
    result = await Executor(graph.compile(), store, engine).run()
    assert result.status == "completed"
    assert sorted(result.state.log) == ["j", "mend", "p1"]


async def test_c004_leftovers_of_a_later_lap_are_a_stall(store: Any, engine: Any) -> None:
    """A join that was full in one lap and half full in the next stalls: the first lap doesn't pay for the second."""
    graph = StateGraph(Log).add_node("tick", lambda state: {"lap": 1}, inline=True)
    graph.add_node("a", says("a")).add_node("b", says("b")).add_node("j", says("j")).set_entry_point("tick")
    graph.add_multi_conditional_edges("tick", lambda state: state.laps[state.lap - 1], ["a", "b"])
    graph.add_join_edge(["a", "b"], "j")
    graph.add_conditional_edges("j", lambda state: "tick" if state.lap < len(state.laps) else END, ["tick"])
    executor = Executor(graph.compile(), store, engine)
    full = await executor.run({"laps": [["a", "b"], ["a", "b"]]})
    assert (full.status, full.state.log.count("j")) == ("completed", 2)
    half = await executor.run({"laps": [["a", "b"], ["b"]]})
    assert (half.status, half.state.log.count("j")) == ("stalled", 1)
    assert "'a'" in half.reason


def diamonds(first: anyio.Event, seen: list[str]) -> StateGraph:
    """Two diamonds that share the start only; the second one's parent waits until the first has been collected."""

    async def collected(_: Any) -> dict[str, list[str]]:
        seen.append("c1")
        first.set()
        return {"log": ["c1"]}

    async def slow(_: Any) -> dict[str, list[str]]:
        await first.wait()
        seen.append("slow")
        return {"log": ["slow"]}

    graph = StateGraph(Log).add_node("start", says("start")).add_node("c1", collected).add_node("c2", says("c2"))
    graph.add_node("a1", says("a1")).add_node("b1", says("b1")).add_node("a2", says("a2")).add_node("b2", slow)
    for name in ("a1", "b1", "a2", "b2"):
        graph.add_edge("start", name)
    graph.add_join_edge(["a1", "b1"], "c1").add_join_edge(["a2", "b2"], "c2")
    return graph.set_entry_point("start").set_finish_point("c1", "c2")


async def test_c005_a_join_waits_for_its_own_parents_only(store: Any) -> None:
    """Eager engine: a collector starts while an unrelated branch still runs (it would wait for ever otherwise)."""
    seen: list[str] = []
    with anyio.fail_after(10):
        result = await Executor(diamonds(anyio.Event(), seen).compile(), store, "eager").run()
    assert result.status == "completed"
    assert seen == ["c1", "slow"]


async def test_c005_an_active_join_does_not_wait_for_unrelated_work(store: Any) -> None:
    """Eager engine: an active join fires while work that can't reach its sources still runs."""
    collected = anyio.Event()

    async def unrelated(_: Any) -> dict[str, list[str]]:
        await collected.wait()
        return {"log": ["unrelated"]}

    async def collect(_: Any) -> dict[str, list[str]]:
        collected.set()
        return {"log": ["collect"]}

    graph = StateGraph(Log).add_node("start", says("start")).add_node("a", says("a")).add_node("b", says("b"))
    graph.add_node("collect", collect).add_node("unrelated", unrelated).set_finish_point("collect", "unrelated")
    graph.add_multi_conditional_edges("start", lambda state: state.pick, ["a", "b", "unrelated"])
    graph.set_entry_point("start").add_join_edge(["a", "b"], "collect", mode="active")
    with anyio.fail_after(10):
        result = await Executor(graph.compile(), store, "eager").run({"pick": ["a", "unrelated"]})
    assert result.unwrap().log == ["start", "a", "collect", "unrelated"]


async def test_c005_supersteps_are_the_documented_rule_of_the_default_engine() -> None:
    """Superstep engine: both diamonds move in rounds, so both collectors run in the same step."""
    done = anyio.Event()
    done.set()
    result = await Executor(diamonds(done, []).compile()).run()
    assert (result.steps, result.unwrap().log[-2:]) == (3, ["c1", "c2"])


BRANCHES = {"a": ["a1"], "b": ["b1", "b2"], "c": ["c1", "c2", "c3"]}
SUBSETS = [list(subset) for size in (1, 2, 3) for subset in itertools.combinations("abc", size)]


def uneven(leave: str) -> StateGraph:
    """Branches of one, two and three steps; the last step goes to the collector by a goto, a route or the join."""
    graph = StateGraph(Log).add_node("start", says("start")).add_node("collect", says("collect"))
    graph.add_multi_conditional_edges("start", lambda state: state.pick, {name: f"{name}1" for name in BRANCHES})
    for steps in BRANCHES.values():
        for here, following in itertools.pairwise(steps):
            graph.add_node(here, says(here)).add_edge(here, following)
        last = steps[-1]

        async def jump(_: Any, last: str = last) -> Command:
            return Command({"log": [last]}, goto="collect")

        if leave == "goto":
            graph.add_node(last, jump, destinations=["collect"])
        else:
            graph.add_node(last, says(last))
        if leave == "route":
            graph.add_conditional_edges(last, lambda _: "collect", ["collect"])
    graph.add_join_edge([steps[-1] for steps in BRANCHES.values()], "collect", mode="active")
    return graph.set_entry_point("start").set_finish_point("collect")


@pytest.mark.parametrize("pick", SUBSETS, ids="".join)
@pytest.mark.parametrize("leave", ["goto", "route", "join"])
async def test_c006_a_collector_of_uneven_branches_runs_once_and_last(engine: Any, leave: str, pick: list[str]) -> None:
    """For each subset of branches the collector runs once, after the last step of each of them, and none other ran."""
    result = await Executor(uneven(leave).compile(), engine=engine).run({"pick": pick})
    assert result.status == "completed"
    wanted = [step for name in pick for step in BRANCHES[name]]
    assert sorted(result.state.log) == sorted(["start", *wanted, "collect"])
    assert result.state.log[-1] == "collect"


class Sums(BaseModel):
    source: int = 0
    got: Annotated[list[int], append] = []
    extra: list[int] = []
    inner: list[int] = []
    outer: list[int] = []


def nested(order: Sequence[str]) -> StateGraph:
    """Three workers feed an inner join; it and one more worker feed an outer one. Workers end in `order`."""
    turns = Turns(order)

    def worker(name: str, field: str, plus: int) -> Any:
        async def node(state: Sums) -> dict[str, list[int]]:
            async with turns.turn(name):
                return {field: [state.source + plus]}

        return node

    graph = StateGraph(Sums).add_node("source", lambda _: {"source": 10}, inline=True).set_entry_point("source")
    graph.add_node("inner", lambda state: {"inner": state.got}, inline=True)
    graph.add_node("outer", lambda state: {"outer": state.inner + state.extra}, inline=True).set_finish_point("outer")
    for name, field, plus in (("w1", "got", 1), ("w2", "got", 2), ("w3", "got", 3), ("w4", "extra", 4)):
        graph.add_node(name, worker(name, field, plus)).add_edge("source", name)
    return graph.add_join_edge(["w1", "w2", "w3"], "inner").add_join_edge(["inner", "w4"], "outer")


@pytest.mark.parametrize("order", list(itertools.permutations(["w1", "w2", "w3", "w4"])), ids=" ".join)
async def test_c007_a_join_that_feeds_a_join_loses_nothing(engine: Any, order: tuple[str, ...]) -> None:
    """The outer join has every contribution exactly once, for every order in which the workers end."""
    result = await Executor(nested(order).compile(), engine=engine).run()
    assert result.status == "completed"
    assert sorted(result.state.outer) == [11, 12, 13, 14]
    if engine == "superstep":
        assert result.state.outer == [11, 12, 13, 14]


class Mapped(BaseModel):
    items: list[int] = []
    item: int = 0
    got: Annotated[list[int], append] = []
    total: int = 0
    runs: Annotated[int, add] = 0
    rounds: Annotated[int, add] = 0


def mapped() -> StateGraph:
    """A map step into a summing join with a fallback for nothing; the node behind it counts its runs."""
    graph = StateGraph(Mapped).set_entry_point("each")
    graph.add_map_node("each", "work", over="items", item_key="item", collect="sum")
    graph.add_node("work", lambda state: {"got": [state.item]}, inline=True)
    graph.add_node("sum", lambda state: {"total": sum(state.got) if state.got else -1, "rounds": 1}, inline=True)
    return graph.add_node("down", lambda _: {"runs": 1}, inline=True).add_edge("sum", "down")


@pytest.mark.parametrize(("items", "total"), [([1, 2, 3], 6), ([], -1), ([7], 7), (list(range(40)), 780)])
async def test_c008_a_map_step_fires_its_join_once(store: Any, engine: Any, items: list[int], total: int) -> None:
    """A map step has one run behind it, with the sum for a list and the fallback for an empty one."""
    result = await Executor(mapped().set_finish_point("down").compile(), store, engine).run({"items": items})
    assert result.status == "completed"
    assert (result.state.total, result.state.rounds, result.state.runs) == (total, 1, 1)


@pytest.mark.parametrize("items", [[1, 2, 3], []])
async def test_c008_a_map_step_in_a_loop_fires_its_join_once_a_lap(engine: Any, items: list[int]) -> None:
    """Three laps over a map step have three runs behind it, empty list or not."""
    graph = mapped().add_conditional_edges("down", lambda state: END if state.runs == 3 else "each", ["each"])
    result = await Executor(graph.compile(), engine=engine).run({"items": items})
    assert result.status == "completed"
    assert (result.state.rounds, result.state.runs, len(result.state.got)) == (3, 3, 3 * len(items))


def listener(mode: Any) -> StateGraph:
    """A loop whose lap number i signals `laps[i]`; a listener wants x or y."""
    graph = StateGraph(Log).add_node("tick", lambda state: {"lap": 1}, inline=True).set_entry_point("tick")
    graph.add_node("x", says("x")).add_node("y", says("y")).add_node("hear", says("hear"))
    graph.add_multi_conditional_edges("tick", lambda state: state.laps[state.lap - 1], ["x", "y"])
    graph.add_join_edge(["x", "y"], "hear", mode=mode)
    return graph.add_conditional_edges("hear", lambda state: "tick" if state.lap < len(state.laps) else END, ["tick"])


LAPS = [list(laps) for laps in itertools.product([["x"], ["y"], ["x", "y"]], repeat=3)]


@pytest.mark.parametrize("laps", LAPS, ids=lambda laps: "-".join(map("".join, laps)))
@pytest.mark.parametrize("mode", ["any", "active"])
async def test_c011_an_any_of_join_fires_in_every_lap(engine: Any, mode: Any, laps: list[list[str]]) -> None:
    """A listener for x or y runs once in each of three laps, whichever signals come and how many at once."""
    result = await Executor(listener(mode).compile(), engine=engine).run({"laps": laps})
    assert result.status == "completed"
    assert result.state.log.count("hear") == 3
    assert sorted(name for name in result.state.log if name != "hear") == sorted(itertools.chain(*laps))


async def test_c011_an_any_of_join_fires_in_every_turn(store: Any, engine: Any, lineage: str) -> None:
    """The laps of a join end with the turn: new turns of one lineage are heard again, in any store."""
    executor = Executor(listener("any").compile(), store, engine)
    for turn in range(1, 4):
        result = await executor.run({"laps": [["x", "y"]] * turn}, lineage=lineage)
        assert (result.status, result.state.log.count("hear")) == ("completed", turn)
