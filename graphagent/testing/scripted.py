"""Drives the real executor through declared outcomes: the graph as it is, its functions replaced by a script.

So a trace that validation prints can be seen to happen, and a graph can be run without its models, tools and data.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

import anyio
import anyio.lowlevel
from pydantic import BaseModel

from graphagent.engine.executor import Executor
from graphagent.engine.limits import Limits
from graphagent.engine.result import RunResult
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import GraphDef, NodeDef
from graphagent.graph.names import END, END_INDEX
from graphagent.graph.results import Command, Send
from graphagent.graph.routes import Jumps, Route
from graphagent.graph.schema import StateSchema
from graphagent.validation.explore import Pick
from graphagent.validation.memory import Memory
from graphagent.validation.outcomes import Choices, Outcome, choices
from graphagent.validation.script import follow, parse_script

Engine = Literal["superstep", "eager"]
Errors = Mapping[int, type[Exception]]
NO_BOUND = 1_000_000  # activations that wait for their turn count as steps, so a tight one would keep others out
PATIENCE = 30.0
"""Seconds after which a run that does not follow its script is given up."""


class Nothing(BaseModel):
    """The state of a scripted run: there is nothing in it."""


class ScriptEnd(Exception):
    """Raised by a node that the script does not run any more."""


class Chooser(Protocol):
    """Says what each activation does."""

    async def next(self, node: int) -> Outcome:
        """The outcome of an activation of `node` that has just started; waits for its turn. May raise ScriptEnd."""
        ...


class Played(NamedTuple):
    """A scripted run: how it ended, and the picks that were made, in order. `ended` False: the script was over before
    the run was, and what was still due did not run."""

    result: RunResult
    picks: tuple[Pick, ...]
    ended: bool


class _InOrder:
    """Picks in exactly the order given: an activation waits until it is its node's turn."""

    def __init__(self, options: Choices, picks: Sequence[Pick]) -> None:
        self.options = options
        self.left = deque(picks)
        self.done: list[Pick] = []
        self.turn = anyio.Event()

    async def next(self, node: int) -> Outcome:
        while self.left and self.left[0].node != node:
            await self.turn.wait()
        passed, self.turn = self.turn, anyio.Event()
        passed.set()
        if not self.left:
            raise ScriptEnd
        pick = self.left.popleft()
        self.done.append(pick)
        return self.options.of[node][pick.outcome]


class _ByNode:
    """Each activation of a node takes the next pick of that node: for supersteps, whose activations run together."""

    def __init__(self, options: Choices, picks: Sequence[Pick]) -> None:
        self.options = options
        self.left: dict[int, deque[Pick]] = {}
        for pick in picks:
            self.left.setdefault(pick.node, deque()).append(pick)
        self.done: list[Pick] = []

    async def next(self, node: int) -> Outcome:
        if not self.left.get(node):
            raise ScriptEnd
        pick = self.left[node].popleft()
        self.done.append(pick)
        return self.options.of[node][pick.outcome]


class _AtRandom:
    """Any declared outcome that ties between choices leave, and now and then another task first."""

    def __init__(self, graph: CompiledGraph, options: Choices, seed: int) -> None:
        self.options = options
        self.random = random.Random(seed)
        self.memory = Memory(graph)
        self.kept = self.memory.empty
        self.done: list[Pick] = []

    async def next(self, node: int) -> Outcome:
        for _ in range(self.random.randrange(3)):
            await anyio.lowlevel.checkpoint()
        allowed = list(self.memory.allowed(node, self.kept, self.options))
        if not allowed:
            raise ScriptEnd
        number, outcome = self.random.choice(allowed)
        self.kept = self.memory.after(self.kept, node, outcome)
        self.done.append(Pick(node, number))
        return outcome


