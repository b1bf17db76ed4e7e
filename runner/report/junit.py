"""A run as JUnit XML: a suite for the run, a case for each step."""

from __future__ import annotations

from xml.etree import ElementTree

from runner.check.junit import clean, say
from runner.report.values import Entry, RunReport


def junit(report: RunReport) -> str:
    """The document: a case for each step, and a last one that fails, or is skipped, as the run did or waits."""
    info = report.info
    root = ElementTree.Element("testsuites", name="graphagent report")
    name = clean(f"{info.graph or 'run'} {info.lineage}")
    suite = ElementTree.SubElement(root, "testsuite", name=name, time=f"{report.seconds:.3f}")
    for entry in report.entries:
        if entry.moment.source == "step":
            _case(suite, name, entry)
    case = ElementTree.SubElement(suite, "testcase", classname=name, name="the run ends", time="0")
    if info.status in ("failed", "stalled", "limit_reached"):
        say(case, "failure", f"{info.status}: {info.error or ''}", report.advice)
    elif info.status == "interrupted":
        say(case, "skipped", f"it waits for {', '.join(info.waits)}", report.advice)
    elif info.status in ("unfinished", "running"):
        say(case, "error", f"the run is {info.status}", report.advice)
    for tag, attribute in (("testcase", "tests"), ("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f".//{tag}"))))
        root.set(attribute, suite.get(attribute, "0"))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _case(suite: ElementTree.Element, name: str, entry: Entry) -> None:
    moment = entry.moment
    title = f"step {moment.step}: {', '.join(moment.ran)}"
    within = f"{name} {moment.namespace}".rstrip()
    took = f"{entry.took or 0:.3f}"
    ElementTree.SubElement(suite, "testcase", classname=clean(within), name=clean(title), time=took)
