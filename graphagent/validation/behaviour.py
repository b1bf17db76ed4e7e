"""GA2xx and GA3xx: what can happen when the graph runs, each finding with a shortest way there.

First a proof is sought; where there is none, every behaviour is explored. Verdicts are those of the eager engine,
which runs a node once for every trigger. Supersteps merge the triggers of one step, so with the superstep engine a
fault that only the eager engine has is a warning: right only as long as branches keep their lengths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from graphagent.graph.definition import Place
from graphagent.graph.names import END, START
from graphagent.validation import stops
from graphagent.validation.behaviour_rules import RULES
from graphagent.validation.early import early_answers
from graphagent.validation.explore import Exploration, explore
from graphagent.validation.registry import Family
from graphagent.validation.report import LOWER, NOWHERE, Diagnostic, Severity, TraceStep
from graphagent.validation.subject import Subject


def check(subject: Subject) -> Iterator[Diagnostic]:
    """All findings of the family."""
    if subject.proof is not None:
        return
    yield from early_answers(subject)
    eager = list(_judged(subject, subject.eager))
    if not subject.eager.complete:
        yield _bound(subject, subject.eager, "")
    if any(outcome.wide for listed in subject.choices.of for outcome in listed):
        eager = list(_by_width(subject, eager))
    engine = subject.facts.engine
    if engine == "eager" or not eager:
        yield from _open(subject, eager)
        return
    stepped = {(f.code, f.at): f for f in _judged(subject, subject.supersteps)}
    if not subject.supersteps.complete:
        yield _bound(subject, subject.supersteps, " in supersteps")
        yield from _open(subject, eager)
        return
    yield from _open(subject, _compared(subject, eager, stepped))


def _compared(
    subject: Subject, eager: list[Diagnostic], stepped: dict[tuple[str, tuple[str, ...]], Diagnostic]
) -> Iterator[Diagnostic]:
    """What both engines do, then what only one of them does."""
    lower = subject.facts.engine == "superstep"
    for finding in eager:
        if stepped.pop((finding.code, finding.at), None) is not None:
            yield finding
            continue
        severity: Severity = LOWER["error"] if lower and finding.severity == "error" else finding.severity
        yield replace(finding, severity=severity, message=f"{finding.message} (with the eager engine only)")
        if finding.code == "GA302":
            name = finding.at[0]
            yield subject.finding(
                "GA201",
                f"node '{name}' runs once in supersteps and more than once with the eager engine: it is right only "
                f"while the branches into it have the same length",
                finding.at,
                fix=f"join the branches: add_join_edge([...], '{name}')",
            )
    yield from stepped.values()


def _open(subject: Subject, findings: Iterator[Diagnostic] | list[Diagnostic]) -> Iterator[Diagnostic]:
    """Where a node may lead anywhere, what it may lead to is a note, not a verdict."""
    partly = bool(subject.choices.open & {subject.graph.index[name] for name in subject.reachable})
    for finding in findings:
        yield replace(finding, severity="info") if partly else finding


def _by_width(subject: Subject, findings: list[Diagnostic]) -> Iterator[Diagnostic]:
    """A node behind a fan-out that runs once an item may be meant: where one item shows no fault, it is a warning."""
    narrow = explore(subject.graph, subject.choices, subject.bounds, wide=False)
    known = {(finding.code, finding.at) for finding in _judged(subject, narrow)}
    for finding in findings:
        if finding.code != "GA302" or (finding.code, finding.at) in known:
            yield finding
        else:
            yield replace(finding, severity="warning", message=f"{finding.message}, once for each item of a fan-out")


def _judged(subject: Subject, found: Exploration) -> Iterator[Diagnostic]:
    stalled = list(_stalled(subject, found))
    yield from stalled
    yield from _repeated(subject, found)
    yield from _endless(subject, found)
    yield from _crowded(subject, found)
    yield from _overlapping(subject, found)
    yield from _silent(subject, found)
    if found.complete and not found.growing:
        yield from _never(subject, found, {finding.at[0] for finding in stalled})


def _stalled(subject: Subject, found: Exploration) -> Iterator[Diagnostic]:
    for state, starved in stops.stalls(found):
        missing, have = _quoted(starved.missing), _quoted(starved.have)
        message = f"join '{starved.join}' can wait for ever for {missing}: it has {have}"
        fix = (
            f"give the join mode 'active', or let every choice that leaves out {missing} come to it, or join on what "
            f"always runs"
        )
        if not starved.missing:
            message = f"join '{starved.join}' is left with arrivals of {have} that nothing takes"
            fix = f"let each source of '{starved.join}' run once a lap"
        note = f"nothing can run: {starved}"
        where = _join_place(subject, starved.join)
        yield subject.finding(
            "GA301", message, (starved.join,), where=where, trace=found.trace(found.path(state), note), fix=fix
        )
        yield from _cause(subject, starved.join, starved.have, starved.missing)


def _cause(subject: Subject, join: str, have: tuple[str, ...], missing: tuple[str, ...]) -> Iterator[Diagnostic]:
    """GA202: the choice at which a source that came and one that didn't part."""
    import networkx

    above = networkx.immediate_dominators(subject.digraph, START)
    lines = [_dominators(above, name) for name in (*have[:1], *missing[:1])]
    if len(lines) < 2:
        return
    shared = [name for name in lines[0] if name in lines[1] and name != START]
    chooser = next((name for name in shared if len(subject.choices.of[subject.graph.index[name]]) > 1), None)
    if chooser is not None:
        text = f"the sources of join '{join}' come from one choice at '{chooser}', which may leave out some of them"
        yield subject.finding("GA202", text, (chooser, join), where=subject.place(chooser))


