"""Whether a node can run in a run in which none of some guards has ended yet, and the way there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

from graphagent.graph.names import START
from graphagent.validation.explore import explore
from graphagent.validation.facts import Bounds
from graphagent.validation.reaching import Ways, derive, due, reach
from graphagent.validation.report import TraceStep
from graphagent.validation.script import follow
from graphagent.validation.subject import Subject

SEARCH = Bounds(max_states=20_000, max_seconds=2.0)


class Avoided(NamedTuple):
    """`verdict`: whether the node can run without a guard; `trace`: how, from START to the node, where it can."""

    verdict: Literal["yes", "no", "unknown"]
    trace: tuple[TraceStep, ...] = ()


def avoid(subject: Subject, found: Ways, node: int, guards: Collection[int]) -> Avoided:
    """Decided by reachability where that says no, or where a replay says yes; else by a search in which no guard ever
    ends (every interleaving, since that is no persistent set)."""
    graph, choices = subject.graph, subject.choices
    reached = reach(graph, found, node, guards)
    if node not in reached.steps:
        return Avoided("no")
    picks = derive(graph, choices, reached, node)
    if picks is None:
        held = choices._replace(of=tuple(() if i in guards else of for i, of in enumerate(choices.of)))
        searched = explore(graph, held, SEARCH, reduced=False)
        state = next((i for i, marking in enumerate(searched.markings) if due(marking, node)), None)
        if state is None:
            return Avoided("no" if searched.complete and not searched.growing else "unknown")
        picks = [pick for hop in searched.path(state) for pick in hop.picks]
    markings = follow(graph, choices, picks).markings
    live = [tuple(graph.names[activation.node] for activation in marking.frontier) for marking in markings]
    steps = [TraceStep(0, START, live=live[0])]
    for number, pick in enumerate(picks):
        steps.append(TraceStep(number, graph.names[pick.node], choices.of[pick.node][pick.outcome].text, live[number]))
    return Avoided("yes", (*steps, TraceStep(len(picks), graph.names[node], choices.of[node][0].text, live[-1])))
