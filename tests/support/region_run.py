"""Random well-formed graphs with node functions, for runs on an engine."""

from __future__ import annotations

import random
from typing import Annotated, Any

from pydantic import BaseModel

from graphagent import END, Command, NodeContext, Send, StateGraph, append, merge
from graphagent.graph.compiled import CompiledGraph
from support.regions import Builder


class Trace(BaseModel):
    """`log`: activations by branch and node, with what they were answered; `visits`: runs per node."""

    log: Annotated[list[str], append] = []
    visits: Annotated[dict[str, int], merge] = {}
    item: int = 0


class Nodes:
    """What the nodes of a region do: note themselves, ask now and then, carry out an effect, choose by their visit."""

    def __init__(self, seed: int, asking: float) -> None:
        self.seed = seed
        self.asking = asking
        self.effects: list[str] = []

    def run(self, name: str, kind: str, targets: list[str]) -> Any:
        """The function of a node."""

        async def node(state: Trace, ctx: NodeContext) -> Any:
            worker = ctx.activation.branch.endswith("]")  # workers side by side can't count their visits
            visit = 0 if worker else state.visits.get(name, 0) + 1
            rng = random.Random(f"{self.seed} {name} {visit} {state.item}")
            me = f"{ctx.activation.branch}:{name}.{visit}"
            await ctx.step("effect", self.effects.append, me)
            for key in ("first", "second"):
                if rng.random() < self.asking:
                    assert await ctx.interrupt(key, me) == f"yes {me}"
            update = {"log": [me], "visits": {} if worker else {name: visit}}
            if kind == "fan":
                sends = [Send(rng.choice(targets), {"item": i}) for i in range(rng.randint(1, 3))]
                return Command(update=update, goto=sends)
            return update

        return node

    def router(self, name: str, kind: str, targets: list[str]) -> Any:
        """The router of a node that has one."""

        def route(state: Trace) -> Any:
            visit = state.visits[name]
            rng = random.Random(f"{self.seed} route {name} {visit}")
            if kind == "some":
                return rng.sample(targets, rng.randint(1, len(targets)))
            return rng.choice(targets) if kind == "one" else targets[visit % 2 == 0]

        return route


def graph_with(
    builder: Builder,
    region: tuple[str, str],
    nodes: Nodes,
    breaks: random.Random | None = None,
    *,
    state: type[Trace] = Trace,
) -> CompiledGraph:
    """The region as a graph of those nodes, with `breaks` breakpoints on some of them."""
    graph = StateGraph(state)
    if breaks is not None:
        graph.interrupt_before_nodes(*(name for name in builder.nodes if breaks.random() < 0.1))
        graph.interrupt_after_nodes(*(name for name in builder.nodes if breaks.random() < 0.1))
    for name in builder.nodes:
        kind, targets = builder.kinds.get(name, ("edges", []))
        if name in builder.children:
            graph.add_subgraph_node(name, graph_with(*builder.children[name], nodes, breaks, state=state))
            continue
        graph.add_node(name, nodes.run(name, kind, targets), destinations=targets if kind == "fan" else None)
        if kind == "some":
            graph.add_multi_conditional_edges(name, nodes.router(name, kind, targets), targets)
        elif kind in ("one", "loop"):
            graph.add_conditional_edges(name, nodes.router(name, kind, targets), targets)
    for source, mode, target in builder.joins:
        graph.add_join_edge(source, target, mode=int(mode) if mode.isdigit() else mode)  # type: ignore[arg-type]
    for source, target in builder.edges:
        graph.add_edge(source, target)
    return graph.set_entry_point(region[0]).add_edge(region[1], END).compile()
