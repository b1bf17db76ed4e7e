"""GA403 and GA409: nodes that can run at the same time, and both write a field, or one reads what the other writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from graphagent.graph.fields import Field
from graphagent.validation.access import Access, by_field
from graphagent.validation.concurrency import Evidence, together
from graphagent.validation.report import LOWER, Diagnostic, Severity
from graphagent.validation.subject import Subject


class Clash(NamedTuple):
    """Two nodes that can be live together, and how that is known."""

    one: Access
    other: Access
    evidence: Evidence


def races(subject: Subject, reached: Sequence[Access]) -> Iterator[Diagnostic]:
    """All findings of both rules. What only the eager engine can bring about is lower with the superstep engine."""
    written = by_field(reached, lambda access: access.writes.fields)
    read = by_field(reached, lambda access: access.reads.fields | access.routing.fields)
    for field in subject.graph.schema:
        writers = written.get(field.name, [])
        clashes = list(_clashes(subject, writers)) if field.writers == "one" else []
        yield from _conflicts(subject, field, clashes)
        met = {(clash.one.node, clash.other.node) for clash in clashes}
        readers = read.get(field.name, [])
        yield from _late_reads(subject, field, readers, writers, met | {(b, a) for a, b in met})


def _clashes(subject: Subject, writers: Sequence[Access]) -> Iterator[Clash]:
    relation = together(subject)
    access = {writer.node: writer for writer in writers}
    index = subject.graph.index
    for one, other in relation.among(access, access):
        evidence = relation.pair(one, other, traced=False) if index[one] <= index[other] else None
        if evidence is not None:
            yield Clash(access[one], access[other], evidence)


def _conflicts(subject: Subject, field: Field, clashes: Iterable[Clash]) -> Iterator[Diagnostic]:
    """GA403: one finding for all writers that meet, in pairs, with one severity."""
    by_severity: dict[tuple[Severity, bool, bool], list[Clash]] = {}
    for clash in clashes:
        inferred = {clash.one.writes.origin, clash.other.writes.origin} != {"declared"}
        timed = subject.facts.engine == "superstep" and not clash.evidence.in_step
        key = (_severity(subject, clash.evidence, timed), timed, inferred)
        by_severity.setdefault(key, []).append(clash)
    for (severity, timed, inferred), found in by_severity.items():
        for group in _connected(found):
            names = list(dict.fromkeys(a.node for clash in group for a in (clash.one, clash.other)))
            first = min(group, key=lambda clash: len(clash.evidence.trace) or subject.bounds.max_states)
            shown = together(subject).pair(first.one.node, first.other.node)
            yield subject.finding(
                "GA403",
                f"{_who(names)} can run at the same time and write '{field.name}', which has room for one "
                f"writer{_how(first.evidence, timed)}: give the field a merge rule such as Annotated[..., append], or "
                f"let one follow the other",
                (*names, field.name),
                severity=severity,
                trace=() if shown is None else shown.trace,
                fix=f"give '{field.name}' a merge rule, or let one writer follow the other",
                inferred=inferred,
            )


def _severity(subject: Subject, evidence: Evidence, timed: bool) -> Severity:
    """An error that is shown or proved; one lower if it is neither, or if supersteps are never known to meet it."""
    if subject.choices.open & {subject.graph.index[name] for name in subject.reachable}:
        return "info"
    severity: Severity = "error" if evidence.certain else LOWER["error"]
    return LOWER[severity] if timed and severity == "error" else severity


def _how(evidence: Evidence, timed: bool) -> str:
    if not evidence.certain:
        return " (the structure allows it; no such run was found within the bounds of the search)"
    return " (they are not known to meet in one superstep: right only by timing)" if timed else ""


def _who(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"several runs of node '{names[0]}'"
    return ", ".join(f"'{name}'" for name in names[:-1]) + f" and '{names[-1]}'"


def _connected(clashes: Sequence[Clash]) -> list[list[Clash]]:
    """Clashes that share nodes together, in order."""
    groups: list[tuple[set[str], list[Clash]]] = []
    for clash in clashes:
        nodes = {clash.one.node, clash.other.node}
        touching = [group for group in groups if group[0] & nodes]
        for group in touching:
            groups.remove(group)
        merged = [item for group in touching for item in group[1]]
        groups.append((nodes.union(*(group[0] for group in touching)), [*merged, clash]))
    return [group for _, group in groups]


def _late_reads(
    subject: Subject, field: Field, readers: Sequence[Access], writers: Sequence[Access], met: set[tuple[str, str]]
) -> Iterator[Diagnostic]:
    """GA409: one finding a reader. In supersteps the value is the one from before the step, so it is a note."""
    eager = subject.facts.engine != "superstep"
    access = {writer.node: writer for writer in writers}
    relation = together(subject)
    for reader in readers:
        if field.name not in reader.reads.fields and not eager:  # a router runs after the whole step
            continue
        found: list[tuple[Access, Evidence]] = []
        for _, name in relation.among([reader.node], access):
            if name == reader.node or (reader.node, name) in met:
                continue
            evidence = relation.pair(reader.node, name, traced=not found)
            if evidence is not None and evidence.certain and (eager or evidence.in_step):
                found.append((access[name], evidence))
        if not found:
            continue
        names = [writer.node for writer, _ in found]
        reads = reader.reads if field.name in reader.reads.fields else reader.routing
        sees = "it gets the old value or the new one" if eager else "in one superstep it gets the old value"
        partly = bool(subject.choices.open)
        yield subject.finding(
            "GA409",
            f"node '{reader.node}' reads '{field.name}' while {', '.join(map(repr, names))} may be writing it: {sees}; "
            f"let '{reader.node}' follow, or join first",
            (reader.node, *names, field.name),
            severity="info" if partly or not eager else None,
            trace=found[0][1].trace,
            fix=f"let '{reader.node}' follow {', '.join(map(repr, names))}",
            inferred=reads.origin != "declared" or any(writer.writes.origin != "declared" for writer, _ in found),
        )
