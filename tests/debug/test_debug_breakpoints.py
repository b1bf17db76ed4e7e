"""Breakpoints: where each kind stops, on a live run and along its stored rows, and what a wrong one says."""

from __future__ import annotations

from typing import Any

import pytest
from support.debugged import SHAPES, debugging
from support.graphs import flow

from graphagent import Executor
from graphagent.debug import Breakpoints, Stopped
from graphagent.errors import UsageError

pytestmark = pytest.mark.anyio

# shape, breakpoint, the rows at which `run` stops (live, and the same stored) before the end
STOPS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("chain", {"kind": "before", "node": "b"}, [":1"]),
    ("chain", {"kind": "after", "node": "b"}, [":2"]),
    ("chain", {"kind": "write", "field": "log"}, [":1", ":2"]),
    ("chain", {"kind": "write", "field": "log", "node": "b"}, [":2"]),
    ("chain", {"kind": "write", "field": "n"}, []),
    ("chain", {"kind": "when", "condition": "len(state.log) > 1"}, [":2"]),
    ("chain", {"kind": "when", "node": "c", "condition": "len(state.log) > 1"}, [":2"]),
    ("chain", {"kind": "when", "condition": "state.n > 1"}, []),
    ("chain", {"kind": "before", "node": "b", "condition": "state.n > 0"}, []),
    ("loop", {"kind": "before", "node": "count"}, [":2", ":4"]),
    ("loop", {"kind": "before", "node": "count", "visit": 2}, [":2"]),
    ("loop", {"kind": "after", "node": "count", "visit": 3}, [":5"]),
    ("loop", {"kind": "after", "node": "look", "condition": "visit >= 2"}, [":4", ":6"]),
    ("loop", {"kind": "write", "field": "n", "condition": "state.n == 2"}, [":3"]),
    ("loop", {"kind": "before", "node": "count", "once": True}, [":2"]),
    ("nested", {"kind": "before", "node": "y", "namespace": "*two*"}, ["two/two@1.1/sub@1.0:1"]),
    ("nested", {"kind": "after", "node": "y", "namespace": "one*"}, ["one/one@1.0:3"]),
    ("nested", {"kind": "before", "node": "z"}, [":3"]),
]


async def until_end(session: Any) -> list[str]:
    """The rows at which `run` stops on its way to the end."""
    found = []
    while True:
        stopped: Stopped = await session.run()
        if stopped.why != "breakpoint":
            return found
        assert stopped.hit
        found.append(stopped.moment.id.removeprefix(session.lineage))


@pytest.mark.parametrize(("name", "point", "rows"), STOPS)
async def test_where_a_breakpoint_stops(
    name: str, point: dict[str, Any], rows: list[str], store: Any, lineage: str
) -> None:
    """A live run stops at the same rows as a walk along what it has left."""
    shape = SHAPES[name]
    async with debugging(Executor(shape.make(), store), lineage) as session:
        await session.start(shape.given)
        session.breakpoints.add(**point)
        assert await until_end(session) == rows_of(rows)
        if point.get("once"):
            assert len(session.breakpoints) == 0
            return
        await session.goto(f"{lineage}:0")
        assert await until_end(session) == rows_of(rows)


def rows_of(rows: list[str]) -> list[str]:
    """The end of the ids of rows in frames: those of child frames have a colon more."""
    return [row if row.startswith(":") else f":{row}" for row in rows]


async def test_a_stop_before_a_node_in_the_eager_engine(store: Any, lineage: str) -> None:
    """A node that runs already when another one ends is not about to start once more."""
    async with debugging(Executor(SHAPES["branches"].make(), store, "eager"), lineage) as session:
        await session.start({})
        session.breakpoints.add("before", node="b")
        session.breakpoints.add("before", node="c")
        stopped = await session.run()
        assert {one.node for one in stopped.hit} == {"b", "c"}
        assert await until_end(session) == []


async def test_next_and_out_stop_at_breakpoints_inside(store: Any, engine: Any, lineage: str) -> None:
    """What `next`, `out` and `until` run through stops at a breakpoint, live and stored."""
    async with debugging(Executor(SHAPES["nested"].make(), store, engine), lineage) as session:
        await session.start({})
        session.breakpoints.add("before", node="y", namespace="two*", once=True)
        session.breakpoints.add("before", node="z")
        await session.step()
        stopped = await session.next()
        assert (stopped.why, stopped.moment.namespace) == ("breakpoint", "two/two@1.1/sub@1.0")
        stopped = await session.out()
        assert stopped.moment.namespace in ("two/two@1.1", "")
        assert (await session.until("z")).hit[0].node == "z"


