"""Public fault reports about crashes (kind `durable`): what is kept, what is done again, in which order it is kept.

A crash is a store that dies at a chosen write (see `support/dying.py`); processes that are really killed are in
tests/engine/test_kill.py.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.dying import Dying, survives
from support.graphs import says
from support.ordering import Turns
from support.pausing import Lives, keys

from graphagent import Executor, NodeCallbacks, NodeContext, RetryPolicy, StateGraph, append
from graphagent.engine.cache import MemoryCache
from graphagent.errors import CheckpointNotFound, EffectUnknown
from graphagent.graph.policies import CachePolicy

pytestmark = pytest.mark.anyio


class Log(BaseModel):
    log: Annotated[list[str], append] = []
    got: Annotated[list[str], append] = []


@pytest.fixture
def lives(open_store: Any, engine: Any, lineage: str) -> Callable[[Callable[[], StateGraph]], Lives]:
    """Makes the lives of a graph on each store and engine."""
    return lambda graph: Lives(open_store, graph, engine, lineage)


def workflow(runs: list[str], external: list[str]) -> StateGraph:
    """A node, two in parallel of which one has a reconciled effect, a child graph, a join and a last node."""

    def node(name: str) -> Any:
        async def run(_: Any) -> dict[str, list[str]]:
            runs.append(name)
            return {"log": [name]}

        return run

    async def pays(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
        runs.append("pays")
        key = ctx.idempotency_key("pay")

        def pay() -> str:
            external.append(key)
            return "receipt"

        def look_up() -> str:
            return "receipt" if key in external else pay()

        return {"log": ["pays"], "got": [await ctx.step("pay", pay, reconcile=look_up)]}

    child = StateGraph(Log, name="child").add_node("c1", node("c1")).add_node("c2", node("c2")).add_edge("c1", "c2")
    child.set_entry_point("c1").set_finish_point("c2")
    graph = StateGraph(Log).add_node("first", node("first")).add_node("pays", pays)
    graph.add_subgraph_node("child", child.compile()).add_node("last", node("last"))
    graph.add_edge("first", "pays").add_edge("first", "child").add_join_edge(["pays", "child"], "last")
    return graph.set_entry_point("first").set_finish_point("last")


NODES = {"first", "pays", "c1", "c2", "last"}


async def kept(store: Any, lineage: str) -> set[str]:
    """The nodes whose result the store has: of step rows and of finished activations of the open step."""
    found: set[str] = set()
    for namespace in await store.namespaces(lineage):
        for header in await store.history(lineage, namespace):
            found |= set(header.nodes)
            found |= {row.node for row in (await store.activations(lineage, namespace, header.seq, None)).values()}
    return found


async def die_and_go_on(open_store: Any, engine: Any, lineage: str, at: int, when: str, pauses: Any) -> bool:
    """Run the workflow, die at a write, go on in a second life, and check what was kept; False if it didn't die."""
    runs: list[str] = []
    external: list[str] = []
    async with open_store() as store:
        dying = Dying(store, at, when, pauses)
        first = Executor(workflow(runs, external).compile(), dying, engine)
        if await survives(lambda: first.run(lineage=lineage)):
            return False
    before = Counter(runs)
    async with open_store() as store:
        done = await kept(store, lineage)
        again = Executor(workflow(runs, external).compile(), store, engine)
        try:
            result = await again.resume(lineage)
        except CheckpointNotFound:
            assert not runs, "work was done before the input was kept"
            result = await again.run(lineage=lineage)
    assert result.status == "completed", (at, when, result.reason)
    assert sorted(result.state.log) == ["c1", "c2", "first", "last", "pays"]
    assert result.state.got == ["receipt"]
    assert len(external) == 1, (at, when)
    for node in NODES:
        wanted = 1 if node in done or not before[node] else 2
        assert Counter(runs)[node] == wanted, (at, when, node, done)
    return True


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("pauses", [(0,), (3, 0, 1), (0, 5)], ids=str)
async def test_c067_a_result_is_kept_or_absent_at_every_point_of_death(
    open_store: Any, engine: Any, lineage: str, when: str, pauses: Any
) -> None:
    """At every write, however writes are delayed: a node whose result was kept is not run again, every other that had
    begun is run once more, and the outcome and the payment are those of a run that nothing disturbed."""
    points = 0
    while await die_and_go_on(open_store, engine, f"{lineage}-{points}", points + 1, when, pauses):
        points += 1
    assert points >= 8


