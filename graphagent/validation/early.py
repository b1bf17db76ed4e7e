"""GA307: END is reached while a node that writes one of the declared outputs is still due."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from graphagent.graph.marking import Marking
from graphagent.validation.explore import Goal, explore
from graphagent.validation.report import Diagnostic
from graphagent.validation.subject import Subject


def early_answers(subject: Subject) -> Iterator[Diagnostic]:
    """One finding per writer of an output; for each, the run in which it ends as late as possible is looked for."""
    outputs = frozenset(subject.graph.definition.outputs or ())
    if not outputs:
        return
    for index, access in enumerate(subject.accesses):
        written = outputs & access.writes.fields
        if not written:
            continue
        goal = Goal(_ended_before(index), frozenset({index}))
        found = explore(subject.graph, subject.choices, subject.bounds, goal=goal)
        if found.reached is None:
            continue
        name, field = access.node, min(written)
        yield subject.finding(
            "GA307",
            f"END can be reached while '{name}', which writes the output '{field}', is still due",
            (name,),
            where=subject.place(name),
            trace=found.trace(found.path(found.reached), f"END is reached, and '{name}' is still due"),
            fix="let END wait for it: add_join_edge([...], END)",
        )


def _ended_before(node: int) -> Callable[[Marking], bool]:
    return lambda marking: marking.ended and any(activation.node == node for activation in marking.frontier)
