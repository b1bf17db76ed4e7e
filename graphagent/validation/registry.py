"""The rules that there are: each with its code, what it means, and a graph that breaks it."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphagent.validation.report import Diagnostic, Severity

if TYPE_CHECKING:
    from graphagent.validation.subject import Subject

ENTRY_POINTS = "graphagent.rules"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `severity` is what a finding has unless the case says otherwise; `explain`: what goes wrong at run time
    and what to do; `fails` and `passes`: a smallest graph that breaks it and a near miss, in the notation of
    `graphagent.validation.notation` (empty where the notation can't say it)."""

    code: str
    title: str
    severity: Severity
    explain: str
    fails: str = ""
    passes: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """Rules that are checked together. `check` yields findings on a compiled graph.

    `cheap`: linear in the size of the graph, no search.
    """

    name: str
    rules: tuple[Rule, ...]
    check: Callable[[Subject], Iterable[Diagnostic]]
    cheap: bool = True


def plugins() -> tuple[Family, ...]:
    """The families that installed packages add by the entry point group `graphagent.rules`."""
    found = importlib.metadata.entry_points(group=ENTRY_POINTS)
    return tuple(point.load() for point in sorted(found, key=lambda point: point.name))