def _dominators(above: dict[str, str], name: str) -> list[str]:
    line = []
    while name in above and above[name] != name and above[name] is not None:
        name = above[name]
        line.append(name)
    return line


def _repeated(subject: Subject, found: Exploration) -> Iterator[Diagnostic]:
    import networkx

    graph = subject.graph
    runs = stops.runs(found, _loops(subject))
    twice = {graph.names[node] for node in stops.twice(found, runs)}
    for name in (name for name in graph.names if name in twice):
        if networkx.ancestors(subject.digraph, name) & twice:
            continue
        later = tuple(sorted(twice & networkx.descendants(subject.digraph, name), key=graph.index.__getitem__))
        hops = stops.way_to_second(found, runs, graph.index[name])
        note = f"'{name}' runs again"
        yield subject.finding(
            "GA302",
            f"node '{name}' can run more than once in one run: its triggers are not joined",
            (name,),
            where=subject.place(name),
            trace=found.trace(hops, note),
            fix=f"join what leads to it: add_join_edge([...], '{name}')",
            related=(f"then {_quoted(later)} run again too",) if later else (),
        )


def _endless(subject: Subject, found: Exploration) -> Iterator[Diagnostic]:
    stuck = stops.endless(found)
    if stuck is None:
        return
    state, lap = stuck
    nodes = dict.fromkeys(subject.graph.names[pick.node] for hop in lap for pick in hop.picks)
    yield subject.finding(
        "GA303",
        f"the run can get to where it never ends: it goes round {_quoted(tuple(nodes))}",
        nodes,
        where=subject.place(next(iter(nodes))),
        trace=found.trace([*found.path(state), *lap], "and so on, for ever"),
        fix="give the loop a choice that leaves it and leaves nothing behind",
    )


def _crowded(subject: Subject, found: Exploration) -> Iterator[Diagnostic]:
    for state, join, source in stops.crowded(found):
        yield subject.finding(
            "GA304",
            f"'{source}' can arrive at join '{join}' again before the join has taken its last arrival",
            (join, source),
            where=_join_place(subject, join),
            trace=found.trace(found.path(state), f"join '{join}' has two arrivals of '{source}'"),
            fix=f"let '{source}' run once for each firing of '{join}'",
        )


