"""GA1xx: shape. Reachability, dead ends, loops that nothing leaves, regions; through networkx.

Only what can be reached is looked at. Error edges are no way out: a node or a loop that is left only by failing isn't
left at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphagent.graph.definition import Place
from graphagent.graph.names import END, START
from graphagent.validation.dominance import Dominance
from graphagent.validation.facts import Region
from graphagent.validation.loops import Names, endless, ordered, rings, side_entered, unbounded
from graphagent.validation.registry import Family
from graphagent.validation.report import Diagnostic
from graphagent.validation.structure_rules import RULES
from graphagent.validation.subject import Subject

if TYPE_CHECKING:
    import networkx


def check(subject: Subject) -> Iterator[Diagnostic]:
    """All findings of the family."""
    ways = _ways(subject)
    yield from _unreachable(subject)
    yield from _endings(subject, ways)
    if subject.cycles:
        dominance = Dominance(subject)
        blocked = _waiting_for_itself(subject, dominance)
        yield from blocked
        yield from _loops(subject, ways, [{*finding.at} for finding in blocked])
        yield from _side_entered(subject, dominance)
    yield from _past_borders(subject)


def _ways(subject: Subject) -> networkx.DiGraph:
    """What can be reached, and the ways on from it that a node takes when it succeeds."""
    import networkx

    made = networkx.DiGraph()
    made.add_nodes_from(name for name in subject.graph.names if name in subject.reachable)
    for source, target, kinds in subject.digraph.edges(data="kinds"):
        if source in subject.reachable and kinds != {"error"}:
            made.add_edge(source, target)
    return made


def _quoted(names: Collection[str], most: int = 8) -> str:
    """Names in quotes, the first ones if they are many; START and END as they are called in a program."""
    shown = [{START: "START", END: "END"}.get(name, f"'{name}'") for name in list(names)[:most]]
    return ", ".join(shown) + (f" and {len(names) - most} more" if len(names) > most else "")


class _Group(NamedTuple):
    """Nodes that share a fault: those it comes from, and those behind them."""

    roots: Names
    behind: Names


def _grouped(subject: Subject, names: Collection[str]) -> Iterator[_Group]:
    """Nodes that share a fault, by what it comes from; a node behind two roots belongs to the first of them."""
    import networkx

    part = subject.digraph.subgraph(names)
    condensed = networkx.condensation(part)
    first = [ordered(subject, condensed.nodes[c]["members"]) for c, into in condensed.in_degree if not into]
    taken: set[str] = set()
    for roots in sorted(first, key=lambda names: subject.graph.index[names[0]]):
        taken.update(roots)
        behind: list[str] = []
        todo = list(roots)
        while todo:
            found = [name for name in part.successors(todo.pop()) if name not in taken]
            taken.update(found)
            behind += found
            todo += found
        yield _Group(roots, ordered(subject, behind))


# -- GA101 -------------------------------------------------------------------------------------------


def _unreachable(subject: Subject) -> Iterator[Diagnostic]:
    lost = [name for name in subject.graph.names if name not in subject.reachable]
    for roots, behind in _grouped(subject, lost):
        if len(roots) == 1:
            alone = "only it itself leads" if subject.digraph.has_edge(roots[0], roots[0]) else "nothing leads"
            text = f"node '{roots[0]}' can't be reached from START: {alone} to it"
        else:
            text = f"nodes {_quoted(roots)} can't be reached from START: only they lead to each other"
        fix = f"lead an edge, a route or a jump to '{roots[0]}', make it an entry point, or remove it"
        related = [f"{_quoted(behind)} can only be reached through {_quoted(roots)}"] if behind else []
        where = subject.graph.nodes[roots[0]].place
        yield subject.finding("GA101", text, (*roots, *behind), where=where, fix=fix, related=related)


# -- GA102, GA103, GA107 -----------------------------------------------------------------------------


def _endings(subject: Subject, ways: networkx.DiGraph) -> Iterator[Diagnostic]:
    import networkx

    graph = subject.graph
    if END not in subject.digraph:
        return
    dead = [name for name in graph.names if name in subject.reachable and not ways.out_degree(name)]
    for name in dead:
        failing = ", only an error edge" if graph.failures[graph.index[name]] else ""
        text = f"node '{name}' has no way out{failing}, though the graph names END: a run that gets there misses it"
        fix = f"lead an edge from '{name}' to the node that comes next, or to END (set_finish_point('{name}'))"
        yield subject.finding("GA103", text, (name,), where=graph.nodes[name].place, fix=fix)
    before_end = networkx.ancestors(subject.digraph, END)
    if START not in before_end:
        yield _no_end(subject)
        return
    ends = _nearest(ways, dead)
    lost = ends.keys() - before_end - {*dead} - subject.cycles.keys()
    for (name, *others), behind in _grouped(subject, lost):
        text = f"from node '{name}' on END can't be reached any more: it leads to '{ends[name]}', which has no way out"
        fix = f"lead a way from '{name}' or from '{ends[name]}' to END"
        related = [f"the same holds for {_quoted(behind)}, which come after '{name}'"] if behind else []
        at = (name, *others, *behind)
        yield subject.finding("GA102", text, at, where=graph.nodes[name].place, fix=fix, related=related)


def _nearest(ways: networkx.DiGraph, ends: Collection[str]) -> dict[str, str]:
    """For every node that leads to some of `ends`, the nearest one."""
    found = {name: name for name in ends}
    todo = deque(ends)
    while todo:
        name = todo.popleft()
        for earlier in ways.predecessors(name):
            if earlier not in found:
                found[earlier] = found[name]
                todo.append(earlier)
    return found


def _no_end(subject: Subject) -> Diagnostic:
    before = ordered(subject, subject.digraph.predecessors(END))
    text = "END can't be reached from START, so that no run can complete"
    if before:
        text += f": only {_quoted(before)} would lead there, and can't be reached"
    where = subject.place(before[0], END) if before else None
    fix = "lead a way that a run can take to END, or name END nowhere if runs are meant to end without it"
    return subject.finding("GA107", text, (END, *before), where=where, fix=fix)


# -- GA104, GA105, GA106, GA109 ----------------------------------------------------------------------


def _loops(subject: Subject, ways: networkx.DiGraph, blocked: Collection[set[str]]) -> Iterator[Diagnostic]:
    """`blocked`: nodes of loops that only seem to be some, since a join in them never fires (GA108)."""
    stuck: set[str] = set()
    for loop in endless(subject, ways):
        stuck.update(loop)
        inside = {*loop}
        if any(join <= inside for join in blocked):
            continue
        out = next(((one, other) for one in loop for other in ways.successors(one) if other not in inside), None)
        what = f"the loop of {_quoted(loop)}" if len(loop) > 1 else f"the loop of '{loop[0]}' with itself"
        if out is None:
            fix = f"give one of them a route out of the loop: add_conditional_edges('{loop[-1]}', ...)"
            yield subject.finding("GA104", f"nothing leads out of {what}", loop, where=_back(subject, loop), fix=fix)
        else:
            one, other = _quoted(out[:1]), _quoted(out[1:])
            text = f"{what} always goes round again: {one} -> {other} is a way out, but the lap goes on beside it"
            fix = f"make it a choice: one route of {one}, either round again or to {other}"
            yield subject.finding("GA105", text, loop, where=subject.place(*out), fix=fix)
    for part in rings(ways):
        loop = ordered(subject, part)
        if stuck.isdisjoint(loop) and unbounded(subject, loop):
            text = (
                f"the loop of {_quoted(loop)} has no bound: what decides on another lap reads nothing that is counted"
            )
            fix = f"count the laps in a field and read it in the router, or declare limits(laps={{'{loop[0]}': ...}})"
            yield subject.finding("GA106", text, loop, where=_back(subject, loop), fix=fix)


def _back(subject: Subject, loop: Names) -> Place:
    """Where the way from the last node of a loop back into it was declared."""
    inside = {*loop}
    return subject.place(loop[-1], next((n for n in subject.digraph.successors(loop[-1]) if n in inside), loop[0]))


def _side_entered(subject: Subject, dominance: Dominance) -> Iterator[Diagnostic]:
    for loop, entered in side_entered(subject, dominance):
        why = _laps_matter(subject, loop)
        if not why:
            continue
        text = (
            f"the loop of {_quoted(loop)} is entered at {_quoted(entered)}: its laps have no beginning to be counted "
            f"by, and {why}"
        )
        fix = "lead all ways into the loop through one node"
        where = subject.graph.nodes[entered[0]].place
        yield subject.finding("GA109", text, dict.fromkeys((*entered, *loop)), where=where, fix=fix)


def _laps_matter(subject: Subject, loop: Names) -> str:
    """What depends on telling the laps of a loop apart; empty if nothing does: then every way in will do."""
    inside = {*loop}
    for join in subject.graph.joins:
        if join.target in inside and inside & {*join.sources}:
            return f"the join '{join.id}' in it can't tell one lap from the next"
    limited = [name for name in loop if name in subject.graph.definition.limits.get("laps", {})]
    return f"the laps of {_quoted(limited)} are limited" if limited else ""


# -- GA108, GA110 ------------------------------------------------------------------------------------


def _waiting_for_itself(subject: Subject, dominance: Dominance) -> list[Diagnostic]:
    found = []
    for join, table in zip(subject.graph.joins, subject.graph.join_tables, strict=True):
        sources = [name for name in join.sources if name in subject.reachable] if table.need == table.total else []
        behind = tuple(name for name in sources if dominance.dominates((join.id,), name))
        if behind:
            named = f"'{join.id}'" if join.id == join.target else f"'{join.id}' into '{join.target}'"
            text = f"the join {named} waits for {_quoted(behind)}, which can only run after it has fired"
            fix = f"take {_quoted(behind)} out of the join, or lead a way there that doesn't pass '{join.target}'"
            found.append(
                subject.finding("GA108", text, dict.fromkeys((*behind, join.target)), where=join.place, fix=fix)
            )
    return found


def _past_borders(subject: Subject) -> Iterator[Diagnostic]:
    homes: dict[str, list[Region]] = {}
    for region in subject.facts.regions:
        for name in region.nodes:
            homes.setdefault(name, []).append(region)
    for one, other, kinds in subject.digraph.edges(data="kinds") if homes else ():
        if kinds == {"error"} or (one != START and one not in subject.reachable):
            continue
        past = [
            f"leaves region '{region.id}' past its exit '{region.exit}'"
            for region in homes.get(one, ())
            if region not in homes.get(other, ()) and one != region.exit
        ]
        past += [
            f"enters region '{region.id}' past its entry '{region.entry}'"
            for region in homes.get(other, ())
            if region not in homes.get(one, ()) and other != region.entry
        ]
        if past:
            text = f"{_quoted([one])} -> {_quoted([other])} {' and '.join(past)}"
            fix = "lead it from the exit of the one region to the entry of the other, or draw the regions differently"
            at = (other,) if one == START else (one, other)
            yield subject.finding("GA110", text, at, where=subject.place(one, other), fix=fix)


FAMILY = Family("structure", RULES, check)
