"""Recorded runs as files: written from any store, read into another, gone through again, counted."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.graphs import Trail, flow, says

from graphagent import END, Command, Executor, Send, SqlCheckpoints, StateGraph, append
from graphagent.checkpoint.portable import from_text, to_text, write_lineage
from graphagent.checkpoint.record import Retention
from graphagent.engine.export import export_lineage, replay_exported
from graphagent.errors import CheckpointError, CheckpointNotFound, UsageError
from graphagent.graph.compiled import CompiledGraph

pytestmark = pytest.mark.anyio


class Odd(BaseModel):
    log: Annotated[list[str], append] = []
    text: str = ""
    number: float = 0.0
    table: dict[str, Any] = {}


def everything(*inner: str) -> CompiledGraph:
    """A graph with a join, a route, a fan-out, a question, an error edge and a child graph of these chains."""
    graph = StateGraph(Trail, name="everything")
    for name in ("a", "mend", "j", "last"):
        graph.add_node(name, says(name))
    graph.add_node("b", _fails).add_node("fan", _fan, destinations=["w"]).add_node("w", says("w"))
    graph.add_subgraph_node("child", flow(*inner or ("START -> inner -> END",)).compile())
    graph.add_interrupt_node("item", prompt="what?", answer_type=str)
    graph.set_entry_point("a").set_entry_point("b").add_error_edge("b", "mend").add_join_edge(["a", "mend"], "j")
    graph.add_edge("j", "child").add_edge("child", "item").add_edge("w", "last").add_edge("last", END)
    return graph.add_conditional_edges("item", _route, {"go": "fan", "stop": END}).compile()


def _fails(state: Any) -> Any:
    raise ValueError("as planned")


def _fan(state: Any) -> list[Send]:
    return [Send("w", {"item": "x"}), Send("w", {"item": "y"})]


def _route(state: Any) -> str:
    return "stop" if state.item == "stop" else "go"


async def recorded(store: Any, lineage: str, engine: Any = "superstep", answer: str = "on") -> Executor:
    """A finished run of `everything`."""
    executor = Executor(everything(), store, "superstep" if engine == "fast" else engine)
    assert (await executor.run({}, lineage=lineage)).status == "interrupted"
    assert (await executor.resume(lineage, {"item": answer})).status == "completed"
    return executor


async def test_a_run_comes_back_as_it_was(store: Any, lineage: str, engine: str) -> None:
    """Written from any store by any engine, read into another, and written again, it is the same text."""
    executor = await recorded(store, lineage, engine)
    text = to_text(await export_lineage(store, executor.graph, lineage, target="app:graph"))
    document = from_text(text, "run.json")
    async with SqlCheckpoints("sqlite://") as other:
        assert await write_lineage(other, document) == lineage
        assert to_text(await export_lineage(other, executor.graph, lineage, target="app:graph")) == text
        moved = Executor(executor.graph, other)
        assert await moved.state(lineage) == await executor.state(lineage)
        assert [h.id for h in await moved.history(lineage)] == [h.id for h in await executor.history(lineage)]


async def test_a_run_goes_on_in_another_store(store: Any, lineage: str, engine: str) -> None:
    """An exported run that waits is answered elsewhere, and ends as it would have; so does a next turn."""
    mode: Any = "superstep" if engine == "fast" else engine
    graph = everything()
    await Executor(graph, store, mode).run({}, lineage=lineage)
    document = await export_lineage(store, graph, lineage)
    here = await Executor(graph, store, mode).resume(lineage, {"item": "on"})
    async with SqlCheckpoints("sqlite://") as other:
        await write_lineage(other, document)
        there = await Executor(graph, other, mode).resume(lineage, {"item": "on"})
        assert (there.status, there.state) == (here.status, here.state)
        assert there.state.log.count("w") == 2
        again = await Executor(graph, other, mode).run({"log": ["more"]}, lineage=lineage)
        assert again.state.log[: len(there.state.log)] == there.state.log


async def test_results_of_an_open_step_come_along(store: Any, lineage: str) -> None:
    """What had finished beside a question isn't run again in the other store; committed effects are kept."""
    ran: list[str] = []

    async def done(state: Any, ctx: Any) -> dict[str, Any]:
        ran.append(await ctx.step("look", lambda: "looked"))
        return {"log": ["done"]}

    async def ask(state: Any, ctx: Any) -> dict[str, Any]:
        return {"item": await ctx.interrupt("why", "why?", str)}

    graph = flow("START -> done, ask -> END", done=done, ask=ask).compile()
    await Executor(graph, store).run({}, lineage=lineage)
    document = from_text(to_text(await export_lineage(store, graph, lineage)), "x")
    beside = document["frames"][""]["beside"]
    assert [one["node"] for part in beside.values() for one in part["results"]] == ["done"]
    assert [one["name"] for part in beside.values() for one in part["effects"]] == ["look"]
    async with SqlCheckpoints("sqlite://") as other:
        await write_lineage(other, document)
        result = await Executor(graph, other).resume(lineage, {"why": "because"})
    assert (result.status, ran) == ("completed", ["looked"])


