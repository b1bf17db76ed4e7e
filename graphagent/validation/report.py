"""What validation says: findings with a place, a trace and a mend, and how they were come by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from graphagent.graph.definition import Place
from graphagent.graph.names import START

Severity = Literal["error", "warning", "info"]
Result = Literal["clean", "findings", "unknown"]
ORDER: Mapping[str, int] = {"info": 0, "warning": 1, "error": 2}
NOWHERE = Place()
LOWER: Mapping[Severity, Severity] = {"error": "warning", "warning": "info", "info": "info"}


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One pick of a trace: `node` ran and chose `outcome` (empty where it has only one).

    `live`: the nodes that may run then; `joins`: the sources that have arrived, by join id. A last step without a
    node says in `note` what is wrong with where the run then stands.
    """

    step: int
    node: str
    outcome: str = ""
    live: tuple[str, ...] = ()
    joins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""

    def __str__(self) -> str:
        return self.note or (f"{self.node}={self.outcome}" if self.outcome else self.node)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    `code` is that of a rule; `at` names the nodes, joins or fields concerned, the guilty one first; `where` is the
    call of the builder that made it; `trace` is a shortest way there, `fix` what to do; `related`: texts of what
    follows from it. `inferred`: rests on what was read from source code.
    """

    code: str
    severity: Severity
    message: str
    graph: str = ""
    at: tuple[str, ...] = ()
    where: Place = NOWHERE
    trace: tuple[TraceStep, ...] = ()
    fix: str = ""
    related: tuple[str, ...] = ()
    inferred: bool = False

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits of code, graph and places: the same after lines have moved."""
        return hashlib.sha256("|".join([self.code, self.graph, *sorted(self.at)]).encode()).hexdigest()[:16]

    @property
    def script(self) -> str:
        """The trace as `graphagent simulate --script` takes it: `plan; fork; b=END; a`; START needs no telling."""
        return script_of((step.node, step.outcome) for step in self.trace if step.node and step.node != START)

    def to_json(self) -> dict[str, Any]:
        """Plain data of schema 1."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "graph": self.graph,
            "at": list(self.at),
            "location": {"file": self.where.file, "line": self.where.line} if self.where.file else None,
            "trace": [
                {
                    "step": step.step,
                    "node": step.node,
                    "outcome": step.outcome,
                    "live": list(step.live),
                    "joins": {name: list(have) for name, have in step.joins.items()},
                    "note": step.note,
                }
                for step in self.trace
            ],
            "script": self.script,
            "fix": self.fix,
            "related": list(self.related),
            "inferred": self.inferred,
            "fingerprint": self.fingerprint,
        }


@dataclass(frozen=True, slots=True)
class Stats:
    """How the verdict on behaviour was reached.

    `decided_by`: `definition` (nothing else was looked at), `reduction`, `rank`, `search`, or `bound` (not decided).
    `states`: explored with eager semantics; `superstep_states`: with supersteps (0: not needed). `seconds`: all rules.
    """

    decided_by: Literal["definition", "reduction", "rank", "search", "bound"] = "definition"
    states: int = 0
    superstep_states: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """The findings on one graph, worst first, and whether a bound was hit before all was known."""

    graph: str
    fingerprint: str
    findings: tuple[Diagnostic, ...]
    complete: bool = True
    stats: Stats = Stats()
    allowed: tuple[Diagnostic, ...] = ()  # silenced by allow=

    @property
    def worst(self) -> Severity | None:
        """The worst severity, or None."""
        return max((finding.severity for finding in self.findings), key=ORDER.__getitem__, default=None)

    @property
    def result(self) -> Result:
        """`unknown` if a bound was hit, else `clean` or `findings`."""
        if not self.complete:
            return "unknown"
        return "findings" if self.findings else "clean"

    def at_least(self, severity: Severity) -> tuple[Diagnostic, ...]:
        """Findings of this severity or worse."""
        return tuple(finding for finding in self.findings if ORDER[finding.severity] >= ORDER[severity])


def script_of(picks: Iterable[tuple[str, str]]) -> str:
    """Nodes with their outcomes as a script. What would end a pick, a semicolon or a new line, has a backslash."""
    texts = (f"{node}={outcome}" if outcome else node for node, outcome in picks)
    return "; ".join(text.replace("\\", "\\\\").replace(";", "\\;").replace("\n", "\\n") for text in texts)


def worst_first(findings: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sorted by severity, then code, then place; equal ones once."""
    unique = {(f.code, f.severity, f.at, f.message): f for f in findings}
    return tuple(sorted(unique.values(), key=lambda f: (-ORDER[f.severity], f.code, f.at, f.message)))