async def test_c067_a_second_death_on_the_way_back_changes_nothing(open_store: Any, engine: Any, lineage: str) -> None:
    """Dying again during the recovery, at every pair of a first and a second point, still ends in the same state."""
    pairs = 0
    for one, two in itertools.product(range(1, 12, 2), range(1, 12, 3)):
        name = f"{lineage}-{one}-{two}"
        runs: list[str] = []
        external: list[str] = []
        for at in (one, two, 0):
            async with open_store() as store:
                executor = Executor(workflow(runs, external).compile(), Dying(store, at, "after"), engine)
                known = bool(await store.history(name))
                pairs += at == two and known
                await survives(lambda e=executor, k=known, n=name: e.resume(n) if k else e.run(lineage=n))  # type: ignore[misc]
        async with open_store() as store:
            state = await Executor(workflow(runs, external).compile(), store, engine).state(name)
        assert sorted(state.log) == ["c1", "c2", "first", "last", "pays"]
        assert (state.got, len(external)) == (["receipt"], 1)
    assert pairs > 20


def tool(posts: list[str], how: str, fate: list[str]) -> StateGraph:
    """A tool that posts to an external ledger; `fate` says what goes wrong after the post, and is used up."""

    async def call(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
        key = ctx.idempotency_key("post")

        def post() -> str:
            posts.append(key)
            if fate:
                raise {"lost": TimeoutError("no response"), "died": asyncio.CancelledError()}[fate.pop()]
            return f"posted {len(posts)}"

        reconcile = (lambda: f"found {posts.count(key)}") if how == "reconcile" else None
        return {"got": [await ctx.step("post", post, reconcile=reconcile, idempotent=how == "idempotent")]}

    retry = RetryPolicy(max_attempts=3, initial=0, jitter=False)
    return StateGraph(Log).add_node("tool", call, retry=retry).set_entry_point("tool").set_finish_point("tool")


OUTCOMES = [("blind", 1, None), ("reconcile", 1, "found 1"), ("idempotent", 2, "posted 2")]


@pytest.mark.parametrize(("how", "count", "got"), OUTCOMES, ids=[row[0] for row in OUTCOMES])
async def test_c071_a_lost_response_is_never_posted_again_blindly(lives: Any, how: str, count: int, got: Any) -> None:
    """The post succeeded and its response was lost: the retry gets the recorded outcome by reconciliation, or repeats
    under the same key where that is said to be harmless, or the effect is surfaced as unknown."""
    posts: list[str] = []
    fate = ["lost"]
    one = lives(lambda: tool(posts, how, fate))
    result = await one.run()
    if got is None:
        assert isinstance(result.error, EffectUnknown)
        assert posts[0] in str(result.error)
        assert "'tool'" in str(result.error)
        assert isinstance((await one.resume()).error, EffectUnknown)
    else:
        assert result.unwrap().got == [got]
    assert len(posts) == count
    assert len(set(posts)) == 1


@pytest.mark.parametrize("point", [1, 2, 3])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", ["blind", "reconcile", "idempotent"])
async def test_c071_a_worker_that_dies_around_a_post_leaves_a_clear_record(
    open_store: Any, engine: Any, lineage: str, how: str, point: int, when: str
) -> None:
    """The process dies at the claim, at the commit or at the step: on resume the recorded result is reused, or the
    claim alone is surfaced; nothing is posted twice without leave."""
    posts: list[str] = []
    async with open_store() as store:
        dying = Dying(store, point + 1, when)  # the first write is the input
        executor = Executor(tool(posts, how, []).compile(), dying, engine)
        assert not await survives(lambda: executor.run(lineage=lineage))
    had = len(posts)
    async with open_store() as store:
        result = await Executor(tool(posts, how, []).compile(), store, engine).resume(lineage)
    claimed_only = (point, when) in ((1, "after"), (2, "before"))
    if claimed_only and how == "blind":
        assert isinstance(result.error, EffectUnknown)
        assert len(posts) == had
    else:
        assert result.status == "completed"
        assert len(posts) == (had + 1 if claimed_only and how == "idempotent" else had or (0 if how == "reconcile" and claimed_only else 1))
    assert len(set(posts)) <= 1


@pytest.mark.parametrize("how", ["edge", "after"])
async def test_c072_a_handler_that_ran_does_not_run_again(lives: Any, how: str) -> None:
    """A node fails and its handler writes a line and the state while a sibling waits: the line appears once, however
    often the run is resumed."""

    async def fails(_: Any) -> None:
        one.external.append("x")
        raise ConnectionError("down")

    async def sibling(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
        return {"got": [await ctx.interrupt("a"), await ctx.interrupt("b")]}

    def handle(*_: Any) -> dict[str, list[str]]:
        one.external.append("handled")
        return {"log": ["degraded"]}

    def graph() -> StateGraph:
        built = StateGraph(Log).add_node("x", fails).add_node("y", sibling).set_entry_point("x", "y")
        if how == "edge":
            built.add_node("mend", lambda _: handle(), inline=True).add_error_edge("x", "mend")
        else:
            built.with_node_callbacks(NodeCallbacks(after=handle), node="x")
        return built.add_node("end", says("end")).add_edge("y", "end").set_finish_point("end")

    one = lives(graph)
    result = await one.run()
    for key in ("a", "b"):
        result = await one.resume()
        assert keys(result) == [key]
        result = await one.resume({key: key})
    assert sorted(result.unwrap().log) == ["degraded", "end"]
    assert result.unwrap().got == ["a", "b"]
    assert Counter(one.external) == {"x": 1, "handled": 1}


def parallel(order: Any, runs: list[str], external: list[str]) -> StateGraph:
    """Four nodes side by side, each with one durable call; the calls end in `order`."""
    turns = Turns(order)

    def node(name: str) -> Any:
        async def call() -> str:
            async with turns.turn(name):
                external.append(name)
                return f"r{name}"

        async def run(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
            runs.append(name)
            return {"log": [name], "got": [await ctx.step("call", call, idempotent=True)]}

        return run

    graph = StateGraph(Log).add_node("end", says("end"))
    for name in "abcd":
        graph.add_node(name, node(name))
    return graph.set_entry_point(*"abcd").add_join_edge(list("abcd"), "end").set_finish_point("end")


async def journal(store: Any, lineage: str) -> list[Any]:
    """What is stored of a lineage: rows with their state, and effects, without run ids and times."""
    found = []
    for header in reversed(await store.history(lineage)):
        loaded = await store.load(lineage, "", header.seq)
        row = loaded.row
        effects = [(e.position, e.name, e.ordinal, e.committed, e.result)
                   for e in await store.effects(lineage, "", header.seq)]
        found.append((row.seq, row.source, row.step, row.nodes, row.marking, loaded.values, sorted(effects, key=repr)))
    return found


PERMUTATIONS = list(itertools.permutations("abcd"))


async def test_c073_the_recorded_order_is_the_order_of_calls(store: Any, lineage: str) -> None:
    """Superstep engine: for all 24 orders in which four parallel tools can end, the record is the same, the tools did
    run at once, and a replay never reports a mismatch."""
    seen = []
    for i, order in enumerate(PERMUTATIONS):
        external: list[str] = []
        executor = Executor(parallel(order, [], external).compile(), store)
        result = await executor.run(lineage=f"{lineage}-{i}")
        assert result.unwrap().got == ["ra", "rb", "rc", "rd"]
        assert external == list(order)
        report = await executor.replay(f"{lineage}-{i}")
        assert report.ok, report.divergence
        seen.append(await journal(store, f"{lineage}-{i}"))
    assert all(one == seen[0] for one in seen)


async def test_c073_the_eager_engine_records_its_order_and_a_replay_follows_it(store: Any, lineage: str) -> None:
    """Eager engine: writes merge as nodes end; a replay follows the recorded order for every order."""
    for i, order in enumerate(PERMUTATIONS[::3]):
        executor = Executor(parallel(order, [], []).compile(), store, "eager")
        result = await executor.run(lineage=f"{lineage}-{i}")
        assert result.unwrap().log == [*order, "end"]
        report = await executor.replay(f"{lineage}-{i}")
        assert report.ok, report.divergence


async def test_c073_effects_called_side_by_side_in_a_node_keep_their_places(lives: Any) -> None:
    """Three calls under one name at once: on the re-run each call gets its own recorded result, whatever ended first."""
    order = ["2", "0", "1"]

    def graph() -> StateGraph:
        turns = Turns(order)

        async def call(i: int) -> int:
            async with turns.turn(str(i)):
                one.external.append(str(i))
                return i * 10

        async def node(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
            results = await asyncio.gather(*(ctx.step("call", call, i) for i in range(3)))
            return {"got": [*map(str, results), await ctx.interrupt("q")]}

        return StateGraph(Log).add_node("n", node).set_entry_point("n").set_finish_point("n")

    one = lives(graph)
    await one.run()
    result = await one.resume({"q": "a"})
    assert result.unwrap().got == ["0", "10", "20", "a"]
    assert one.external == order


async def test_c074_a_warm_process_records_what_a_cold_one_does(open_store: Any, engine: Any, lineage: str) -> None:
    """A second run in one process finds cached results: its rows are those of the first, and a process without any
    cache replays both."""
    cache = MemoryCache()
    calls: list[str] = []

    def graph() -> StateGraph:
        async def tools(_: Any) -> dict[str, list[str]]:
            calls.append("list")
            return {"got": ["tool"]}

        built = StateGraph(Log).add_node("tools", tools, cache=CachePolicy()).add_node("use", says("use"))
        return built.add_edge("tools", "use").set_entry_point("tools").set_finish_point("use")

    async with open_store() as store:
        executor = Executor(graph().with_cache(cache).compile(), store, engine)
        for name in ("cold", "warm"):
            assert (await executor.run(lineage=f"{lineage}-{name}")).unwrap().got == ["tool"]
        assert calls == ["list"]
        cold, warm = [await journal(store, f"{lineage}-{name}") for name in ("cold", "warm")]
        assert cold == warm
    async with open_store() as store:
        fresh = Executor(graph().compile(), store, engine)
        for name in ("cold", "warm"):
            report = await fresh.replay(f"{lineage}-{name}")
            assert (report.ok, report.steps) == (True, 2)


@pytest.mark.parametrize("seed", range(3))
async def test_c078_recovery_succeeds_whatever_ended_first(open_store: Any, engine: Any, lineage: str, seed: int) -> None:
    """Four nodes with a durable call each, ending in a random order; at every point of death recovery ends in the same
    state, calls that were recorded are not made again, and the superstep journal is the undisturbed one."""
    chance = random.Random(seed)
    points = 0
    while True:
        runs: list[str] = []
        external: list[str] = []
        orders = [chance.sample("abcd", 4) for _ in range(2)]
        name = f"{lineage}-{points}"
        async with open_store() as store:
            dying = Dying(store, points + 1, chance.choice(["before", "after"]))
            executor = Executor(parallel(orders[0], runs, external).compile(), dying, engine)
            if await survives(lambda: executor.run(lineage=name)):  # noqa: B023
                break
            recorded = {e.position for e in await store.effects(name, "", 0) if e.committed}
            made = Counter(external)
        async with open_store() as store:
            again = Executor(parallel(orders[1], runs, external).compile(), store, engine)
            known = bool(await store.history(name))
            result = await (again.resume(name) if known else again.run(lineage=name))
        assert sorted(result.unwrap().got) == ["ra", "rb", "rc", "rd"]
        if engine == "superstep":
            assert result.unwrap().log == [*"abcd", "end"]
        for position, call in enumerate("abcd"):
            if position + 1 in recorded:
                assert Counter(external)[call] == made[call]
        points += 1
    assert points >= 6