@pytest.mark.parametrize(
    "values",
    [
        {"text": "日本語 \U0001f40d \x00 \ud800 end"},
        {"number": float("inf")},
        {"number": 1e-320},
        {"table": {"one": 1, "true": True, "float": 1.0, "none": None, "$": ["tag", {}], "nested": [[{}]]}},
        {"log": ["a;b", '"quoted"', "\n\t\\"]},
    ],
    ids=["text", "infinite", "tiny", "table", "signs"],
)
async def test_any_value_survives(lineage: str, values: dict[str, Any]) -> None:
    """Text with any sign, floats that JSON lacks, numbers of every kind."""
    graph = StateGraph(Odd).add_node("a", lambda state: values).set_entry_point("a").set_finish_point("a").compile()
    async with SqlCheckpoints("sqlite://") as store, SqlCheckpoints("sqlite://") as other:
        result = await Executor(graph, store).run({}, lineage=lineage)
        text = to_text(await export_lineage(store, graph, lineage))
        text.encode("utf-8")
        await write_lineage(other, from_text(text, "x"))
        state = await Executor(graph, other).state(lineage)
    assert repr(state) == repr(result.state)
    assert (await replay_exported(graph, from_text(text, "x"))).ok


async def test_rows_hold_what_changed(lineage: str) -> None:
    """A long run stays linear in size: appended items and changed values, not the whole state in every row."""

    async def turn(state: Any) -> dict[str, Any]:
        return {"log": ["x" * 100], "n": state.n + 1}

    graph = flow("START -> a", a=turn).add_conditional_edges("a", lambda s: "a" if s.n < 200 else END, ["a", END])
    async with SqlCheckpoints("sqlite://") as store:
        await Executor(graph.compile(), store).run({}, lineage=lineage)
        document = await export_lineage(store, graph.compile(), lineage)
    assert len(to_text(document)) < 202 * 700
    assert sum(1 for row in document["frames"][""]["rows"] if row.get("whole")) == 1
    report = await replay_exported(graph.compile(), document)
    assert (report.steps, report.ok) == (200, True)


async def test_forks_edits_and_pruned_rows_are_exported(store: Any, lineage: str) -> None:
    """A history that isn't a straight line comes back too."""
    executor = await recorded(store, lineage)
    await executor.fork(lineage, 1)
    await executor.resume(lineage, {})
    await executor.edit(lineage, None, {"n": 7})
    for _ in range(2):
        text = to_text(await export_lineage(store, executor.graph, lineage))
        async with SqlCheckpoints("sqlite://") as other:
            await write_lineage(other, from_text(text, "x"))
            assert to_text(await export_lineage(other, executor.graph, lineage)) == text
            for header in await other.history(lineage):
                mine = (await executor.state(lineage, header.seq), header.parent, header.source)
                theirs = await Executor(executor.graph, other).state(lineage, header.seq), header.parent, header.source
                assert mine == theirs
        await executor.prune(Retention(keep_last=3), lineage=lineage)


async def test_an_exported_run_replays_with_its_child_graphs(store: Any, lineage: str, engine: str) -> None:
    """The steps of all frames are checked; a child that goes another way diverges in its own frame."""
    executor = await recorded(store, lineage, engine)
    document = await export_lineage(store, executor.graph, lineage)
    report = await replay_exported(executor.graph, document)
    assert (report.ok, report.skipped) == (True, 0)
    assert report.steps >= 7

    report = await replay_exported(everything("START -> inner -> more -> END"), document)
    assert report.divergence is not None
    assert ":child@" in report.divergence.checkpoint


async def test_what_is_not_there_is_told(store: Any, lineage: str) -> None:
    """An unknown lineage, and one that the other store has already."""
    with pytest.raises(CheckpointNotFound, match=f"no lineage '{lineage}'"):
        await export_lineage(store, everything(), lineage)
    executor = await recorded(store, lineage)
    document = await export_lineage(store, executor.graph, lineage)
    async with SqlCheckpoints("sqlite://") as other:
        await write_lineage(other, document)
        with pytest.raises(CheckpointError):
            await write_lineage(other, document)
        assert await write_lineage(other, document, lineage="copy") == "copy"
        assert await other.lineages() == sorted(["copy", lineage])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not an exported run"),
        ("{}", "has no 'schema'"),
        ('{"schema": 9, "lineage": "l", "target": "", "graphs": {}, "frames": {}}', "has schema 9"),
    ],
)
def test_a_text_that_is_no_run_is_refused(text: str, said: str) -> None:
    """With what it lacks."""
    with pytest.raises(UsageError, match=said):
        from_text(text, "run.json")


