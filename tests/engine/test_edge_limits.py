"""Cache, limits and misuse: edge cases 44 to 48 of the graph specification, on every store and both engines."""

from __future__ import annotations

from typing import Any, Literal

import anyio
import pytest
from support.graphs import Trail, flow
from support.nodes import Flaky, SteppedClock, after_flaky

from graphagent import CachePolicy, Command, Executor, Limits, NodeCallbacks, RetryPolicy, StateGraph
from graphagent.engine import MemoryCache
from graphagent.errors import InvalidUpdate, LimitReached, NodeTimeout, UndeclaredField, UsageError

pytestmark = pytest.mark.anyio


# -- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        (Limits(), None),
        (Limits(step_timeout=1.5), 1.0),
        (Limits(step_timeout=5), 2.5),
        (Limits(step_timeout=5, node_timeout=4), 4),
        (Limits(node_timeout=0.5), 0.5),
    ],
)
def test_e45_time_of_an_attempt(limits: Limits, seconds: float | None) -> None:
    """Half the step's time, at least a second, unless the node has a timeout of its own."""
    assert limits.attempt_timeout == seconds


async def test_e45_an_attempt_that_takes_too_long(store: Any, engine: Any, lineage: str) -> None:
    """Each attempt has its own time; a timeout is retried like any failure and names node and limit."""
    calls: list[int] = []

    async def slow(state: Trail) -> None:
        calls.append(1)
        await anyio.sleep_forever()

    builder = StateGraph(Trail).add_node("slow", slow, timeout=0.01, retry=RetryPolicy(max_attempts=2, initial=0))
    executor = Executor(builder.set_entry_point("slow").compile(), store, engine, clock=SteppedClock())
    with anyio.fail_after(5):
        result = await executor.run(lineage=lineage)
    assert isinstance(result.error, NodeTimeout)
    assert "node 'slow' took longer than its 0.01 s" in result.reason
    assert len(calls) == 2


async def test_e46_concurrency_is_bounded(store: Any, engine: Any, lineage: str) -> None:
    """Of twelve nodes side by side at most three run at a time; a bound that is no positive number is none."""
    running = highest = 0

    async def work(state: Trail) -> dict[str, Any]:
        nonlocal running, highest
        running += 1
        highest = max(highest, running)
        await anyio.sleep(0.002)
        running -= 1
        return {"log": ["w"]}

    names = [f"w{i}" for i in range(12)]
    graph = flow(f"START -> {', '.join(names)} -> END", **dict.fromkeys(names, work)).compile()
    for bound, peak in ((3, 3), (0, 12), (-1, 12), (None, 12)):
        highest = 0
        executor = Executor(graph, store, engine, limits=Limits(max_concurrency=bound))
        result = await executor.run(lineage=f"{lineage}-{bound}")
        assert (len(result.unwrap().log), highest) == (12, peak)


async def test_e47_the_step_limit_is_no_success(store: Any, engine: Any, lineage: str) -> None:
    """Three steps of an endless loop: `limit_reached` with state, checkpoint and the cycle; a resume goes on."""
    graph = flow("START -> a -> b -> a").compile()
    executor = Executor(graph, store, engine, limits=Limits(max_steps=3))
    result = await executor.run(lineage=lineage)
    assert (result.status, result.steps, result.state.log) == ("limit_reached", 3, ["a", "b", "a"])
    assert result.checkpoint is not None
    assert (await executor.state(lineage, result.checkpoint)).log == ["a", "b", "a"]
    for part in ("3 steps", "'b' would be next", "max_steps"):
        assert part in result.reason
    with pytest.raises(LimitReached):
        result.unwrap()
    assert (await executor.resume(lineage)).state.log == ["a", "b", "a", "b", "a", "b"]


async def test_e47_the_limit_is_enough_if_the_last_step_ends(store: Any, engine: Any, lineage: str) -> None:
    """A run that ends with its last allowed step has completed."""
    executor = Executor(flow("START -> a -> b -> END").compile(), store, engine, limits=Limits(max_steps=2))
    assert (await executor.run(lineage=lineage)).status == "completed"


async def test_e48_misuse_is_refused_by_name(store: Any, lineage: str) -> None:
    """A graph that isn't compiled, an unknown engine or policy, and an input that is none raise at once."""
    graph = flow("START -> a -> END").compile()
    with pytest.raises(UsageError, match=r"call compile\(\) first"):
        Executor(flow("START -> a -> END"), store)  # type: ignore[arg-type]
    for option, value, nearest in (
        ("engine", "superstp", "'superstep'"),
        ("durability", "steps", "'step'"),
        ("on_failure", "drains", "'drain'"),
        ("on_conflict", "rejected", "'reject'"),
    ):
        with pytest.raises(UsageError, match=f"{option}='{value}' is unknown: did you mean {nearest}"):
            Executor(graph, store, **{option: value})  # type: ignore[arg-type]
    executor = Executor(graph, store)
    with pytest.raises(InvalidUpdate, match="the input is 3"):
        await executor.run(3, lineage=lineage)
    with pytest.raises(UndeclaredField):
        await executor.run({"lg": []}, lineage=lineage)
    assert await executor.history(lineage) == []


