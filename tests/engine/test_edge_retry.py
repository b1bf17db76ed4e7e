"""Callbacks, errors and retries: edge cases 33 to 43 of the graph specification, on every store and both engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from support.graphs import Trail, flow, says
from support.nodes import Flaky, SteppedClock, after_flaky, kinds, run_with_events

from graphagent import (
    CachePolicy,
    Executor,
    Limits,
    NodeCallbacks,
    NodeContext,
    RetryPolicy,
    StateGraph,
)
from graphagent.engine import MemoryCache
from graphagent.errors import NodeError, NodeTimeout, StepFailed

pytestmark = pytest.mark.anyio


# -- callbacks -----------------------------------------------------------------------------------


async def test_e33_a_before_callback_stands_for_the_node(store: Any, engine: Any, lineage: str) -> None:
    """Its result replaces function, cache and after-callbacks; edges fire and the end of the node is told."""
    calls: list[str] = []
    cache = MemoryCache()

    async def never(state: Trail) -> None:
        calls.append("node")

    callbacks = NodeCallbacks(
        before=lambda ctx, state: {"log": ["instead"]}, after=lambda ctx, state, result, error: calls.append("after")
    )
    builder = flow("START -> a -> b -> END", a=never).with_node_callbacks(callbacks, node="a")
    graph = builder.with_cache(cache, CachePolicy()).compile()
    result, events = await run_with_events(Executor(graph, store, engine), lineage)
    assert result.unwrap().log == ["instead", "b"]
    assert calls == []
    assert kinds(events, "a") == ["start", "end"]
    cached = Executor(flow("START -> a -> b -> END").with_cache(cache, CachePolicy()).compile(), store, engine)
    assert (await cached.run(lineage=lineage + "-again")).unwrap().log == ["a", "b"]


async def test_e34_a_before_callback_that_raises(store: Any, engine: Any, lineage: str) -> None:
    """The function doesn't run; on_error is called once, one error event goes out, and the run fails by name."""
    calls: list[str] = []

    def broken(ctx: NodeContext, state: Trail) -> None:
        raise ValueError("not today")

    async def never(state: Trail) -> None:
        calls.append("node")

    callbacks = NodeCallbacks(before=broken, on_error=lambda ctx, state, error: calls.append(str(error)))
    graph = flow("START -> a -> END", a=never).with_node_callbacks(callbacks).compile()
    result, events = await run_with_events(Executor(graph, store, engine), lineage)
    assert calls == ["not today"]
    assert kinds(events, "a") == ["start", "error"]
    assert isinstance(result.error, NodeError)
    assert "node 'a' failed: ValueError: not today" in result.reason


async def test_e35_after_callbacks_form_a_chain(store: Any, engine: Any, lineage: str) -> None:
    """The node's own after-callback replaces the result; that of the graph, which is later, sees the replaced one."""
    seen: list[Any] = []

    def outer(ctx: NodeContext, state: Trail, result: Any, error: Any) -> Any:
        seen.append(result)
        return {"log": [*result["log"], "graph"]}

    builder = flow("START -> a -> END")
    builder.with_node_callbacks(NodeCallbacks(after=outer))
    builder.with_node_callbacks(NodeCallbacks(after=lambda ctx, state, result, error: {"log": ["own"]}), node="a")
    result = await Executor(builder.compile(), store, engine).run(lineage=lineage)
    assert seen == [{"log": ["own"]}]
    assert result.unwrap().log == ["own", "graph"]


async def test_e36_an_after_callback_recovers_a_failure(store: Any, engine: Any, lineage: str) -> None:
    """After the last attempt it gets (None, error) once; what it returns is the result, and what follows runs once."""
    seen: list[Any] = []

    def recover(ctx: NodeContext, state: Trail, result: Any, error: Any) -> Any:
        if ctx.activation.node == "flaky":
            seen.append((result, str(error)))
            return {"log": ["recovered"]}
        return None

    flaky = Flaky(9)
    builder = after_flaky(flaky, RetryPolicy(max_attempts=2, initial=0, jitter=False))
    graph = builder.with_node_callbacks(NodeCallbacks(after=recover)).compile()
    result = await Executor(graph, store, engine, clock=SteppedClock()).run(lineage=lineage)
    assert seen == [(None, "failure 2")]
    assert result.unwrap().log == ["recovered", "next"]