def _overlapping(subject: Subject, found: Exploration) -> Iterator[Diagnostic]:
    """A loop that is entered again while it may still go round, or a node of one that is due twice at once."""
    graph, loops = subject.graph, _loops(subject)
    entries = stops.entries(found, loops)
    seen: set[int] = set()
    for loop in sorted(stops.twice(found, entries)):
        seen.add(loop)
        hops = stops.way_to_second(found, entries, loop)
        inside = [a.node for a in found.markings[hops[-1].target if hops else 0].frontier if loops.get(a.node) == loop]
        name = graph.names[inside[0]]
        yield _overlap(
            subject, name, f"the loop of '{name}' can be entered again before it has ended", found.trace(hops, "again")
        )
    for state, node in stops.overlaps(found, loops):
        if loops[node] in seen:
            continue
        seen.add(loops[node])
        name = graph.names[node]
        grows = any(node in {a.node for a in found.markings[s].frontier} for s in found.growing)
        more = ", and with every lap there can be more" if grows else ""
        text = f"node '{name}' of a loop can be due twice at once{more}"
        yield _overlap(subject, name, text, found.trace(found.path(state), f"'{name}' is due twice"))


def _overlap(subject: Subject, name: str, text: str, trace: tuple[TraceStep, ...]) -> Diagnostic:
    return subject.finding(
        "GA306",
        f"{text}: laps overlap",
        (name,),
        where=subject.place(name),
        trace=trace,
        fix="join the branches of a lap, or those that lead into the loop, before a lap begins",
    )


def _silent(subject: Subject, found: Exploration) -> Iterator[Diagnostic]:
    state = next(stops.silent_ends(found), None)
    if state is None:
        return
    hops = found.path(state)
    last = subject.graph.names[hops[-1].picks[-1].node] if hops else START
    outputs = subject.graph.definition.outputs
    yield subject.finding(
        "GA308",
        f"the run can end after '{last}' without reaching END",
        (last,),
        where=subject.place(last),
        severity="error" if outputs else None,
        trace=found.trace(hops, "nothing is left to run, and END was not reached"),
        fix=f"lead every outcome of '{last}' to a node or to END (a fan-out over no items: name a collector)",
    )


def _never(subject: Subject, found: Exploration, starved: set[str]) -> Iterator[Diagnostic]:
    """GA305: nodes that the drawing leads to and no behaviour does; not those that only a starved join leads to."""
    import networkx

    graph = subject.graph
    done = {graph.names[node] for node in stops.ran(found)}
    idle = subject.reachable - done - {END}
    behind = {join.target for join in graph.joins if join.id in starved}
    without = subject.digraph.subgraph(set(subject.digraph) - behind)
    led_to = networkx.descendants(without, START)
    for name in (name for name in graph.names if name in idle and name in led_to):
        if any(before in idle for before in subject.digraph.predecessors(name) if before != name):
            continue
        yield subject.finding(
            "GA305",
            f"node '{name}' never runs, whatever is chosen",
            (name,),
            where=subject.place(name),
            fix="see what leads to it: a join that is never complete, or an edge that is always replaced",
        )


def _bound(subject: Subject, found: Exploration, where: str) -> Diagnostic:
    waiting = sum(moves is None for moves in found.moves)
    return subject.finding(
        "GA309",
        f"behaviour is not decided{where}: stopped at {found.stopped}, after {len(found.markings)} states with "
        f"{waiting} still to follow",
        (),
        where=NOWHERE,
        fix="raise --max-states or --max-seconds, or split the graph into child graphs",
    )


def _loops(subject: Subject) -> dict[int, int]:
    """The number of the loop for each node on one, by index."""
    graph = subject.graph
    return {graph.index[name]: number for name, number in subject.cycles.items() if name in graph.index}


def _join_place(subject: Subject, join: str) -> Place:
    return next((item.place for item in subject.graph.joins if item.id == join), NOWHERE)


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "nothing"


FAMILY = Family("behaviour", RULES, check, cheap=False)
