"""May a new version of a graph be deployed while runs of the old one are unfinished?

Static: every place where a run of the old graph can be stored is put into the new graph and judged (conditions C1 to C7
of `in_flight`); what differs besides is listed. Live: the same for runs that are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from graphagent.graph.compiled import CompiledGraph
from graphagent.validation.changes import changes
from graphagent.validation.facts import Bounds, EngineName
from graphagent.validation.in_flight import Judge, Verdict
from graphagent.validation.mapping import NO_RENAMES, Mapper, Renames
from graphagent.validation.reasons import Reasons
from graphagent.validation.report import Diagnostic, Result, TraceStep, worst_first
from graphagent.validation.situations import Places, Situations
from graphagent.validation.standing import Standing
from graphagent.validation.version import Version

Class = Literal["compatible", "migratable", "blocking"]


@dataclass(frozen=True, slots=True)
class Counted:
    """Runs or places that were judged: how many go on by themselves, how many thanks to a declared rename or migration,
    and how many can't."""

    resume: int = 0
    migrate: int = 0
    blocked: int = 0

    @property
    def total(self) -> int:
        """All that were judged."""
        return self.resume + self.migrate + self.blocked

    @property
    def verdict(self) -> Class:
        """The class of a change with these numbers."""
        return "blocking" if self.blocked else "migratable" if self.migrate else "compatible"


@dataclass(frozen=True)
class CompatReport:
    """What a change does to unfinished runs.

    `verdict`: `compatible`, `migratable` (every run goes on, some only thanks to a declared rename or migration) or
    `blocking`. `findings`: one for each distinct reason, errors with a way to a place that breaks and the number of
    such places, then what else differs. `runs`: the same by name of a run, where runs were judged. `complete`: no bound
    was hit.
    """

    old: str
    new: str
    situations: Counted
    findings: tuple[Diagnostic, ...]
    complete: bool = True
    runs: Mapping[str, Verdict] = field(default_factory=dict)

    @property
    def verdict(self) -> Class:
        """The class of the change."""
        return self.situations.verdict

    @property
    def result(self) -> Result:
        """`unknown` if a bound was hit before anything was found that blocks, else `clean` or `findings`."""
        if not self.complete and self.verdict != "blocking":
            return "unknown"
        return "findings" if self.findings else "clean"

    def to_json(self) -> dict[str, Any]:
        """Plain data of schema 1."""
        counted = self.situations
        return {
            "schema": 1,
            "result": self.result,
            "class": self.verdict,
            "resumes": self.verdict != "blocking",
            "complete": self.complete,
            "old": self.old,
            "new": self.new,
            "situations": {
                "total": counted.total,
                "resume": counted.resume,
                "migrate": counted.migrate,
                "blocked": counted.blocked,
            },
            "findings": [finding.to_json() for finding in self.findings],
            "runs": {
                name: {
                    "class": _class_of(verdict),
                    "codes": sorted({finding.code for finding in verdict.findings if finding.severity == "error"}),
                    "reasons": [finding.message for finding in verdict.findings if finding.severity == "error"],
                }
                for name, verdict in self.runs.items()
            },
        }


class _Tally:
    """Gathers verdicts: how many of each class, and by distinct reason how often and where first."""

    def __init__(self) -> None:
        self.counts = {"compatible": 0, "migratable": 0, "blocking": 0}
        self.complete = True
        self.first: dict[tuple[str, str, tuple[str, ...]], Diagnostic] = {}
        self.times: dict[tuple[str, str, tuple[str, ...]], int] = {}

    def add(self, verdict: Verdict, trace: tuple[TraceStep, ...] = ()) -> None:
        """One more place or run."""
        self.counts[_class_of(verdict)] += 1
        self.complete = self.complete and verdict.complete
        for key, finding in {(f.code, f.severity, f.at): f for f in verdict.findings}.items():
            self.times[key] = self.times.get(key, 0) + 1
            self.first.setdefault(key, finding if finding.trace else replace(finding, trace=trace))

    def findings(self, what: str) -> list[Diagnostic]:
        """The reasons, each with how often it was met."""
        total = sum(self.counts.values())
        return [
            replace(finding, related=(f"{self.times[key]} of {total} {what}", *finding.related))
            for key, finding in self.first.items()
        ]

    @property
    def counted(self) -> Counted:
        """The numbers by class."""
        return Counted(self.counts["compatible"], self.counts["migratable"], self.counts["blocking"])


def compat(
    old: CompiledGraph | Version,
    new: CompiledGraph | Version,
    *,
    renames: Renames = NO_RENAMES,
    at: Places = "all",
    engine: EngineName = "both",
    bounds: Bounds | None = None,
) -> CompatReport:
    """What a change does to every run of the old graph that can be unfinished.

    `renames`: beside those that the new graph declares. `at`: every place where a run can be stored, or only those
    where it can wait for an answer. `engine`: how the old graph is run. `bounds`: of every search.
    """
    before, after, bounds = version_of(old), version_of(new), bounds or Bounds()
    judge = Judge(after, before, renames, bounds)
    tally = _Tally()
    places = Situations(before, bounds, at, engine)
    for place in places:
        tally.add(judge.judge(place.standing, place.marking), place.trace)
    found = tally.findings("places where a run can be stored")
    return _report(before, after, renames, tally, found, places.complete)


def compat_runs(
    old: CompiledGraph | Version | None,
    new: CompiledGraph | Version,
    runs: Mapping[str, Standing],
    *,
    renames: Renames = NO_RENAMES,
    bounds: Bounds | None = None,
) -> CompatReport:
    """What a change does to these runs, by name of a run."""
    after = version_of(new)
    before = None if old is None else version_of(old)
    judge = Judge(after, before, renames, bounds)
    verdicts = {name: judge.judge(standing) for name, standing in runs.items()}
    return gathered(before, after, verdicts, renames)


def gathered(
    old: Version | None, new: Version, verdicts: Mapping[str, Verdict], renames: Renames = NO_RENAMES
) -> CompatReport:
    """The report on runs that have been judged one by one."""
    tally = _Tally()
    for verdict in verdicts.values():
        tally.add(verdict)
    found = tally.findings("runs")
    return replace(_report(old, new, renames, tally, found, True), runs=dict(verdicts))


def version_of(graph: CompiledGraph | Version) -> Version:
    """The version that a graph is."""
    return graph if isinstance(graph, Version) else Version.of(graph)


def _report(
    old: Version | None, new: Version, renames: Renames, tally: _Tally, found: Iterable[Diagnostic], complete: bool
) -> CompatReport:
    listed = list(found)
    if old is not None:
        said = {(finding.code, finding.at[:1]) for finding in listed}
        notes = changes(Reasons(new), Mapper(old, new, renames), old, new)
        listed += [note for note in notes if (note.code, note.at[:1]) not in said]
    names = (old.label if old is not None else "unknown", new.label)
    return CompatReport(*names, tally.counted, worst_first(listed), tally.complete and complete)


def _class_of(verdict: Verdict) -> Class:
    return "blocking" if verdict.blocked else "migratable" if verdict.migrated else "compatible"
