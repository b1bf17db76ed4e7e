"""`allow=("GA302: two audit lines are wanted",)` on a node: findings that a person has looked at and accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from graphagent.errors import alternatives
from graphagent.graph.definition import NodeDef
from graphagent.validation.registry import Rule
from graphagent.validation.report import Diagnostic
from graphagent.validation.subject import Subject

RULES: tuple[Rule, ...] = (
    Rule(
        "GA900",
        "an allow that does nothing",
        "warning",
        "`allow` on a node silences the findings with that code in which the node appears. It needs a reason behind a "
        "colon, for those who come later, and a finding to silence: one that is out of date would hide the next one "
        "of its kind. Remove it, or correct the code.",
        "a -> END\nnode a allow GA302: two audit lines are wanted",
        "s -> a, b\na -> m\nb -> m\nm -> END\nnode m allow GA302: two audit lines are wanted",
    ),
)


def allowed_apart(subject: Subject, found: Iterable[Diagnostic]) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """The findings that stay, and those that a node concerned allows.

    `found`: those of the subject's own graph, not of its children. An allow without a reason silences nothing. What is
    wrong with the allows themselves (GA900) stays.
    """
    given = {(code, node.id) for node in subject.graph.defs for code, reason in _parts(node) if reason}
    kept: list[Diagnostic] = []
    silenced: list[Diagnostic] = []
    used: set[tuple[str, str]] = set()
    for finding in found:
        hits = given & {(finding.code, name) for name in finding.at}
        used |= hits
        (silenced if hits else kept).append(finding)
    return [*kept, *_idle(subject, used)], silenced


def _parts(node: NodeDef) -> Iterator[tuple[str, str]]:
    """Code and reason of each allow of a node."""
    for text in node.allow:
        code, _, reason = text.partition(":")
        yield code.strip(), reason.strip()


def _idle(subject: Subject, used: Set[tuple[str, str]]) -> Iterator[Diagnostic]:
    """GA900. As long as the behaviour isn't decided, nothing is said of rules that have not been met."""
    nodes = [node for node in subject.graph.defs if node.allow]
    decided = bool(nodes) and subject.decided_by != "bound"
    for node in nodes:
        for code, reason in _parts(node):
            text = ""
            if code not in subject.severities:
                text = f"allows '{code}', which is no rule: {alternatives(code, subject.severities)}"
            elif not reason:
                text = f"allows '{code}' without a reason, which silences nothing; write '{code}: <why>'"
            elif decided and (code, node.id) not in used:
                text = f"allows '{code}', but there is no such finding; remove it"
            if text:
                yield subject.finding("GA900", f"node '{node.id}' {text}", (node.id,))
