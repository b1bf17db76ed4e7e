"""Public fault reports about crashes (kind `durable`): what is kept, what is done again, in which order it is kept.

A crash is a store that dies at a chosen write (see `support/dying.py`); processes that are really killed are in
tests/engine/test_kill.py.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.dying import Dying, survives
from support.graphs import says
from support.ordering import Turns

from graphagent import Executor, NodeContext, StateGraph, append
from graphagent.engine.cache import MemoryCache
from graphagent.errors import CheckpointNotFound
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.policies import CachePolicy

pytestmark = pytest.mark.anyio


class Log(BaseModel):
    log: Annotated[list[str], append] = []
    got: Annotated[list[str], append] = []


@pytest.fixture(params=["superstep", "eager"])
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine; the way without debug mode is the same as far as this file goes."""
    return str(request.param)


@pytest.fixture
def stride(request: pytest.FixtureRequest) -> int:
    """Every write is a point of death, on PostgreSQL every third one: opening it takes long."""
    return 3 if "postgres" in request.node.name else 1


def workflow(runs: list[str], external: list[str]) -> CompiledGraph:
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
    return graph.set_entry_point("first").set_finish_point("last").compile()


NODES = {"first", "pays", "c1", "c2", "last"}


async def kept(store: Any, lineage: str) -> set[str]:
    """The nodes whose result the store has: of step rows and of finished activations of the open step."""
    found: set[str] = set()
    for namespace in await store.namespaces(lineage):
        for header in await store.history(lineage, namespace):
            found |= set(header.nodes)
            found |= {row.node for row in (await store.activations(lineage, namespace, header.seq, None)).values()}
    return found


@dataclass
class World:
    """The workflow with what it does to the world; `clear` makes a new world of it."""

    runs: list[str] = field(default_factory=list)
    external: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.graph = workflow(self.runs, self.external)

    def clear(self) -> None:
        self.runs.clear()
        self.external.clear()


async def dies(world: World, open_store: Any, engine: Any, lineage: str, store_of: Callable[[Any], Dying]) -> bool:
    """Run the workflow, die at a write, go on in a second life, and check what was kept; False if it didn't die."""
    world.clear()
    async with open_store() as store:
        first = Executor(world.graph, store_of(store), engine)
        if await survives(lambda: first.run(lineage=lineage)):
            return False
    before = Counter(world.runs)
    async with open_store() as store:
        done = await kept(store, lineage)
        again = Executor(world.graph, store, engine)
        try:
            result = await again.resume(lineage)
        except CheckpointNotFound:
            assert not world.runs, "work was done before the input was kept"
            result = await again.run(lineage=lineage)
    assert result.status == "completed", result.reason
    assert sorted(result.state.log) == ["c1", "c2", "first", "last", "pays"]
    assert result.state.got == ["receipt"]
    assert len(world.external) == 1
    for node in NODES:
        wanted = 1 if node in done or not before[node] else 2
        assert Counter(world.runs)[node] == wanted, (node, done)
    return True


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("pauses", [(0,), (3, 0, 1)], ids=str)
async def test_c067_a_result_is_kept_or_absent_at_every_point_of_death(
    open_store: Any, engine: Any, lineage: str, stride: int, when: str, pauses: Any
) -> None:
    """At every write, however writes are delayed: a node whose result was kept is not run again, every other that had
    begun is run once more, and the outcome and the payment are those of a run that nothing disturbed."""
    world = World()
    point = 1
    dying = partial(Dying, when=when, pauses=pauses)
    while await dies(world, open_store, engine, f"{lineage}-{point}", partial(dying, at=point)):
        point += stride
    assert point > 8


async def test_c067_a_second_death_on_the_way_back_changes_nothing(store: Any, engine: Any, lineage: str) -> None:
    """Dying again during the recovery, at pairs of a first and a second point, still ends in the same state."""
    world = World()
    deaths = 0
    for one, two in itertools.product((2, 5, 8), (1, 3, 5)):
        name = f"{lineage}-{one}-{two}"
        world.clear()
        for at in (one, two, 0):
            dying = Dying(store, at, "after")
            executor = Executor(world.graph, dying, engine)
            run = executor.resume if await store.history(name) else executor.run
            await survives(lambda: run(lineage=name))  # noqa: B023
            deaths += dying.dead
        state = await executor.state(name)
        assert sorted(state.log) == ["c1", "c2", "first", "last", "pays"]
        assert (state.got, len(world.external)) == (["receipt"], 1)
    assert deaths > 12


