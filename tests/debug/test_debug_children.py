"""Stepping into, over and out of child graphs, live and along what is stored; changes inside a child frame."""

from __future__ import annotations

from typing import Any

import pytest
from support.debugged import SHAPES, debugging, deep, inner, nested, steps_to_end, worth
from support.graphs import Trail, says

from graphagent import END, START, Executor, StateGraph
from graphagent.debug import DebugSession, Moment
from graphagent.graph.compiled import CompiledGraph

pytestmark = pytest.mark.anyio


def one_child() -> CompiledGraph:
    """a, a child of two nodes, z."""
    built = StateGraph(Trail).add_node("a", says("a")).add_subgraph_node("sub", inner()).add_node("z", says("z"))
    return built.add_edge(START, "a").add_edge("a", "sub").add_edge("sub", "z").add_edge("z", END).compile()


def two_deep() -> CompiledGraph:
    """a, a child with a child, z."""
    built = StateGraph(Trail).add_node("a", says("a")).add_subgraph_node("sub", deep()).add_node("z", says("z"))
    return built.add_edge(START, "a").add_edge("a", "sub").add_edge("sub", "z").add_edge("z", END).compile()


def at(moment: Moment) -> str:
    """Where a moment stands, in short: frame, row, what comes."""
    return f"{moment.namespace}:{moment.seq} {','.join(one.node for one in moment.coming)}"


async def walked(session: DebugSession, *ways: str) -> list[str]:
    """Where each command leads."""
    return [at((await getattr(session, way)()).moment) for way in ways]


STEPS = [":0 a", ":1 sub", "sub@1.0:0 x", "sub@1.0:1 y", "sub@1.0:3 ", ":2 z", ":4 "]

WAYS = [
    (one_child, ("step", "step", "step", "step", "step", "step"), STEPS[1:]),
    (one_child, ("next", "next", "next"), [":1 sub", ":2 z", ":4 "]),
    (one_child, ("step", "step", "out", "next"), [":1 sub", "sub@1.0:0 x", ":2 z", ":4 "]),
    (
        one_child,
        ("step", "step", "next", "next", "next"),
        [":1 sub", "sub@1.0:0 x", "sub@1.0:1 y", "sub@1.0:3 ", ":2 z"],
    ),
    (one_child, ("step", "out"), [":1 sub", ":4 "]),
    (
        two_deep,
        ("step", "step", "next", "next", "next"),
        [":1 sub", "sub@1.0:0 before", "sub@1.0:1 sub", "sub@1.0:3 ", ":2 z"],
    ),
    (
        two_deep,
        ("step", "step", "step", "step", "out", "out"),
        [":1 sub", "sub@1.0:0 before", "sub@1.0:1 sub", "sub@1.0/sub@1.0:0 x", "sub@1.0:3 ", ":2 z"],
    ),
    (two_deep, ("step", "step", "out"), [":1 sub", "sub@1.0:0 before", ":2 z"]),
]


@pytest.mark.parametrize(("make", "ways", "places"), WAYS)
async def test_ways_through_children(
    make: Any, ways: tuple[str, ...], places: list[str], store: Any, engine: Any, lineage: str
) -> None:
    """Into a child, over it and out of it: the run stops in the same places in which its rows are gone through."""
    async with debugging(Executor(make(), store, engine), lineage) as session:
        await session.start({})
        assert await walked(session, *ways) == places
        await session.run()
        await session.goto(f"{lineage}:0")
        assert await walked(session, *ways) == places


async def test_back_goes_into_children_and_over_them(store: Any, engine: Any, lineage: str) -> None:
    """`back` comes by the rows of a child frame, `back_next` passes them by."""
    async with debugging(Executor(one_child(), store, engine), lineage) as session:
        await session.start({})
        await session.run()
        assert await walked(session, *["back"] * 6) == STEPS[-2::-1]
        await session.open()
        assert await walked(session, *["back_next"] * 3) == [":2 z", ":1 sub", ":0 a"]