@pytest.mark.parametrize("kind", ["before", "after", "on_error", "on_activation_end"])
async def test_e34_no_callback_makes_the_call_raise(store: Any, engine: Any, lineage: str, kind: str) -> None:
    """Whatever callback raises, the failure is in the result and names the node; `run` itself does not raise."""

    def broken(*args: Any) -> None:
        raise ValueError("broken callback")

    flaky = Flaky(1 if kind == "on_error" else 0)
    graph = after_flaky(flaky).with_node_callbacks(NodeCallbacks(**{kind: broken}), node="flaky").compile()
    result = await Executor(graph, store, engine).run(lineage=lineage)
    assert result.status == "failed"
    assert "'flaky'" in result.reason
    assert "broken callback" in result.reason
    assert result.state.log == []


# -- failures and retries ------------------------------------------------------------------------


async def test_e37_an_exception_in_a_node(store: Any, engine: Any, lineage: str) -> None:
    """The failure names the node and keeps the cause; the others of the step run to their end and are kept."""
    runs: list[str] = []

    async def fails(state: Trail) -> None:
        runs.append("bad")
        raise ZeroDivisionError("oops")

    async def works(state: Trail) -> dict[str, Any]:
        await anyio.sleep(0.005)
        runs.append("good")
        return {"log": ["good"]}

    executor = Executor(flow("START -> bad, good -> END", bad=fails, good=works).compile(), store, engine)
    result = await executor.run(lineage=lineage)
    assert isinstance(result.error, NodeError)
    assert (result.error.node, type(result.error.__cause__)) == ("bad", ZeroDivisionError)
    assert "node 'bad' failed: ZeroDivisionError: oops" in result.reason
    assert sorted(runs) == ["bad", "good"]
    again = await executor.resume(lineage)
    assert (again.status, runs.count("good")) == ("failed", 1)


async def test_e37_all_failures_of_a_step_are_told(store: Any, engine: Any, lineage: str) -> None:
    """Two nodes of a step fail: the result holds both, in graph order."""

    def failing(wait: float) -> Callable[[Trail], Any]:
        async def node(state: Trail) -> None:
            await anyio.sleep(wait)
            raise ValueError(f"after {wait}")

        return node

    graph = flow("START -> a, b -> END", a=failing(0.004), b=failing(0.004 if engine == "eager" else 0)).compile()
    result = await Executor(graph, store, engine).run(lineage=lineage)
    assert isinstance(result.error, StepFailed)
    assert [error.node for error in result.error.exceptions if isinstance(error, NodeError)] == ["a", "b"]


async def test_e38_two_failures_then_success(store: Any, engine: Any, lineage: str) -> None:
    """Three attempts: one start, two errors that say when the next try comes, one end; what follows runs once."""
    clock, flaky = SteppedClock(), Flaky(2)
    graph = after_flaky(flaky, RetryPolicy(max_attempts=3, initial=1, factor=2, jitter=False)).compile()
    result, events = await run_with_events(Executor(graph, store, engine, clock=clock), lineage)
    assert result.unwrap().log == ["flaky", "next"]
    assert flaky.calls == 3
    assert kinds(events, "flaky") == ["start", "error", "error", "end"]
    told = [event.data for event in events if event.kind == "error"]
    assert [(data["attempt"], data["retrying"], data["next_delay"]) for data in told] == [(1, True, 1), (2, True, 2)]
    assert clock.slept == [1, 2]


async def test_e38_attempts_used_up(store: Any, engine: Any, lineage: str) -> None:
    """After the last attempt the failure says how many there were; the last error event says that none follows."""
    flaky = Flaky(9)
    graph = after_flaky(flaky, RetryPolicy(max_attempts=3, initial=0, jitter=False)).compile()
    result, events = await run_with_events(Executor(graph, store, engine, clock=SteppedClock()), lineage)
    assert isinstance(result.error, NodeError)
    assert result.error.attempts == 3
    assert "node 'flaky' failed after 3 attempts: ConnectionError: failure 3" in result.reason
    told = [event.data for event in events if event.kind == "error" and event.node == "flaky"]
    assert [data["retrying"] for data in told] == [True, True, False]


async def test_e39_without_a_policy_one_attempt(store: Any, engine: Any, lineage: str) -> None:
    """No policy: one attempt, and what follows doesn't run."""
    flaky = Flaky(1)
    result = await Executor(after_flaky(flaky).compile(), store, engine).run(lineage=lineage)
    assert (result.status, flaky.calls, result.state.log) == ("failed", 1, [])


