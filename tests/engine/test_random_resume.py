"""Random graphs, stopped wherever a node asks or a breakpoint is set: the end is the same as without a stop."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest
from support.region_run import Nodes, Trace, graph_with
from support.regions import Builder

from graphagent import Executor, RunResult
from graphagent.errors import GraphDefinitionError
from graphagent.graph.compiled import CompiledGraph

pytestmark = pytest.mark.anyio

SEEDS = range(20)
LARGEST = 16
"""Nodes of a graph; each seed makes a graph of its own, larger ones are left out to keep the tests quick."""


class Case:
    """A random graph, nested graphs included; what it logs when nobody asks; the same graph with questions."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.builder = Builder(self.rng, nests=1)
        self.region = self.builder.region(2)
        self.asking = Nodes(seed, 0.25)

    def graph(self) -> CompiledGraph:
        """The graph with nodes that ask nothing."""
        return graph_with(self.builder, self.region, Nodes(self.seed, 0.0))

    def with_questions(self) -> CompiledGraph:
        """The graph with nodes that ask, and with breakpoints."""
        return graph_with(self.builder, self.region, self.asking, random.Random(self.seed))


def cases(count: int) -> list[Case]:
    """Cases whose graph compiles: active joins that wait for each other are refused."""
    found = []
    for seed in SEEDS:
        case = Case(seed)
        if 4 < len(case.builder.nodes) <= LARGEST:
            with suppress(GraphDefinitionError):
                case.graph()
                found.append(case)
    assert len(found) >= count
    return found[:count]


async def answered(case: Case, graph: CompiledGraph, store: Any, engine: Any, lineage: str) -> RunResult:
    """The run with some of its questions answered at a time, each time by another executor."""
    result = await Executor(graph, store, engine).run(lineage=lineage)
    while result.status == "interrupted":
        asked = [q for q in result.interrupts if q.kind == "ask"]
        some = case.rng.sample(asked, case.rng.randint(min(1, len(asked)), len(asked)))
        result = await Executor(graph, store, engine).resume(lineage, {q.id: f"yes {q.prompt}" for q in some})
    return result


async def test_stops_change_nothing(store: Any, engine: Any, lineage: str) -> None:
    """Whatever is asked where and answered in whatever order: same log, and every effect is carried out once."""
    for case in cases(2):
        plain: Trace = (await Executor(case.graph()).run()).unwrap()
        log = (await answered(case, case.with_questions(), store, engine, f"{lineage}-{case.seed}")).unwrap().log
        assert sorted(log) == sorted(plain.log)
        assert engine == "eager" or log == plain.log
        assert sorted(case.asking.effects) == sorted(plain.log)


async def test_going_back_leads_to_the_same_end(store: Any, engine: Any, lineage: str) -> None:
    """A resume at any checkpoint, asked and answered anew, ends with the same log; so does a fork elsewhere."""
    for case in cases(1):
        plain: Trace = (await Executor(case.graph()).run()).unwrap()
        graph, own = case.with_questions(), f"{lineage}-{case.seed}"
        await answered(case, graph, store, engine, own)
        headers = await store.history(own)
        executor = Executor(graph, store, engine)
        for header in case.rng.sample(headers, min(2, len(headers))):
            await executor.fork(own, header.id, new_lineage=f"{own}-{header.seq}")
            for there, checkpoint in ((own, header.id), (f"{own}-{header.seq}", None)):
                result = await executor.resume(there, checkpoint=checkpoint)
                while result.status == "interrupted":
                    asked = [q for q in result.interrupts if q.kind == "ask"]
                    result = await executor.resume(there, {q.id: f"yes {q.prompt}" for q in asked})
                assert sorted(result.unwrap().log) == sorted(plain.log)