# -- cache ---------------------------------------------------------------------------------------


def counted(calls: list[str], *, version: str = "", cache: Any = None, policy: CachePolicy | None = None) -> StateGraph:
    """A graph of one node that notes its calls, with a cache."""

    async def node(state: Trail) -> dict[str, Any]:
        calls.append(state.item)
        return {"log": [f"did {state.item}"]}

    builder = flow("START -> a -> END", a=node).with_version(version)
    return builder.with_cache(MemoryCache() if cache is None else cache, policy or CachePolicy())


async def test_e44_a_second_identical_run_is_served(store: Any, engine: Any, lineage: str) -> None:
    """Same input: the function is skipped and the end event says so; another input misses."""
    calls: list[str] = []
    executor = Executor(counted(calls).compile(), store, engine)
    hits = []
    for turn, item in enumerate(["x", "x", "y"]):
        async with executor.stream({"item": item}, lineage=f"{lineage}-{turn}", modes=["tasks"]) as events:
            hits += [event.data["cached"] async for event in events if event.kind == "end"]
        assert events.result is not None
        assert events.result.unwrap().log == [f"did {item}"]
    assert (calls, hits) == (["x", "y"], [False, True, False])


async def test_e44_what_parts_cached_results(store: Any, engine: Any, lineage: str) -> None:
    """Another version has its own results; `fields` ignores the others; `clear` and a past `ttl` make it run again."""
    calls: list[str] = []
    cache = MemoryCache()

    async def run(turn: str, item: str, n: int = 0, **options: Any) -> int:
        calls.clear()
        graph = counted(calls, cache=cache, **options).compile()
        (await Executor(graph, store, engine).run({"item": item, "n": n}, lineage=f"{lineage}-{turn}")).unwrap()
        return len(calls)

    by_item = CachePolicy(fields=("item",))
    assert [await run("1", "x", policy=by_item), await run("2", "x", 7, policy=by_item)] == [1, 0]
    second = {"version": "2", "policy": by_item}
    assert [await run("3", "x", **second), await run("4", "x", **second)] == [1, 0]
    cache.clear()
    assert await run("5", "x", policy=by_item) == 1
    for ttl, second in ((60, 0), (1e-9, 1), (0, 0), (-1, 0)):
        policy = CachePolicy(ttl=ttl)
        runs = [await run(f"ttl {ttl} {turn}", f"item {ttl}", policy=policy) for turn in range(2)]
        assert runs == [1, second]


async def test_e44_errors_are_not_cached(store: Any, engine: Any, lineage: str) -> None:
    """A failure leaves nothing behind: the next run calls the function again."""
    flaky = Flaky(1)
    graph = after_flaky(flaky).with_cache(MemoryCache(), CachePolicy()).compile()
    statuses = [(await Executor(graph, store, engine).run(lineage=f"{lineage}-{i}")).status for i in range(3)]
    assert (statuses, flaky.calls) == (["failed", "completed", "completed"], 2)


async def test_e44_a_key_that_fails_is_a_miss(store: Any, engine: Any, lineage: str) -> None:
    """If the key can't be made, the node runs; the run is not harmed."""
    calls: list[str] = []
    policy = CachePolicy(key=lambda state: 1 / 0)
    executor = Executor(counted(calls, policy=policy).compile(), store, engine)
    for turn in range(2):
        assert (await executor.run({"item": "x"}, lineage=f"{lineage}-{turn}")).ok
    assert calls == ["x", "x"]


async def test_e44_after_callbacks_and_routing_follow_a_hit(store: Any, engine: Any, lineage: str) -> None:
    """A hit goes through the after-callbacks and fires the jump that was kept with it."""
    calls: list[str] = []

    async def jump(state: Trail) -> Command:
        calls.append("node")
        return Command(update={"log": ["a"]}, goto="b")

    def route(state: Trail) -> Literal["c"]:
        return "c"

    builder = flow("b, c -> END").add_node("a", jump, destinations=["b"]).set_entry_point("a")
    builder.add_conditional_edges("a", route)
    builder.with_cache(MemoryCache(), CachePolicy()).with_node_callbacks(
        NodeCallbacks(after=lambda ctx, state, result, error: calls.append("after")), node="a"
    )
    executor = Executor(builder.compile(), store, engine)
    logs = [(await executor.run(lineage=f"{lineage}-{turn}")).unwrap().log for turn in range(2)]
    assert logs == [["a", "b"], ["a", "b"]]
    assert calls == ["node", "after", "after"]
