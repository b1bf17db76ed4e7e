"""Graphs to kill: one like the demo, and random ones, whose nodes act on a world outside that keeps a log in a file.

An effect's name begins with its guard: `idem-` (an idempotency key, by which the outside tells a repeat), `reco-` (a
reconcile function) or `bare-` (neither).
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel

from graphagent import END, Executor, NodeContext, Send, StateGraph, add, append, merge
from graphagent.graph.compiled import CompiledGraph
from graphagent.testing.kills import KillPoints

_NUMBERS = re.compile(r"@\d+\.\d+|#\d+")
"""Row and step numbers in the name of an activation: a run that was resumed has more rows."""
GUARDS = ("idem", "reco", "bare")
ANSWERS = {"approve": "yes", "note": ["noted"]}


class World:
    """The outside: a log with a line `<key> <label>` for each effect, appended in one write."""

    def __init__(self, path: str, points: KillPoints) -> None:
        self.path = path
        self.points = points
        self._log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def knows(self, key: str) -> bool:
        """True if the effect with that key has happened."""
        return any(line.startswith(f"{key} ") for line in Path(self.path).read_text().splitlines())

    def act(self, guard: str, key: str, label: str) -> str:
        """Do something that can't be undone; the outside refuses a key it knows if it is told to (`idem`)."""
        self.points.reach(f"effect begins {label}")
        if guard != "idem" or not self.knows(key):
            os.write(self._log, f"{key} {label}\n".encode())
        self.points.reach(f"effect ends {label}")
        return f"did {label}"

    def reconcile(self, guard: str, key: str, label: str) -> str:
        """Find out whether it was done, and do it if it was not."""
        return f"did {label}" if self.knows(key) else self.act(guard, key, label)


def read_log(folder: str, lineage: str) -> list[str]:
    """What was done outside in a lineage: the labels."""
    path = Path(folder) / f"{lineage}.log"
    return [line.partition(" ")[2] for line in path.read_text().splitlines()] if path.exists() else []


class Work(BaseModel):
    log: Annotated[list[str], append] = []
    laps: Annotated[dict[str, int], merge] = {}
    total: Annotated[int, add] = 0
    item: int = 0
    approved: str = ""
    notes: Annotated[list[str], append] = []


@dataclass
class Place:
    """Where the nodes find the world: set in each process, after the graphs were compiled."""

    world: World | None = None


PLACE = Place()