async def test_a_damaged_run_writes_nothing(lineage: str) -> None:
    """It is read as a whole before anything is written."""
    async with SqlCheckpoints("sqlite://") as store:
        executor = await recorded(store, lineage)
        document = await export_lineage(store, executor.graph, lineage)
    document["frames"][""]["rows"][-1].pop("marking")
    async with SqlCheckpoints("sqlite://") as other:
        with pytest.raises(UsageError, match="is malformed: KeyError: 'marking'"):
            await write_lineage(other, document)
        assert await other.lineages() == []


# -- coverage --------------------------------------------------------------------------------------


async def test_recorded_runs_cover_what_they_took(store: Any, lineage: str, engine: str) -> None:
    """Nodes, edges of every kind, labels and joins, of the graph and of its child."""
    executor = await recorded(store, lineage, engine)
    done = await executor.cover([lineage])
    root, child = done.coverages
    assert (done.untold, done.why) == (0, [])
    assert [str(part) for part in root.missing["edges"]] == ["item -> END (route)"]
    assert [str(part) for part in root.missing["labels"]] == ["item ? stop -> END"]
    assert root.joins["j"] == 1
    assert not any(child.missing.values())
    other = f"{lineage}-2"
    await recorded(store, other, engine, "stop")
    done = await executor.cover([other], done)
    assert not [part for coverage in done.coverages for parts in coverage.missing.values() for part in parts]
    assert (done.lineages, root.ended["completed"]) == (2, 2)


async def test_labels_are_those_that_routers_returned(store: Any, lineage: str) -> None:
    """Several that lead to one target are told apart; an Enum, a default and none are labels too."""
    said: list[Any] = ["low", "lower", "?", ["x", "y"], [], "high"]
    graph = StateGraph(Trail).add_node("a", lambda state: {"n": state.n + 1}).add_node("b", says("b"))
    graph.set_entry_point("a").add_edge("b", "a")
    graph.add_multi_conditional_edges("a", lambda s: said[s.n - 1], {"low": "b", "lower": "b", "x": "b", "y": "b",
                                      "high": END}, default="b")  # fmt: skip
    compiled = graph.compile()
    executor = Executor(compiled, store)
    await executor.run({}, lineage=lineage)
    labels = (await executor.cover([lineage])).coverages[0].labels
    assert {label.label: count for label, count in labels.items()} == {
        "low": 1, "lower": 1, "x": 1, "y": 1, "high": 1, "otherwise": 2,
    }  # fmt: skip


async def test_ends_that_are_not_good_are_counted(store: Any, lineage: str) -> None:
    """A stalled run with its join, an interrupted one, a failed one, one that reached its limit."""
    graph = flow("START -> a, c").add_node("b", says("b")).add_node("j", says("j")).add_edge("j", END)
    graph.add_conditional_edges("a", lambda state: END, ["b", END]).add_join_edge(["c", "b"], "j")
    executor = Executor(graph.compile(), store)
    assert (await executor.run({}, lineage=lineage)).status == "stalled"
    root = (await executor.cover([lineage])).coverages[0]
    assert (dict(root.ended), dict(root.starved)) == ({"stalled at 'j'": 1}, {"j": 1})

    for name, node, end in (("f", _fails, "failed"), ("i", _asks, "interrupted")):
        executor = Executor(flow("START -> a -> END", a=node).compile(), store)
        await executor.run({}, lineage=f"{lineage}-{name}")
        assert dict((await executor.cover([f"{lineage}-{name}"])).coverages[0].ended) == {end: 1}


async def _asks(state: Any, ctx: Any) -> dict[str, Any]:
    return {"item": await ctx.interrupt("why", "why?", str)}


async def test_rows_of_several_steps_count_only_their_nodes(store: Any, lineage: str) -> None:
    """With durability `exit` there is one row for all steps, which the figures say."""
    executor = Executor(flow("START -> a -> b -> END").compile(), store, durability="exit")
    await executor.run({}, lineage=lineage)
    done = await executor.cover([lineage])
    root = done.coverages[0]
    assert (root.nodes["a"], root.nodes["b"], done.steps, done.untold) == (1, 1, 0, 1)
    assert "several steps in one row" in done.why[0]


async def test_jumps_are_covered(store: Any, lineage: str, engine: str) -> None:
    """A goto and a Send along what is declared."""
    mode: Any = "superstep" if engine == "fast" else engine
    graph = StateGraph(Trail).add_node("jump", lambda state: Command(goto="fan"), destinations=["fan", "w"])
    graph.add_node("fan", _fan, destinations=["w"]).add_node("w", says("w")).set_entry_point("jump").add_edge("w", END)
    executor = Executor(graph.compile(), store, mode)
    await executor.run({}, lineage=lineage)
    root = (await executor.cover([lineage])).coverages[0]
    assert [str(part) for parts in root.missing.values() for part in parts] == ["jump -> w (jump)"]
    assert root.nodes["w"] == 2