async def play(graph: CompiledGraph, script: str | Sequence[Pick], *, engine: Engine = "eager") -> Played:
    """Run the graph in the real executor as a script says.

    With the eager engine activations end in the order of the script; with supersteps the picks of one step come
    together. Raises UsageError for a script that the graph can't follow, before anything runs, and RuntimeError if
    the executor does not follow it, which would be a fault of graphagent.
    """
    options = choices(graph)
    picks = parse_script(script, graph, options) if isinstance(script, str) else tuple(script)
    follow(graph, options, picks, supersteps=engine != "eager")
    chooser = _InOrder(options, picks) if engine == "eager" else _ByNode(options, picks)
    result = await _run(graph, chooser, options, engine, NO_BOUND)
    if len(chooser.done) != len(picks):
        raise RuntimeError(f"the executor made {len(chooser.done)} of {len(picks)} picks: {result.reason}")
    return Played(result, tuple(chooser.done), not isinstance(result.error, Exception))


async def play_at_random(
    graph: CompiledGraph, seed: int, *, engine: Engine = "superstep", max_steps: int = 200
) -> Played:
    """Run the graph in the real executor with outcomes chosen at random; the same seed chooses the same.

    Choices tied by `same_as` and `assume` are kept to; a run that they leave no outcome for has not `ended`. A run that
    goes round for `max_steps` is cut off (`limit_reached`).
    """
    options = choices(graph)
    chooser = _AtRandom(graph, options, seed)
    result = await _run(graph, chooser, options, engine, max_steps)
    return Played(result, tuple(chooser.done), result.error is None)


async def _run(graph: CompiledGraph, chooser: Chooser, options: Choices, engine: Engine, max_steps: int) -> RunResult:
    executor = Executor(scripted(graph, chooser, options), engine=engine, limits=Limits(max_steps=max_steps))
    with anyio.move_on_after(PATIENCE):
        return await executor.run({})
    raise RuntimeError(f"the executor did not follow the script within {PATIENCE:g} seconds")


def scripted(graph: CompiledGraph, chooser: Chooser, options: Choices | None = None) -> CompiledGraph:
    """The graph with every node and router replaced by what `chooser` says; edges, joins, jumps and error edges are as
    they were, breakpoints and children are not run."""
    options = options or choices(graph)
    errors = {target: type(f"To{target}", (Exception,), {}) for table in graph.failures for _, target in table}
    routed: list[deque[tuple[int, ...]]] = [deque() for _ in graph.names]
    nodes = tuple(NodeDef(name, fn=_body(graph, i, chooser, routed[i], errors)) for i, name in enumerate(graph.names))
    anywhere = Jumps({name: i for i, name in enumerate(graph.names)}, True, True)
    return replace(
        graph,
        definition=GraphDef(graph.name, nodes=list(nodes)),
        schema=StateSchema(Nothing),
        nodes=MappingProxyType({node.id: node for node in nodes}),
        defs=nodes,
        routers=tuple((_route(graph, i, routed[i]),) if routes else () for i, routes in enumerate(graph.routers)),
        jumps=(anywhere,) * len(nodes),
        failures=tuple(tuple(((errors[target],), target) for _, target in table) for table in graph.failures),
        before=MappingProxyType({}),
        after=MappingProxyType({}),
    )


def _body(
    graph: CompiledGraph,
    node: int,
    chooser: Chooser,
    routed: deque[tuple[int, ...]],
    errors: dict[int, type[Exception]],
) -> Callable[[Any], Awaitable[Any]]:
    names = graph.name_of

    async def body(state: Any) -> Any:
        outcome = await chooser.next(node)
        if outcome.error is not None:
            raise errors[(outcome.goto or ())[0]]
        if outcome.sends is not None:
            return [Send(names(target), {}) for target in outcome.sends]
        if outcome.goto is not None:
            return Command(goto=[names(target) for target in outcome.goto])
        if graph.routers[node]:
            routed.append(outcome.chosen)
        return None

    return body


def _route(graph: CompiledGraph, node: int, routed: deque[tuple[int, ...]]) -> Route:
    def router(state: Any) -> list[str]:
        return [graph.name_of(target) for target in routed.popleft()]

    labels = {name: i for i, name in enumerate(graph.names)} | {END: END_INDEX}
    return Route(graph.names[node], router, False, labels, True, None, True)