def _effect(ctx: Any, name: str, guard: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of `ctx.step`."""
    world = PLACE.world
    assert world is not None
    key = ctx.idempotency_key(f"{guard}-{name}")
    label = f"{guard}-{name} {_NUMBERS.sub('', f'{ctx.namespace}|{ctx.activation.id}')}"
    options: dict[str, Any] = {"idempotent": guard == "idem"}
    if guard == "reco":
        options["reconcile"] = lambda: world.reconcile(guard, key, label)
    return (f"{guard}-{name}", world.act, guard, key, label), options


def _activation(ctx: Any) -> str:
    """Frame, row and position from which an activation started, as a KillingStore names the place where it is kept."""
    origin = ctx._frame.origin(ctx._position)
    return f"{ctx.namespace or 'root'}/{origin.base}.{origin.position}"


def worker(name: str, *guards: str, **update: Any) -> Callable[..., Any]:
    """A node with an effect for each guard, between points of its own."""

    async def node(state: Work, ctx: NodeContext) -> dict[str, Any]:
        assert PLACE.world is not None
        PLACE.world.points.reach(f"node begins {_activation(ctx)} {name}")
        for guard in guards:
            arguments, options = _effect(ctx, name, guard)
            await ctx.step(*arguments, **options)
        PLACE.world.points.reach(f"node ends {name}")
        return {"log": [f"{name}:{state.item}"], "total": 1, **update}

    return node


def threaded(name: str, guard: str) -> Callable[..., Any]:
    """A sync node, which runs in a thread."""

    def node(state: Work, ctx: NodeContext) -> dict[str, Any]:
        assert PLACE.world is not None
        PLACE.world.points.reach(f"node begins {_activation(ctx)} {name}")
        arguments, options = _effect(ctx, name, guard)
        ctx.step(*arguments, **options)
        return {"log": [name], "total": 1}

    return node


@cache
def demo() -> CompiledGraph:
    """Load, three checks side by side, a join, a route, a question, then what can't be undone."""
    builder = StateGraph(Work, name="demo")
    builder.add_node("load", worker("load", "reco"))
    builder.add_node("chain", worker("chain", "idem")).add_node("dates", threaded("dates", "reco"))
    builder.add_node("names", worker("names", "bare")).add_node("judge", worker("judge"))
    builder.add_interrupt_node("approve", prompt="go on?", answer_type=str, writes="approved")
    builder.add_node("renew", worker("renew", "bare", "idem", "reco")).add_node("report", worker("report", "idem"))
    builder.set_entry_point("load")
    for check in ("chain", "dates", "names"):
        builder.add_edge("load", check)
    builder.add_join_edge(("chain", "dates", "names"), "judge")
    builder.add_conditional_edges("judge", lambda s: "ask" if s.total else "end", {"ask": "approve", "end": "report"})
    builder.add_conditional_edges("approve", lambda s: s.approved, {"yes": "renew", "no": "report"})
    return builder.add_edge("renew", "report").add_edge("report", END).compile()


@cache
def random_graph(seed: int) -> CompiledGraph:
    """Blocks in a row: chains, diamonds, bounded loops, fan-outs, subgraphs and questions, nested at random."""
    return _Random(seed).graph()


class _Random:
    """Each block has one way in and one way out; a method adds one behind `before` and returns its last node."""

    def __init__(self, seed: int, depth: int = 0) -> None:
        self.rng = random.Random(f"graph {seed} {depth}")
        self.seed = seed
        self.builder = StateGraph(Work, name=f"random{seed}")
        self.count = 0
        self.level = depth

    def graph(self) -> CompiledGraph:
        before = self.node()
        self.builder.set_entry_point(before)
        for _ in range(self.rng.randint(2, 3)):
            before = self.block(before)
        return self.builder.add_edge(before, END).compile()

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def node(self, kind: str = "n", **update: Any) -> str:
        """A node with an effect, or two, or none."""
        name = self.name(kind)
        guards = [guard for guard in GUARDS if self.rng.random() < 0.25]
        make = worker(name, *guards, **update)
        if len(guards) == 1 and self.rng.random() < 0.2 and not update:
            make = threaded(name, guards[0])
        self.builder.add_node(name, make)
        return name

    def block(self, before: str) -> str:
        kinds = [self.chain, self.fan_out, self.ask]
        if self.level < 2:
            kinds += [self.diamond, self.diamond, self.loop, self.child]
        self.level += 1
        try:
            return self.rng.choice(kinds)(before)
        finally:
            self.level -= 1

    def chain(self, before: str) -> str:
        for _ in range(self.rng.randint(1, 2)):
            after = self.node()
            self.builder.add_edge(before, after)
            before = after
        return before

    def diamond(self, before: str) -> str:
        ends = []
        split = self.node("split")
        self.builder.add_edge(before, split)
        for _ in range(self.rng.randint(2, 3)):
            first = self.node("branch")
            self.builder.add_edge(split, first)
            ends.append(self.block(first) if self.rng.random() < 0.5 else first)
        join = self.node("join")
        self.builder.add_join_edge(ends, join)
        return join

    def loop(self, before: str) -> str:
        head, tail, out = self.node("head"), self.name("tail"), self.node("out")
        laps = self.rng.randint(2, 3)
        last = self.block(head) if self.rng.random() < 0.5 else head

        async def count(state: Work) -> dict[str, Any]:
            return {"laps": {tail: state.laps.get(tail, 0) + 1}, "log": [tail]}

        self.builder.add_node(tail, count).add_edge(before, head).add_edge(last, tail)
        self.builder.add_conditional_edges(
            tail, lambda s: "out" if s.laps[tail] >= laps else "on", {"on": head, "out": out}
        )
        return out

    def fan_out(self, before: str) -> str:
        send, join, width = self.name("send"), self.node("collect"), self.rng.randint(2, 4)
        target = self.node("work")

        async def split(state: Work) -> list[Send]:
            return [Send(target, {"item": i + 1}) for i in range(width)]

        self.builder.add_node(send, split, destinations=[target]).add_edge(before, send)
        self.builder.add_join_edge([target], join)
        return join

    def child(self, before: str) -> str:
        name = self.name("child")
        inner = _Random(self.seed * 100 + self.count, self.level + 1).graph()
        self.builder.add_subgraph_node(name, inner).add_edge(before, name)
        return name

    def ask(self, before: str) -> str:
        name = self.name("ask")
        self.builder.add_interrupt_node(name, prompt="what?", answer_type=list[str], key="note", writes="notes")
        self.builder.add_edge(before, name)
        return name


def graph_named(name: str) -> CompiledGraph:
    """`demo`, or a random one by its seed."""
    return demo() if name == "demo" else random_graph(int(name))


def make_executor(name: str, engine: Any, store: Any) -> Executor:
    """As each process makes one."""
    return Executor(graph_named(name), store, engine)
