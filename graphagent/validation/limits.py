"""GA6xx: limits that no way through the graph can keep, or that some way without a lap exceeds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from graphagent.graph.names import END, END_INDEX, START
from graphagent.graph.transitions import starving
from graphagent.validation.explore import Pick, explore, explore_supersteps
from graphagent.validation.facts import Bounds
from graphagent.validation.reaching import derive, reach, ways
from graphagent.validation.registry import Family, Rule
from graphagent.validation.report import Diagnostic, TraceStep
from graphagent.validation.subject import Subject

SEARCH = Bounds(max_states=2_000, max_seconds=1.0)

RULES: tuple[Rule, ...] = (
    Rule(
        "GA601",
        "a step limit below the shortest way to the end",
        "error",
        "No run can end within the limit: each is cut off as `limit_reached`. The engine counts supersteps, or "
        "completions if it is eager.",
        "a -> b -> c -> END\nlimit steps 2",
        "a -> b -> c -> END\nlimit steps 3",
    ),
    Rule(
        "GA602",
        "a step limit below a way without laps",
        "warning",
        "Some way through the graph that goes round no loop is longer than the limit: a run that takes it is cut off "
        "although nothing went wrong.",
        "a ? b | END\nb -> c -> END\nlimit steps 2",
        "a ? b | END\nb -> c -> END\nlimit steps 3",
    ),
)


def check(subject: Subject) -> Iterator[Diagnostic]:
    """All findings of the family: one at most, since the first implies the second."""
    limit, said = _limit(subject)
    if limit is None:
        return
    shortest, trace = _shortest(subject, limit)
    if shortest is not None and shortest > limit:
        text = f"{said}, but the shortest way to the end takes {_steps(shortest)}, so that no run can end"
        yield subject.finding("GA601", text, trace=trace, fix=f"raise the limit to {shortest} or more")
        return
    way = _longest(subject)
    if len(way) > limit:
        text = f"{said}, but a way without a lap takes {_steps(len(way))}, so that a run which takes it is cut off"
        shown = [*way[:3], "...", *way[-2:]] if len(way) > 8 else way
        related = (f"the way: {' -> '.join(shown)}",)
        yield subject.finding("GA602", text, fix=f"raise the limit to {len(way)} or more", related=related)


def _steps(count: int) -> str:
    return f"{count} step{'s' * (count != 1)}"


def _limit(subject: Subject) -> tuple[int | None, str]:
    """The smaller of the limits that are known, and a text that says whose it is."""
    declared, run = subject.graph.definition.limits.get("steps"), subject.facts.max_steps
    if run is not None and (declared is None or run <= declared):
        return run, f"the executor stops after {_steps(run)}"
    return (None, "") if declared is None else (declared, f"limits(steps={declared}) is declared")


# -- GA601 -------------------------------------------------------------------------------------------


def _shortest(subject: Subject, limit: int) -> tuple[int | None, Sequence[TraceStep]]:
    """Steps of the shortest run, as far as they matter for the limit, with a trace; None if END can't be told."""
    graph, choices = subject.graph, subject.choices
    if not graph.names_end or choices.open:
        return None, ()
    reached = reach(graph, ways(graph, choices), END_INDEX)
    earliest = reached.steps.get(END_INDEX)
    if earliest is None or earliest > limit:
        picks = None if earliest is None else derive(graph, choices, reached, END_INDEX)
        return earliest, _trace(subject, picks or ())
    if limit >= len(graph.names) and not subject.cycles:
        return None, ()
    search = explore if subject.facts.engine == "eager" else explore_supersteps
    found = search(graph, choices, SEARCH, wide=False)
    ends = [i for i in found.terminals if found.markings[i].ended and not starving(graph, found.markings[i])]
    if not found.complete or found.growing or not ends:
        return None, ()
    best = min((found.path(i) for i in ends), key=len)
    return len(best), found.trace(best)


def _trace(subject: Subject, picks: Sequence[Pick]) -> tuple[TraceStep, ...]:
    graph, choices = subject.graph, subject.choices
    found = enumerate(picks)
    return tuple(TraceStep(i, graph.names[p.node], choices.of[p.node][p.outcome].text) for i, p in found)


# -- GA602 -------------------------------------------------------------------------------------------


def _longest(subject: Subject) -> tuple[str, ...]:
    """The nodes of a long way to END that passes no node twice.

    A longest path of the condensation, and inside each loop on it the shortest way through: as long as it says, though
    there may be longer ones. Error edges are left out.
    """
    import networkx

    usual = networkx.DiGraph((a, b) for a, b, kinds in subject.digraph.edges(data="kinds") if kinds != {"error"})
    if START not in usual:
        return ()
    kept = networkx.descendants(usual, START) | {START}
    if END in kept:
        kept &= networkx.ancestors(usual, END) | {END}
    usual = usual.subgraph(kept)
    condensed = networkx.condensation(usual)
    parts = [condensed.nodes[part]["members"] for part in networkx.dag_longest_path(condensed)]
    way = [START]
    for here, there in itertools.pairwise(parts):
        leaving = {node for node in here if any(target in there for target in usual.adj[node])}
        inside = networkx.single_source_shortest_path(usual.subgraph(here), way[-1])
        way += min((inside[node] for node in inside if node in leaving), key=len)[1:]
        way.append(next(target for target in usual.adj[way[-1]] if target in there))
    return tuple(name for name in way if name not in (START, END))


FAMILY = Family("limits", RULES, check)