async def test_children_side_by_side_stop_like_threads(store: Any, engine: Any, lineage: str) -> None:
    """Two children that run at once are shown in turns; none of them runs while another is looked at."""
    async with debugging(Executor(nested(), store, engine), lineage) as session:
        stops = await steps_to_end(session, SHAPES["nested"], await session.start({}))
        frames = [stop.moment.namespace for stop in stops]
        for space in ("one/one@1.0", "two/two@1.1", "two/two@1.1/sub@1.0"):
            assert space in frames, frames
        if not getattr(store, "remote", False):  # else whichever comes first
            assert frames[2:4] == ["one/one@1.0", "two/two@1.1"]


async def test_next_holds_the_other_children(store: Any, lineage: str) -> None:
    """While one child is gone through with `next`, the one beside it stays where it is."""
    async with debugging(Executor(nested(), store), lineage) as session:
        await session.start({})
        await walked(session, "step", "step")
        assert await walked(session, "next", "next") == ["one/one@1.0:1 y", "one/one@1.0:3 "]
        assert await walked(session, "next") == ["two/two@1.1:0 before"]


async def test_an_edit_inside_a_child_that_is_open(store: Any, engine: Any, lineage: str) -> None:
    """State that is edited in a child frame is what the child goes on with, and what its parent gets of it."""
    executor = Executor(one_child(), store, engine)
    async with debugging(executor, lineage) as session:
        await session.start({})
        await walked(session, "step", "step", "step")
        edited = await session.edit({"n": 7, "log": ["a", "edited"]})
        assert (edited.why, edited.moment.namespace, edited.moment.source) == ("edited", "sub@1.0", "edit")
        assert await walked(session, "step") != []
        ended = await session.run()
    assert worth(ended.result.state) == {"log": ["a", "edited", "y", "z"], "item": "", "n": 7}  # type: ignore[union-attr]


async def test_an_edit_inside_a_child_that_is_over(store: Any, engine: Any, lineage: str) -> None:
    """An edit in a child whose parent has gone on takes the frames around it back to the step that ran it."""
    executor = Executor(two_deep(), store, engine)
    async with debugging(executor, lineage) as session:
        await session.start({})
        await session.run()
        await session.goto(f"{lineage}:sub@1.0/sub@1.0:1")
        edited = await session.edit({"n": 7})
        assert edited.moment.namespace.count("@") == 2
        ended = await session.run()
    assert ended.why == "completed"
    assert worth(ended.result.state) == {"log": ["a", "before", "x", "y", "z"], "item": "", "n": 7}  # type: ignore[union-attr]


async def test_acting_as_a_node_inside_a_child(store: Any, engine: Any, lineage: str) -> None:
    """With `as_node` the patch is the result of the child's node: it doesn't run, and the child goes on behind it."""
    executor = Executor(one_child(), store, engine)
    async with debugging(executor, lineage) as session:
        await session.start({})
        await session.run()
        await session.goto(f"{lineage}:sub@1.0:0")
        edited = await session.edit({"log": ["instead"]}, as_node="x")
        assert [one.node for one in edited.moment.coming] == ["y"]
        ended = await session.run()
    assert ended.result.state.log == ["a", "instead", "y", "z"]  # type: ignore[union-attr]


async def test_a_fork_inside_a_child_to_a_lineage_of_its_own(store: Any, engine: Any, lineage: str) -> None:
    """A fork from inside a child begins a lineage in which the child goes on from there."""
    executor = Executor(two_deep(), store, engine)
    async with debugging(executor, lineage) as session:
        await session.start({})
        await session.run()
        before = len(await session.timeline())
        await session.goto(f"{lineage}:sub@1.0/sub@1.0:1")
        forked = await session.fork(f"{lineage}-f")
        assert (forked.why, session.lineage) == ("forked", f"{lineage}-f")
        assert [one.node for one in forked.moment.coming] == ["y"]
        ended = await session.run()
    assert ended.result.state.log == ["a", "before", "x", "y", "z"]  # type: ignore[union-attr]
    assert len(await executor.history(lineage)) == before
