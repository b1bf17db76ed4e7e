"""GA0xx: what a definition can't mean.

Most of these are the checks of `compile()` (`graphagent/graph/checks.py`), which `validate` runs itself. Here are those
that need more than the definition: child graphs, what functions name, and what a node may choose.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphagent.validation.children import misfits
from graphagent.validation.definition_rules import RULES
from graphagent.validation.nesting import ring
from graphagent.validation.registry import Family
from graphagent.validation.report import Diagnostic
from graphagent.validation.subject import Subject


def check(subject: Subject) -> Iterator[Diagnostic]:
    """All findings of the family that `compile()` doesn't have."""
    yield from _runs_itself(subject)
    yield from misfits(subject)
    yield from _no_collector(subject)


def _runs_itself(subject: Subject) -> Iterator[Diagnostic]:
    """GA016."""
    way = ring(subject.graph)
    if way is None:
        return
    name = subject.graph.name
    first = next(node.id for node in subject.graph.defs if way[0] == f"{name}.{node.id}")
    text = (
        f"graph '{name}' leads back to itself through its functions: {' -> '.join(map(repr, way))} -> '{name}'; if the "
        f"depth is bounded, say so on node '{first}': allow=('GA016: <how>',)"
    )
    yield subject.finding("GA016", text, (first,), inferred=True)


def _no_collector(subject: Subject) -> Iterator[Diagnostic]:
    """GA018."""
    for name, outcomes in zip(subject.graph.names, subject.choices.of, strict=True):
        if any(outcome.sends == () for outcome in outcomes):
            text = (
                f"node '{name}' fans out without a collector: for an empty list nothing behind it runs; use "
                f"add_map_node(..., collect=...), or jump on with Command(goto=...) when there is no item"
            )
            yield subject.finding("GA018", text, (name,))


FAMILY = Family("definition", RULES, check)