async def test_e39_an_interrupt_is_not_retried(store: Any, engine: Any, lineage: str) -> None:
    """A question is no failure: one attempt, no error callback, what follows waits."""
    calls: list[str] = []

    async def asks(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        calls.append("ask")
        return {"log": [await ctx.interrupt("ok", "go on?", str)]}

    builder = StateGraph(Trail).add_node("a", asks, retry=RetryPolicy(max_attempts=5)).add_node("b", says("b"))
    builder.set_entry_point("a").add_edge("a", "b").set_finish_point("b")
    builder.with_node_callbacks(NodeCallbacks(on_error=lambda *args: calls.append("error")))
    executor = Executor(builder.compile(), store, engine)
    result = await executor.run(lineage=lineage)
    assert (result.status, calls, result.state.log) == ("interrupted", ["ask"], [])
    assert (await executor.resume(lineage, answer="yes")).unwrap().log == ["yes", "b"]


@pytest.mark.parametrize("max_elapsed", [0, 0.9])
async def test_e40_the_time_for_retries_is_up(store: Any, engine: Any, lineage: str, max_elapsed: float) -> None:
    """No attempt starts that would begin after `max_elapsed`; the message says that this budget ended it."""
    clock, flaky = SteppedClock(), Flaky(9)
    graph = after_flaky(flaky, RetryPolicy(max_attempts=9, initial=1, max_elapsed=max_elapsed, jitter=False)).compile()
    result = await Executor(graph, store, engine, clock=clock).run(lineage=lineage)
    assert (result.status, flaky.calls, clock.slept) == ("failed", 1, [])
    assert f"retry budget of {max_elapsed} s exhausted" in result.reason


async def test_e41_a_step_deadline_cuts_a_retry_delay_short(store: Any, lineage: str) -> None:
    """A delay that is longer than the step may take ends at the deadline, as a timeout that names what still ran.

    Supersteps only: the eager engine has no steps to time.
    """
    flaky = Flaky(9)
    graph = after_flaky(flaky, RetryPolicy(max_attempts=9, initial=60, max_interval=60, jitter=False)).compile()
    with anyio.fail_after(5):
        result = await Executor(graph, store, limits=Limits(step_timeout=0.02)).run(lineage=lineage)
    assert isinstance(result.error, NodeTimeout)
    assert flaky.calls == 1
    for part in ("step 1", "0.02 s", "limits.step_timeout", "flaky#1"):
        assert part in result.reason


BOUNDS = [
    pytest.param(RetryPolicy(initial=1, factor=2, max_interval=5, jitter=False), [1, 2, 4, 5, 5], id="capped"),
    pytest.param(RetryPolicy(initial=1, factor=0, max_interval=5, jitter=False), [1, 1, 1], id="factor-zero"),
    pytest.param(RetryPolicy(initial=1, factor=-2, max_interval=5, jitter=False), [1, 1, 1], id="factor-negative"),
    pytest.param(RetryPolicy(initial=1, factor=3, max_interval=None, jitter=False), [1, 1, 1], id="no-max-interval"),
    pytest.param(RetryPolicy(initial=2, factor=10.0, max_interval=9, jitter=False), [2, 9, 9], id="steep"),
]


@pytest.mark.parametrize(("policy", "delays"), BOUNDS)
def test_e42_delays_without_jitter(policy: RetryPolicy, delays: list[float]) -> None:
    """Exponential from `initial`, never above the cap; factor at or below 0, or no cap, is constant."""
    assert [policy.delay(attempt, lambda: 0.5) for attempt in range(1, len(delays) + 1)] == delays
    assert policy.delay(0, lambda: 0.5) == policy.delay(-3, lambda: 0.5) == delays[0]
    assert policy.delay(10_000, lambda: 0.5) == delays[-1]


@pytest.mark.parametrize("drawn", [0.0, 0.5, 0.999999])
def test_e42_jitter_never_leaves_the_bounds(drawn: float) -> None:
    """Jitter lies in [d, 2d) and never above the cap."""
    policy = RetryPolicy(initial=1, factor=2, max_interval=5)
    for attempt, base in enumerate([1, 2, 4, 5, 5], start=1):
        delay = policy.delay(attempt, lambda: drawn)
        assert base <= delay <= 5
        assert delay < 2 * base
    constant = RetryPolicy(initial=1, max_interval=None)
    assert constant.delay(7, lambda: drawn) == 1  # the cap is `initial` then


async def test_e43_the_default_policy_is_for_nodes_without_one(store: Any, engine: Any, lineage: str) -> None:
    """A node's own policy goes first, also when it retries less."""
    own, bare = Flaky(9), Flaky(9)
    for flaky, retry, attempts in ((own, RetryPolicy(max_attempts=2, initial=0), 2), (bare, None, 4)):
        executor = Executor(
            after_flaky(flaky, retry).compile(),
            store,
            engine,
            default_retry=RetryPolicy(max_attempts=4, initial=0),
            clock=SteppedClock(),
        )
        await executor.run(lineage=f"{lineage}-{attempts}")
        assert flaky.calls == attempts


async def test_e43_the_first_policy_that_matches(store: Any, engine: Any, lineage: str) -> None:
    """Of several policies the first whose `retry_on` (types or predicates) matches decides; none: no retry."""
    policies = [
        RetryPolicy(max_attempts=9, initial=0, retry_on=()),
        RetryPolicy(max_attempts=2, initial=0, retry_on=(ConnectionError,)),
        RetryPolicy(max_attempts=4, initial=0, retry_on=(OSError,)),
        RetryPolicy(max_attempts=3, initial=0, retry_on=(lambda e: isinstance(e, ValueError),)),
    ]
    for error, attempts in ((ConnectionError, 2), (TimeoutError, 4), (ValueError, 3), (KeyError, 1)):
        flaky = Flaky(9, error)
        executor = Executor(after_flaky(flaky, policies).compile(), store, engine, clock=SteppedClock())
        assert (await executor.run(lineage=f"{lineage}-{attempts}")).status == "failed"
        assert flaky.calls == attempts


async def test_e38_a_child_graph_is_retried(store: Any, engine: Any, lineage: str) -> None:
    """The retry policy of a subgraph node holds for the child's failure: what the child had done is not done again."""
    flaky = Flaky(2)
    child = flow("START -> first -> flaky -> END", flaky=flaky).compile()
    retry = RetryPolicy(max_attempts=3, initial=1, jitter=False)
    builder = StateGraph(Trail).add_subgraph_node("child", child, retry=retry).add_node("next", says("next"))
    graph = builder.set_entry_point("child").add_edge("child", "next").set_finish_point("next").compile()
    clock = SteppedClock()
    result, events = await run_with_events(Executor(graph, store, engine, clock=clock), lineage)
    assert result.unwrap().log == ["first", "flaky", "next"]
    assert (flaky.calls, clock.slept) == (3, [1, 2])
    root = [event for event in events if not event.namespace]
    assert kinds(root, "child") == ["start", "error", "error", "end"]
    assert [event.node for event in events if event.namespace and event.kind == "end"] == ["first", "flaky"]


async def test_e36_an_after_callback_recovers_a_child_graph(store: Any, engine: Any, lineage: str) -> None:
    """A child's failure goes through the callbacks of its node like any other."""
    seen: list[str] = []

    def recover(ctx: NodeContext, state: Trail, result: Any, error: Any) -> Any:
        seen.append(str(error))
        return {"log": ["recovered"]}

    child = flow("START -> flaky -> END", flaky=Flaky(9)).compile()
    builder = StateGraph(Trail).add_subgraph_node("child", child).set_entry_point("child").set_finish_point("child")
    graph = builder.with_node_callbacks(NodeCallbacks(after=recover), node="child").compile()
    result = await Executor(graph, store, engine).run(lineage=lineage)
    assert result.unwrap().log == ["recovered"]
    assert seen == ["node 'flaky' failed: ConnectionError: failure 1"]


@pytest.mark.parametrize("part", ["retry_on", "cache"])
async def test_e37_what_is_around_a_node_may_fail(store: Any, engine: Any, lineage: str, part: str) -> None:
    """A retry predicate or a cache that raises is a failure of the activation, in the result and by name."""

    class BrokenCache(MemoryCache):
        def get(self, namespace: str, key: str) -> Any:
            raise OSError("no cache today")

    retry = RetryPolicy(retry_on=(lambda error: 1 / 0 > 1,)) if part == "retry_on" else None
    builder = after_flaky(Flaky(1), retry)
    if part == "cache":
        builder.with_cache(BrokenCache(), CachePolicy())
    result = await Executor(builder.compile(), store, engine).run(lineage=lineage)
    assert result.status == "failed"
    assert "'flaky'" in result.reason
    assert ("division by zero" if part == "retry_on" else "no cache today") in result.reason
