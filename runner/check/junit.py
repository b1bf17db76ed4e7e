"""A check as JUnit XML: a suite for each graph, a case for each group of rules and each `must_pass` policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from graphagent.validation import Diagnostic
from graphagent.validation.catalogue import families
from runner.check.judge import Checked, Outcome
from runner.check.text import counts, finding_text

_POLICY = "GA501"
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_report(outcome: Outcome) -> str:
    """The document. A case fails if one of its findings fails the check; milder ones are in its output."""
    root = ElementTree.Element("testsuites", name="graphagent check")
    for one in outcome.checked:
        _suite(root, one, outcome)
    if outcome.failures:
        suite = ElementTree.SubElement(root, "testsuite", name="targets")
        for failure in outcome.failures:
            case = ElementTree.SubElement(suite, "testcase", classname="targets", name=clean(failure.target))
            say(case, "error", "not checked", failure.message)
    for suite in root:
        _count(suite, suite)
    _count(root, root)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _suite(root: ElementTree.Element, one: Checked, outcome: Outcome) -> None:
    name = clean(one.candidate.target)
    suite = ElementTree.SubElement(root, "testsuite", name=name, time=f"{one.report.stats.seconds:.3f}")
    for title, findings in _cases(one):
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=clean(title), time="0")
        if findings and findings[0].where.file:
            case.set("file", clean(findings[0].where.file))
            case.set("line", str(findings[0].where.line))
        failing = [finding for finding in findings if outcome.fails(finding)]
        text = "\n\n".join(finding_text(finding, one, outcome) for finding in findings)
        if failing:
            head = f"{failing[0].code}: {failing[0].message}" if len(failing) == 1 else counts(failing)
            say(case, "failure", head, text)
        elif findings:
            ElementTree.SubElement(case, "system-out").text = clean(text)
    case = ElementTree.SubElement(suite, "testcase", classname=name, name="everything was decided", time="0")
    if not one.decided and not outcome.settings.allow_unknown:
        say(case, "error", "unknown: a bound was hit", "raise --max-states or --max-seconds, or say --allow-unknown")


def _cases(one: Checked) -> Iterator[tuple[str, list[Diagnostic]]]:
    """Title and findings of each case; a finding is in one case."""
    left = list(one.report.findings)
    graph = one.graph
    for node, through in graph.definition.must_pass if graph is not None else ():
        names = ", ".join(f"'{name}'" for name in through)
        mine = [f for f in left if f.code == _POLICY and f.graph == one.report.graph and f.at[:1] == (node,)]
        left = [finding for finding in left if finding not in mine]
        yield f"'{node}' is reached through {names} only", mine
    for family in families():
        codes = {rule.code for rule in family.rules}
        yield family.name, [finding for finding in left if finding.code in codes]
        left = [finding for finding in left if finding.code not in codes]
    if left:
        yield "other rules", left


def say(case: ElementTree.Element, kind: str, head: str, text: str) -> None:
    """Give a case a failure, an error, or why it was skipped."""
    said = ElementTree.SubElement(case, kind, message=clean(head), type=kind)
    said.text = clean(text)


def _count(element: ElementTree.Element, of: ElementTree.Element) -> None:
    for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        element.set(attribute, str(len(of.findall(f".//{tag}"))))


def clean(text: str) -> str:
    """The text without signs that XML has no way to say, which are escaped as Python does."""
    return _FORBIDDEN.sub(lambda sign: sign[0].encode("unicode_escape", "surrogatepass").decode(), text)