def parallel(order: Any, external: list[str]) -> CompiledGraph:
    """Four nodes side by side, each with one durable call; the calls end in `order` (None: as it comes)."""
    turns = Turns(order) if order else None

    def node(name: str) -> Any:
        async def call() -> str:
            async with turns.turn(name) if turns else nullcontext():
                external.append(name)
                return f"r{name}"

        async def run(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
            return {"log": [name], "got": [await ctx.step("call", call, idempotent=True)]}

        return run

    graph = StateGraph(Log).add_node("end", says("end"))
    for name in "abcd":
        graph.add_node(name, node(name))
    return graph.set_entry_point(*"abcd").add_join_edge(list("abcd"), "end").set_finish_point("end").compile()


async def journal(store: Any, lineage: str) -> list[Any]:
    """What is stored of a lineage: rows with their state, and effects, without run ids and times."""
    found = []
    for header in reversed(await store.history(lineage)):
        loaded = await store.load(lineage, "", header.seq)
        row = loaded.row
        effects = [
            (e.position, e.name, e.ordinal, e.committed, e.result) for e in await store.effects(lineage, "", header.seq)
        ]
        found.append((row.seq, row.source, row.step, row.nodes, row.marking, loaded.values, sorted(effects, key=repr)))
    return found


PERMUTATIONS = list(itertools.permutations("abcd"))


async def test_c073_the_recorded_order_is_the_order_of_calls(store: Any, lineage: str) -> None:
    """Superstep engine: for orders in which four parallel tools can end, the record is the same, the tools did
    run at once, and a replay never reports a mismatch."""
    seen = []
    for i, order in enumerate(PERMUTATIONS[::3]):
        external: list[str] = []
        executor = Executor(parallel(order, external), store)
        result = await executor.run(lineage=f"{lineage}-{i}")
        assert result.unwrap().got == ["ra", "rb", "rc", "rd"]
        assert external == list(order)
        report = await executor.replay(f"{lineage}-{i}")
        assert report.ok, report.divergence
        seen.append(await journal(store, f"{lineage}-{i}"))
    assert all(one == seen[0] for one in seen)


async def test_c073_the_eager_engine_records_its_order_and_a_replay_follows_it(store: Any, lineage: str) -> None:
    """Eager engine: writes merge as nodes end; a replay follows the recorded order for every order."""
    for i, order in enumerate(PERMUTATIONS[::5]):
        executor = Executor(parallel(order, []), store, "eager")
        result = await executor.run(lineage=f"{lineage}-{i}")
        assert sorted(result.unwrap().log) == [*"abcd", "end"]
        report = await executor.replay(f"{lineage}-{i}")
        assert report.ok, report.divergence


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


async def test_c078_recovery_succeeds_whatever_ended_first(
    open_store: Any, engine: Any, lineage: str, stride: int
) -> None:
    """Four nodes with a durable call each, ending in a random order; at every point of death recovery ends in the same
    state, and calls that were recorded are not made again."""
    chance = random.Random(78)
    external: list[str] = []
    undisturbed = parallel(None, external)
    point = 1
    while True:
        external.clear()
        name = f"{lineage}-{point}"
        async with open_store() as store:
            dying = Dying(store, point, chance.choice(["before", "after"]))
            executor = Executor(parallel(chance.sample("abcd", 4), external), dying, engine)
            if await survives(lambda: executor.run(lineage=name)):  # noqa: B023
                break
            recorded = {e.position for e in await store.effects(name, "", 0) if e.committed}
            made = Counter(external)
        async with open_store() as store:
            again = Executor(undisturbed, store, engine)
            result = await (again.resume(name) if await store.history(name) else again.run(lineage=name))
        assert sorted(result.unwrap().got) == ["ra", "rb", "rc", "rd"]
        if engine == "superstep":
            assert result.unwrap().log == [*"abcd", "end"]
        for position, call in enumerate("abcd"):
            if position in recorded:
                assert Counter(external)[call] == made[call]
        point += stride
    assert point > 6
