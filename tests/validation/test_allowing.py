"""`allow=` on a node: which findings it silences, and what is said of one that does nothing."""

from __future__ import annotations

import pytest
from support.graphs import Trail, says
from support.rules import EAGER

from graphagent import END, START, StateGraph
from graphagent.validation import Bounds, Report, load_document, validate
from graphagent.validation.notation import parse_notation

TWICE = "s -> a, b\na -> m\nb -> m\nm -> END\n"
WANTED = "GA302: two audit lines are wanted"


def judged(text: str, bounds: Bounds | None = None) -> Report:
    """The report on a graph in the notation, by the eager engine."""
    return validate(load_document(parse_notation(text)).builder, facts=EAGER, bounds=bounds)


def codes(report: Report) -> list[str]:
    """The codes that are reported."""
    return [finding.code for finding in report.findings]


def test_an_allowed_finding_is_kept_apart() -> None:
    """It no longer counts, and the report still has it."""
    report = judged(f"{TWICE}node m allow {WANTED}")
    assert (codes(report), report.result) == ([], "clean")
    assert [(finding.code, finding.at[0]) for finding in report.allowed] == [("GA302", "m")]


IDLE = [
    ("no reason", "node m allow GA302", "allows 'GA302' without a reason", ["GA302", "GA900"]),
    ("blank reason", "node m allow GA302:  ", "without a reason", ["GA302", "GA900"]),
    ("another node", f"node a allow {WANTED}", "'a' allows 'GA302', but there is no such", ["GA302", "GA900"]),
    ("another code", "node m allow GA301: why not", "node 'm' allows 'GA301', but", ["GA302", "GA900"]),
    ("no rule", "node m allow GA3O2: a letter", "'GA3O2', which is no rule: did you mean 'GA302'?", ["GA302", "GA900"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "expected"), [row[1:] for row in IDLE], ids=[row[0] for row in IDLE])
def test_an_allow_that_does_nothing_is_reported(text: str, message: str, expected: list[str]) -> None:
    """GA900 at the node, as a warning; the finding stays."""
    report = judged(TWICE + text)
    assert sorted(codes(report)) == expected
    idle = next(finding for finding in report.findings if finding.code == "GA900")
    assert message in idle.message
    assert (idle.severity, idle.at[0]) == ("warning", text.split()[1])


def test_findings_of_a_definition_can_be_allowed() -> None:
    """A warning of compile() is silenced like any other."""
    report = judged("a -> b\na ? c | END\nb, c -> END\nnode a allow GA013: both, on purpose")
    assert codes(report) == []
    assert [finding.code for finding in report.allowed] == ["GA013"]


def test_what_was_not_decided_is_not_called_idle() -> None:
    """Where the search hit its bound, an allow that was not needed so far is left alone."""
    text = (
        "s -> a, b, c\na ? a | a2\nb ? b | b2\nc ? c | c2\na2 & b2 & c2 =2=> j\nj -> END\nnode j allow GA302: late ones"
    )
    assert judged(text, Bounds(max_states=3)).result == "unknown"
    assert "GA900" not in codes(judged(text, Bounds(max_states=3)))
    assert codes(judged(text)) == ["GA900"]


def nested(inner_allow: tuple[str, ...], outer_allow: tuple[str, ...]) -> StateGraph:
    """A child graph in which 'm' runs twice, in a parent that has a node 'm' too. Both graphs have the same name."""
    child = StateGraph(Trail).add_node("s", says("s")).add_node("a", says("a")).add_node("b", says("b"))
    child.add_node("m", says("m"), allow=inner_allow).add_edge(START, "s").add_edge("s", "a").add_edge("s", "b")
    child.add_edge("a", "m").add_edge("b", "m").add_edge("m", END)
    parent = StateGraph(Trail).add_subgraph_node("inner", child.compile()).add_node("m", says("m"), allow=outer_allow)
    return parent.add_edge(START, "inner").add_edge("inner", "m").add_edge("m", END)


def test_an_allow_is_for_the_graph_of_its_node() -> None:
    """A node of the parent says nothing about the node of the same name in a child."""
    report = validate(nested((), (WANTED,)), facts=EAGER, rules=["GA302", "GA900"])
    assert sorted(codes(report)) == ["GA302", "GA900"]


def test_what_a_child_allows_is_in_the_report_of_the_parent() -> None:
    """Silenced in the child, and listed with the parent's."""
    report = validate(nested((WANTED,), ()), facts=EAGER, rules=["GA302", "GA900"])
    assert codes(report) == []
    assert [finding.code for finding in report.allowed] == ["GA302"]
