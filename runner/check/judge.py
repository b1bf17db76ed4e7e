"""Has every graph validated, and says what the check as a whole comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path

from graphagent.errors import GraphDefinitionError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import Problem
from graphagent.validation import Diagnostic, Report, validate
from graphagent.validation.catalogue import catalogue, matching
from graphagent.validation.lock import compare, read_lock
from graphagent.validation.report import ORDER, Result, Severity, worst_first
from runner.check.find import Candidate, Failure
from runner.check.places import localised
from runner.check.settings import Settings

BOUND_HIT = "GA309"
"""The finding that says that a bound was hit; it makes a result unknown, it is no fault by itself."""


class Verdict(IntEnum):
    """The exit status of a check."""

    CLEAN = 0
    FINDINGS = 1
    MISUSE = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class Checked:
    """One graph with what was found, files named from one folder. `known`: findings that the baseline has."""

    candidate: Candidate
    report: Report
    known: int = 0

    @property
    def graph(self) -> CompiledGraph | None:
        """The compiled graph; None if it can't be compiled."""
        graph = self.candidate.graph
        if isinstance(graph, GraphDefinitionError):
            return None
        try:
            return graph if isinstance(graph, CompiledGraph) else graph.compile()
        except GraphDefinitionError:
            return None

    @property
    def decided(self) -> bool:
        """False if a bound was hit, or if an error of the definition that is not shown kept all else unjudged."""
        hidden = self.report.stats.decided_by == "definition" and self.report.worst != "error"
        return self.report.complete and not hidden


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check came to. `base`: the folder that files are named from; `gone`: how many findings of the baseline
    are not there any more."""

    checked: Sequence[Checked]
    failures: Sequence[Failure]
    settings: Settings
    base: Path
    gone: int = 0

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """Those of all graphs, worst first."""
        found = [finding for one in self.checked for finding in one.report.findings]
        return tuple(sorted(found, key=lambda finding: -ORDER[finding.severity]))

    @property
    def verdict(self) -> Verdict:
        """A target that could not be looked at comes before findings, and these before a bound that was hit."""
        if self.failures:
            return Verdict.MISUSE
        result = self.result(self.checked)
        if result == "unknown":
            return Verdict.CLEAN if self.settings.allow_unknown else Verdict.UNKNOWN
        failing = any(self.fails(finding) for finding in self.findings)
        return Verdict.FINDINGS if failing else Verdict.CLEAN

    def result(self, checked: Iterable[Checked]) -> Result:
        """`findings` if one of them fails the check, else `unknown` if something is, else whether there are any."""
        ones = list(checked)
        findings = [finding for one in ones for finding in one.report.findings]
        if any(self.fails(finding) for finding in findings):
            return "findings"
        if not all(one.decided for one in ones) or (not ones and self.failures):
            return "unknown"
        return "findings" if findings else "clean"

    def fails(self, finding: Diagnostic) -> bool:
        """True if the finding is bad enough to fail the check."""
        least = self.settings.fail_on
        return least is not None and finding.code != BOUND_HIT and ORDER[finding.severity] >= ORDER[least]

    def count(self, severity: Severity) -> int:
        """How many findings there are of a severity."""
        return sum(finding.severity == severity for finding in self.findings)


def judge(
    candidates: Sequence[Candidate], settings: Settings, base: Path, progress: Callable[[str], None]
) -> list[Checked]:
    """Every graph validated, in order, and compared with the lock file if there is one. `progress` is told what comes
    next. Raises UsageError for an unknown code and for a lock file that can't be read."""
    locked = read_lock(settings.lock_file) if settings.lock_file is not None else None
    found = []
    for number, candidate in enumerate(candidates, 1):
        progress(f"{candidate.target} ({number} of {len(candidates)})")
        one = Checked(candidate, _report(candidate, settings))
        findings = one.report.findings
        if locked is not None and one.graph is not None:
            findings = worst_first([*findings, *_wanted(compare(locked, [one.graph]), settings)])
        local = tuple(localised(finding, base, candidate.file) for finding in findings)
        allowed = tuple(localised(finding, base, candidate.file) for finding in one.report.allowed)
        found.append(Checked(candidate, replace(one.report, findings=local, allowed=allowed)))
    return found


def _report(candidate: Candidate, settings: Settings) -> Report:
    if isinstance(candidate.graph, GraphDefinitionError):
        return _uncompiled(candidate.graph, settings)
    facts = candidate.facts if settings.engine is None else replace(candidate.facts, engine=settings.engine)
    return validate(
        candidate.graph,
        rules=settings.select,
        ignore=settings.ignore,
        bounds=settings.bounds,
        facts=facts,
        severities=settings.severities,
    )


def _uncompiled(error: GraphDefinitionError, settings: Settings) -> Report:
    """The report on a graph whose `compile()` was called, and failed, before the check could see it."""
    problems = [problem for problem in error.problems if isinstance(problem, Problem)]
    findings = [Diagnostic(p.code, p.severity, p.message, error.graph, p.at, p.place) for p in problems]
    return Report(error.graph, "", worst_first(_wanted(findings, settings)))


def _wanted(findings: Iterable[Diagnostic], settings: Settings) -> list[Diagnostic]:
    """The findings that are selected and not ignored."""
    codes = matching(settings.select) if settings.select is not None else frozenset(catalogue())
    codes -= matching(settings.ignore)
    return [finding for finding in findings if finding.code in codes]
