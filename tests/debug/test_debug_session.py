"""A debugged run is the run: it writes the same rows, ends in the same state, and can be left anywhere."""

from __future__ import annotations

from typing import Any

import pytest
from support.debugged import SHAPES, debugging, plain_end, plain_run, rows_left, steps_to_end, worth

from graphagent import Executor

pytestmark = pytest.mark.anyio

EVERY = pytest.mark.parametrize("name", SHAPES)


@EVERY
async def test_a_run_that_is_stepped_through_is_the_run(name: str, store: Any, engine: Any, lineage: str) -> None:
    """Stepped to its end a run leaves the state of one that nobody looks at, and the same rows."""
    shape = SHAPES[name]
    executor = Executor(shape.make(), store, engine)
    plain = await plain_run(executor, shape, lineage)
    other = f"{lineage}-d"
    async with debugging(executor, other) as session:
        stops = await steps_to_end(session, shape, await session.start(shape.given))
    ordered = engine != "eager" or not shape.side_by_side
    assert stops[-1].result is not None
    assert stops[-1].why == plain.status
    assert worth(stops[-1].result.state, ordered=ordered) == worth(plain.state, ordered=ordered)
    if ordered:
        assert await rows_left(store, other) == await rows_left(store, lineage)


@EVERY
async def test_live_and_stored_moments_are_equal(name: str, store: Any, engine: Any, lineage: str) -> None:
    """Where a run was held is afterwards told by the stored row, in the same words."""
    shape = SHAPES[name]
    executor = Executor(shape.make(), store, engine)
    async with debugging(executor, lineage) as session:
        stops = await steps_to_end(session, shape, await session.start(shape.given))
        for stop in stops:
            stored = await session.goto(stop.moment.id)
            assert stored.moment == stop.moment


@EVERY
async def test_a_run_can_be_left_at_every_stop(name: str, store: Any, engine: Any, lineage: str) -> None:
    """Left at any stop and resumed by a plain executor, a run comes to the same end."""
    shape = SHAPES[name]
    executor = Executor(shape.make(), store, engine)
    plain = worth((await plain_run(executor, shape, lineage)).state, ordered=False)
    for count in range(100):
        other, left = f"{lineage}-{count}", list(shape.answers)
        async with debugging(executor, other) as session:
            stop = await session.start(shape.given)
            for _ in range(count):
                if stop.why == "interrupted":
                    for key, value in left.pop(0).items():
                        await session.answer(key, value)
                stop = await session.step()
                if stop.why == "completed":
                    assert worth(stop.result.state, ordered=False) == plain  # type: ignore[union-attr]
                    return
            held = session.live
        assert "pause" in {one.kind for one in await executor.interrupts(other)} or not held
        result = await executor.resume(other, {} if stop.why != "interrupted" else left.pop(0))
        assert worth((await plain_end(executor, result, tuple(left))).unwrap(), ordered=False) == plain
    pytest.fail("the run never ended")


@EVERY
async def test_back_goes_along_all_stops(name: str, store: Any, engine: Any, lineage: str) -> None:
    """From the end back to the beginning a session comes by every stop, and forward again by the same."""
    shape = SHAPES[name]
    executor = Executor(shape.make(), store, engine)
    async with debugging(executor, lineage) as session:
        stops = await steps_to_end(session, shape, await session.start(shape.given))
        seen = [session.moment.id]
        while seen[-1] != stops[0].moment.id:
            seen.append((await session.back()).moment.id)
        assert {stop.moment.id for stop in stops} <= set(seen)
        again = [seen[-1]]
        while not session.at_newest:
            again.append((await session.step()).moment.id)
        assert again == seen[::-1]
