"""In which step a node can run at the earliest, over plain triggers and joins, and what has to run before it.

A least fixed point: a plain trigger takes the smallest of its sources, a join of all waits for the largest (breadth
first, as every step costs one; in general Knuth 1977). What is not reached can't run, whatever is chosen; what is
reached may still need choices that contradict each other, which `derive` and a replay with `fire` find out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from graphagent.errors import UsageError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Marking
from graphagent.graph.names import END_INDEX
from graphagent.validation.explore import Pick
from graphagent.validation.outcomes import Choices
from graphagent.validation.script import follow

NOBODY: frozenset[int] = frozenset()


class Ways(NamedTuple):
    """Per node (by index) the targets that it may trigger, END among them; `by_join`: those it arrives at a join of."""

    plain: tuple[tuple[int, ...], ...]
    by_join: tuple[tuple[tuple[int, int], ...], ...]  # (join, target)


class Reached(NamedTuple):
    """`steps`: how many steps must have ended before a node can run, or END is reached; `causes`: the nodes whose
    ends bring that about."""

    steps: Mapping[int, int]
    causes: Mapping[int, tuple[int, ...]]


def ways(graph: CompiledGraph, choices: Choices) -> Ways:
    """Over all alternatives. A choice that counts as an arrival at a join triggers nothing by itself; a Send
    always does."""
    plain: list[tuple[int, ...]] = []
    by_join: list[tuple[tuple[int, int], ...]] = []
    for i in range(len(graph.names)):
        chosen = (target for outcome in choices.of[i] for target in (*outcome.chosen, *(outcome.goto or ())))
        sent = (target for outcome in choices.of[i] for target in outcome.sends or ())
        direct = [t for t in dict.fromkeys(chosen) if (i, t) not in graph.via_join or t in graph.plain[i]]
        plain.append(tuple(dict.fromkeys((*graph.plain[i], *direct, *sent))))
        by_join.append(tuple((j, graph.join_tables[j].target) for j, _ in graph.arrivals[i]))
    return Ways(tuple(plain), tuple(by_join))


def reach(graph: CompiledGraph, found: Ways, goal: int, without: Collection[int] = NOBODY) -> Reached:
    """Everything up to `goal` (a node or END) that can be reached while no node of `without` ever ends."""
    steps = dict.fromkeys(graph.entries, 0)
    causes: dict[int, tuple[int, ...]] = dict.fromkeys(graph.entries, ())
    arrived: dict[int, list[int]] = {}
    queue = deque(graph.entries)
    while queue and goal not in steps:
        at = queue.popleft()
        if at in without:
            continue
        new: list[tuple[int, tuple[int, ...]]] = [(target, (at,)) for target in found.plain[at]]
        for join, target in found.by_join[at]:
            have = arrived.setdefault(join, [])
            have.append(at)
            if len(have) == max(graph.join_tables[join].need, 1):
                new.append((target, tuple(have)))
        for target, cause in new:
            if target not in steps:
                steps[target], causes[target] = steps[at] + 1, cause
                if target != END_INDEX:
                    queue.append(target)
    return Reached(steps, causes)


def derive(graph: CompiledGraph, choices: Choices, reached: Reached, goal: int) -> list[Pick] | None:
    """What has to be picked to come to `goal`, in an order that `fire` accepts; None if some node would have to make
    two choices at once, or if a replay does not come there."""
    needed: dict[int, set[int]] = {goal: set()}
    order = [goal]
    for at in order:
        for cause in reached.causes[at]:
            if cause not in needed:
                needed[cause] = set()
                order.append(cause)
            needed[cause].add(at)
    picks = []
    for at in sorted(order[1:], key=lambda node: (reached.steps[node], node)):
        outcome = _choosing(graph, choices, at, needed[at])
        if outcome is None:
            return None
        picks.append(Pick(at, outcome))
    return picks if _comes_to(graph, choices, picks, goal) else None


def _choosing(graph: CompiledGraph, choices: Choices, node: int, targets: set[int]) -> int | None:
    """The number of an outcome that leads to all of these targets."""
    always = {*graph.plain[node], *(graph.join_tables[j].target for j, _ in graph.arrivals[node])}
    for number, outcome in enumerate(choices.of[node]):
        jumps = outcome.goto is not None or outcome.sends is not None
        if targets <= {*outcome.targets(), *(() if jumps else always)}:
            return number
    return None


def _comes_to(graph: CompiledGraph, choices: Choices, picks: Sequence[Pick], goal: int) -> bool:
    try:
        return due(follow(graph, choices, picks).end, goal)
    except UsageError:  # a pick that isn't due
        return False


def due(marking: Marking, node: int) -> bool:
    """True if a node is about to run, or END was reached."""
    return marking.ended if node == END_INDEX else any(activation.node == node for activation in marking.frontier)
