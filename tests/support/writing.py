"""Nodes that write to fields of every merge rule, and keep what they returned by the activation that did."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Annotated, Any

from graphagent import Command, Message, NodeContext, Send, add, append, merge, messages, union
from graphagent.debug.moment import Moment
from graphagent.errors import GraphDefinitionError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.reducers import any_of, latest
from support.region_run import Nodes, Trace, graph_with
from support.regions import Builder

TEXTS = ("red", "green", "blue", "grey")


class Kept(Trace):
    notes: Annotated[tuple[str, ...], append] = ()
    seen: Annotated[set[str], union] = set()
    named: Annotated[list[str], union] = []
    table: Annotated[dict[str, int], merge] = {}
    places: Annotated[dict[int, str], merge] = {}
    talk: Annotated[list[Message], messages] = []
    total: Annotated[int, add] = 0
    newest: Annotated[str, latest] = ""
    agreed: Annotated[str, any_of] = ""


class Writers(Nodes):
    """Nodes of a region that write at random. `wrote`: updates by namespace and activation."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, 0.0)
        self.wrote: dict[tuple[str, str], dict[str, Any]] = {}

    def run(self, name: str, kind: str, targets: list[str]) -> Any:
        """The function of a node."""

        async def node(state: Kept, ctx: NodeContext) -> Any:
            me = f"{ctx.namespace}|{ctx.activation.id}"
            worker = ctx.activation.branch.endswith("]")
            visit = 0 if worker else state.visits.get(name, 0) + 1
            rng = random.Random(f"{self.seed} {me} {visit}")
            update = {**written(rng, me), "visits": {} if worker else {name: visit}}
            self.wrote[ctx.namespace, ctx.activation.id] = update
            if kind == "fan":
                sends = [Send(rng.choice(targets), {"item": i}) for i in range(rng.randint(1, 4))]
                return Command(update=update, goto=sends)
            return update

        return node


def random_case(seed: int) -> tuple[CompiledGraph, Writers] | None:
    """A random graph, nested graphs included, of nodes that write at random; None for one that doesn't compile."""
    builder = Builder(random.Random(seed), nests=1)
    region = builder.region(2)
    nodes = Writers(seed)
    with suppress(GraphDefinitionError):
        return graph_with(builder, region, nodes, state=Kept), nodes
    return None


def written(rng: random.Random, me: str) -> dict[str, Any]:
    """An update at random. Items of `log` and keys of `table` tell whose they are."""
    update: dict[str, Any] = {
        "log": [f"{me}|{i}" for i in range(rng.randint(0, 3))],
        "notes": tuple(f"{me}|{i}" for i in range(rng.randint(0, 2))),
        "seen": set(rng.sample(TEXTS, rng.randint(0, 3))),
        "named": rng.sample(TEXTS, rng.randint(0, 3)),
        "table": {f"{me}|{i}": i for i in range(rng.randint(0, 2))},
        "places": {rng.randint(0, 3): me for _ in range(rng.randint(0, 2))},
        "talk": [Message.assistant(me).model_copy(update={"id": rng.choice((None, None, me, "shared"))})],
        "total": rng.randint(0, 3),
        "newest": me,
        "agreed": "yes",
    }
    return {name: value for name, value in update.items() if rng.random() < 0.7}


def moment_at(lineage: str, seq: int, namespace: str = "") -> Moment:
    """The moment of a stored row, as far as an inspection needs it."""
    return Moment(lineage, namespace, seq, "step", 0, seq, None)
