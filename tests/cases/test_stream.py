"""Public fault reports about streams (kind `stream`): whose piece is it, in which order, who waits for whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel
from support.graphs import says

from graphagent import Command, Executor, Limits, NodeContext, RetryPolicy, RunEvent, Send, StateGraph, append

pytestmark = pytest.mark.anyio
ALL = ("updates", "messages", "tasks", "checkpoints", "custom", "debug")


@pytest.fixture(params=["superstep", "eager"])
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine; the way without debug mode is the same as far as this file goes."""
    return str(request.param)


class Log(BaseModel):
    log: Annotated[list[str], append] = []
    letter: str = ""


async def events_of(executor: Executor, *, pace: int = 0, modes: Any = ALL, **options: Any) -> list[RunEvent]:
    """All events of a run, read by a reader that lets others run `pace` times before each; numbered without a gap."""
    found: list[RunEvent] = []
    async with executor.stream(modes=modes, buffer=1 if pace else 16, **options) as events:
        async for event in events:
            for _ in range(pace):
                await anyio.lowlevel.checkpoint()
            found.append(event)
    assert [event.seq for event in found] == list(range(len(found)))
    return found


def streams(letter: str, count: int = 100) -> Callable[..., Any]:
    """A node that streams a letter `count` times, giving way to others after each."""

    async def node(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
        for _i in range(count):
            await ctx.stream_text(letter)
            await anyio.lowlevel.checkpoint()
        return {"log": [letter]}

    return node


def grouped(events: list[RunEvent], *by: str) -> dict[Any, str]:
    """The streamed text by attributes of the events."""
    found: dict[Any, str] = defaultdict(str)
    for event in events:
        if event.mode == "messages":
            key = tuple(getattr(event, name) for name in by)
            found[key if len(by) > 1 else key[0]] += event.data
    return dict(found)


@pytest.mark.parametrize("pace", [0, 3])
async def test_c036_each_piece_carries_the_node_that_made_it(store: Any, engine: Any, pace: int) -> None:
    """Two nodes stream a hundred pieces each at once: each group holds its own letter only, for a slow reader too."""
    graph = StateGraph(Log).add_node("n1", streams("a")).add_node("n2", streams("b")).set_entry_point("n1", "n2")
    events = await events_of(Executor(graph.compile(), store, engine), pace=pace)
    assert grouped(events, "node") == {"n1": "a" * 100, "n2": "b" * 100}


async def test_c036_runs_of_one_node_are_told_apart(store: Any, engine: Any) -> None:
    """Send members of one node stream under their own branch, and the pieces of each keep their order."""

    async def letters(state: Log, ctx: NodeContext) -> None:
        for i in range(20):
            await ctx.stream_text(f"{state.letter}{i}.")
            await anyio.lowlevel.checkpoint()

    async def send(_: Any) -> list[Send]:
        return [Send("w", {"letter": letter}) for letter in "abc"]

    graph = StateGraph(Log).add_node("send", send, destinations=["w"]).add_node("w", letters).set_entry_point("send")
    events = await events_of(Executor(graph.compile(), store, engine), pace=1)
    wanted = {f"w[{i}]": "".join(f"{letter}{n}." for n in range(20)) for i, letter in enumerate("abc")}
    assert grouped(events, "branch") == wanted
    assert len(grouped(events, "activation")) == 3


async def test_c036_children_stream_under_their_own_path(store: Any, engine: Any) -> None:
    """Nodes of one name in two child graphs at once are told apart by the namespace of their events."""
    children = {x: StateGraph(Log).add_node("talk", streams(x)).set_entry_point("talk").compile() for x in "ab"}
    graph = StateGraph(Log).set_entry_point("a", "b")
    for name, child in children.items():
        graph.add_subgraph_node(name, child)
    texts = grouped(await events_of(Executor(graph.compile(), store, engine)), "node", "namespace")
    assert sorted(texts.values()) == ["a" * 100, "b" * 100]
    for (node, namespace), text in texts.items():
        assert node == "talk"
        assert namespace.split("@")[0].rpartition("/")[2] == text[0]


async def test_c036_blocking_nodes_stream_from_their_threads(store: Any, engine: Any) -> None:
    """Sync nodes in worker threads stream under their own names too."""

    def talks(letter: str) -> Callable[..., Any]:
        def node(_: Any, ctx: Any) -> None:
            for _i in range(20):
                ctx.stream_text(letter)

        return node

    graph = StateGraph(Log).add_node("n1", talks("a")).add_node("n2", talks("b")).set_entry_point("n1", "n2")
    events = await events_of(Executor(graph.compile(), store, engine))
    assert grouped(events, "node") == {"n1": "a" * 20, "n2": "b" * 20}


def unequal(seen: list[str]) -> StateGraph:
    """A fast branch with a successor, beside a branch that is slow until that successor has started."""
    started = anyio.Event()

    async def following(_: Any) -> None:
        seen.append("next")
        started.set()

    async def slow(_: Any) -> None:
        await started.wait()
        seen.append("slow")

    graph = StateGraph(Log).add_node("start", says("start")).add_node("fast", says("fast")).add_node("slow", slow)
    graph.add_node("next", following).add_edge("start", "fast").add_edge("start", "slow").add_edge("fast", "next")
    return graph.set_entry_point("start").set_finish_point("next", "slow")


async def test_c037_the_eager_engine_does_not_move_in_rounds(store: Any) -> None:
    """Eager engine: the successor of a fast branch starts while its sibling still runs (it would hang otherwise)."""
    seen: list[str] = []
    with anyio.fail_after(10):
        result = await Executor(unequal(seen).compile(), store, "eager").run()
    assert result.status == "completed"
    assert seen == ["next", "slow"]


async def test_c037_the_round_rule_of_supersteps_is_visible_in_the_stream() -> None:
    """Superstep engine: the rule is documented, and a step limit ends what it would make wait for ever."""
    seen: list[str] = []
    executor = Executor(unequal(seen).compile(), limits=Limits(step_timeout=0.02, node_timeout=5))
    found: list[RunEvent] = []
    async with executor.stream(modes=["tasks"]) as events:
        async for event in events:
            found.append(event)
    assert events.result is not None
    assert events.result.status == "failed"
    assert "slow" in events.result.reason
    assert [(e.node, e.step) for e in found if e.kind == "start"] == [("start", 1), ("fast", 2), ("slow", 2)]
    assert seen == []


def handover(how: str) -> StateGraph:
    """A parent that emits text and hands over to a child: a node, a goto, a Send or a child graph."""

    async def parent(_: Any, ctx: NodeContext) -> Any:
        await ctx.stream_text("p1")
        await ctx.emit("note", "p2")
        await ctx.stream_text("p3")
        if how == "goto":
            return Command({"log": ["parent"]}, goto="child")
        return [Send("child")] if how == "send" else {"log": ["parent"]}

    graph = StateGraph(Log).add_node("parent", parent, destinations=["child"] if how in ("goto", "send") else None)
    if how == "subgraph":
        talk = StateGraph(Log).add_node("child", streams("c", 3)).set_entry_point("child").set_finish_point("child")
        graph.add_subgraph_node("child", talk.compile())
    else:
        graph.add_node("child", streams("c", 3))
    if how in ("edge", "subgraph"):
        graph.add_edge("parent", "child")
    return graph.set_entry_point("parent").set_finish_point("child")


@pytest.mark.parametrize("how", ["edge", "goto", "send", "subgraph"])
@pytest.mark.parametrize("pace", [0, 5])
async def test_c038_the_parents_last_event_precedes_the_childs_first(
    store: Any, engine: Any, how: str, pace: int
) -> None:
    """Once control is handed over nothing of the parent comes any more, in any mode, for slow and fast readers."""
    events = await events_of(Executor(handover(how).compile(), store, engine), pace=pace)
    of_parent = [event.seq for event in events if event.node == "parent"]
    of_child = [event.seq for event in events if event.node == "child"]
    assert len(of_parent) == 6  # start, three pieces, end, update
    assert max(of_parent) < min(of_child)


async def test_c038_a_stream_of_a_resume_is_numbered_anew(store: Any, engine: Any, lineage: str) -> None:
    """Each stream counts from zero: the events of a run that stops and of its resume are gap-free, each for itself."""

    async def asks(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
        await ctx.stream_text("before")
        return {"log": [await ctx.interrupt("q")]}

    graph = StateGraph(Log).add_node("a", says("a")).add_node("b", asks).add_edge("a", "b").set_entry_point("a")
    executor = Executor(graph.compile(), store, engine)
    first = await events_of(executor, lineage=lineage)
    assert [e.data["interrupts"] for e in first if e.mode == "checkpoints"][-1] == ["b#2.0"]
    second = await events_of(executor, lineage=lineage, answer="yes")
    assert [e.data for e in second if e.mode == "updates"] == [{"log": ["yes"]}]


async def test_c038_an_attempt_that_is_cut_off_leaves_no_gap(store: Any, engine: Any) -> None:
    """A piece that could not be delivered because its attempt timed out behind a slow reader leaves no hole."""
    second = anyio.Event()

    async def talks(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
        if ctx.activation.attempt == 2:
            second.set()
        for _i in range(5):
            await ctx.stream_text("x")
        return {"log": ["done"]}

    retry = RetryPolicy(max_attempts=100, initial=0, jitter=False)
    graph = StateGraph(Log).add_node("a", talks, timeout=0.02, retry=retry).set_entry_point("a")
    executor = Executor(graph.compile(), store, engine)
    found: list[RunEvent] = []
    async with executor.stream(modes=["messages", "updates"], buffer=1) as events:
        async for event in events:
            found.append(event)
            await second.wait()
    assert [event.seq for event in found] == list(range(len(found)))
    assert found[-1].data == {"log": ["done"]}