async def test_until_a_node(store: Any, engine: Any, lineage: str) -> None:
    """`until` stops where the node is about to run, wherever it is; an unknown one is named."""
    async with debugging(Executor(SHAPES["nested"].make(), store, engine), lineage) as session:
        await session.start({})
        with pytest.raises(UsageError, match="'zz' is not a node: did you mean 'z'"):
            await session.until("zz")
        stopped = await session.until("z")
        assert [one.node for one in stopped.moment.coming] == ["z"]
        await session.run()
        await session.goto(f"{lineage}:0")
        assert (await session.until("z")).moment == stopped.moment


async def test_an_error_stops_where_it_happened(store: Any, engine: Any, lineage: str) -> None:
    """A breakpoint on errors stops in the child frame that failed, before its parent hears of it."""

    async def fails(_: Any) -> Any:
        raise ValueError("no such thing")

    child = flow("START -> x -> y -> END", y=fails).compile()
    graph = flow("START -> a -> z -> END")
    graph.add_subgraph_node("sub", child).add_edge("a", "sub")
    async with debugging(Executor(graph.compile(), store, engine), lineage) as session:
        await session.start({})
        session.breakpoints.add("error")
        stopped = await session.run()
        assert (stopped.why, stopped.moment.source) == ("breakpoint", "error")
        assert stopped.moment.namespace.startswith("sub")
        assert "no such thing" in str(stopped.moment.error)
        stopped = await session.run()
        assert (stopped.why, len(stopped.hit)) == ("failed", 1)


async def test_visits_count_over_the_lineage(store: Any, lineage: str) -> None:
    """The n-th visit is that of the whole lineage: earlier turns count, whether a session has seen them or not."""
    executor = Executor(SHAPES["chain"].make(), store)
    await executor.run({}, lineage=lineage)
    async with debugging(executor, lineage) as session:
        await session.start({})
        session.breakpoints.add("before", node="b", visit=2)
        stopped = await session.run()
        assert (stopped.why, [one.node for one in stopped.moment.coming]) == ("breakpoint", ["b"])
        assert (await session.run()).why == "completed"
        await session.goto(f"{lineage}:0")
        again = await session.run()
        assert again.moment.id == stopped.moment.id


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"kind": "befor", "node": "a"}, "did you mean 'before'?"),
    ({"kind": "before", "node": "aa"}, "'aa' is not a node: did you mean 'a'?"),
    ({"kind": "before"}, "needs a node"),
    ({"kind": "write", "field": "lgo"}, "'lgo' is not a field of the state: did you mean 'log'?"),
    ({"kind": "write"}, "needs a field"),
    ({"kind": "when"}, "needs a condition"),
    ({"kind": "when", "condition": "state.lgo"}, "reads 'lgo' of the state: did you mean 'log'?"),
    ({"kind": "when", "condition": "stat.log"}, "names 'stat', which isn't there: did you mean 'state'?"),
    ({"kind": "when", "condition": "state.log.append(1)"}, "'append' can't be called"),
    ({"kind": "before", "node": "a", "visit": 0}, "counted from 1"),
    ({"kind": "error", "visit": 1}, "those of a node"),
]


@pytest.mark.parametrize(("point", "why"), WRONG)
def test_a_wrong_breakpoint_says_what_would_be_right(point: dict[str, Any], why: str) -> None:
    """Unknown kinds, nodes, fields and names come with the nearest known one, and nothing is added."""
    points = Breakpoints(SHAPES["chain"].make())
    with pytest.raises(UsageError) as raised:
        points.add(**point)
    assert why in str(raised.value)
    assert list(points) == []


def test_breakpoints_are_numbered_switched_and_removed() -> None:
    """Numbers are not used again; one that is off is skipped; an unknown number is named."""
    points = Breakpoints(SHAPES["chain"].make())
    first, second = points.add("before", node="a"), points.add("after", node="b")
    assert (first.id, second.id) == (1, 2)
    assert points.enable(1, False).enabled is False
    assert points.active
    assert points.remove(2).node == "b"
    assert not points.active
    assert points.add("error").id == 3
    with pytest.raises(UsageError, match="no breakpoint 2"):
        points.remove(2)
