"""What came of runs that met with faults, compared with one that didn't."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Verdict = Literal["held", "unknown", "broken"]
"""`held`: same final state, every effect as often as without a fault. `unknown`: an effect's outcome is unknown and
the run asks for a person (EffectUnknown); no effect happened too often. `broken`: anything else."""

SHOWN = 10
"""Broken trials that a message spells out."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a run ended: its status (`unknown` for EffectUnknown), why, its state, and what it did outside."""

    status: str
    reason: str
    state: Any
    effects: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """One run that met with a fault. `trace`: what all its processes passed, where that was recorded."""

    fault: str
    verdict: Verdict
    problem: str = ""
    trace: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """All trials of a graph, in the order of its writes."""

    trials: tuple[Trial, ...]

    def by(self, verdict: Verdict) -> list[Trial]:
        """The trials with a verdict."""
        return [trial for trial in self.trials if trial.verdict == verdict]

    def check(self, *, unknown: bool = False) -> None:
        """Raise AssertionError, which lists what went wrong, unless all trials held.

        `unknown`: effects of unknown outcome are all right, as for steps that neither reconcile nor may be repeated.
        """
        good = ("held", "unknown") if unknown else ("held",)
        bad = [trial for trial in self.trials if trial.verdict not in good]
        if not self.trials:
            raise AssertionError("no fault was tried: no write was made; give the executor the store it is offered")
        if bad:
            lines = [f"{trial.fault}: {trial.problem}" for trial in bad[:SHOWN]]
            more = [f"and {len(bad) - SHOWN} more"] if len(bad) > SHOWN else []
            raise AssertionError("\n  ".join([str(self), *lines, *more]))

    def __str__(self) -> str:
        counts = Counter(trial.verdict for trial in self.trials)
        return (
            f"{len(self.trials)} faults: {counts['held']} held, {counts['unknown']} with an effect of unknown outcome, "
            f"{counts['broken']} broken"
        )


def judge(fault: str, found: Run, expected: Run, trace: tuple[str, ...] = ()) -> Trial:
    """The verdict on a run that met with a fault."""
    problems = _too_often(found, expected)
    if not problems and found.status == "unknown":
        return Trial(fault, "unknown", found.reason, trace)
    if found.status != expected.status:
        problems.append(f"it ended '{found.reason}'")
    else:
        problems += _lost(found, expected)
        if found.state != expected.state:
            problems.append(f"the final state differs: {_difference(found.state, expected.state)}")
    return Trial(fault, "broken" if problems else "held", "; ".join(problems), trace)


def _too_often(found: Run, expected: Run) -> list[str]:
    wanted, counts = Counter(expected.effects), Counter(found.effects)
    return [
        f"effect '{line}' happened {count} times instead of {wanted[line]}"
        for line, count in counts.items()
        if count > wanted[line]
    ]


def _lost(found: Run, expected: Run) -> list[str]:
    missing = Counter(expected.effects) - Counter(found.effects)
    return [f"effect '{line}' is missing {count} times" for line, count in missing.items()]


def _difference(found: Any, expected: Any) -> str:
    if not isinstance(found, dict) or not isinstance(expected, dict):
        return f"{found!r:.200} instead of {expected!r:.200}"
    fields = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
    return "; ".join(f"'{name}' is {found.get(name)!r:.200} instead of {expected.get(name)!r:.200}" for name in fields)
