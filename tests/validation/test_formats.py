"""The forms a check reports in: each is read back by what will read it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import junitparser
import pytest
from support.modules import forget_modules

from graphagent.errors import UsageError
from graphagent.validation import Bounds
from graphagent.validation.catalogue import catalogue
from graphagent.validation.notation import parse_notation
from graphagent.validation.report import ORDER
from runner.check.drawing import MOST as LINES
from runner.check.drawing import drawing
from runner.check.find import find
from runner.check.github import github_commands, github_summary
from runner.check.judge import Outcome, judge
from runner.check.places import repository
from runner.check.settings import Settings
from runner.check.text import painted, text_report
from runner.cli.check import report
from runner.cli.options import ReportFormat

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "tests/support/sarif_schema.json").read_text("utf-8"))

FLOW = """
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from graphagent import StateGraph, append


class State(BaseModel):
    log: Annotated[list[str], append] = []


def note(state: State) -> dict[str, Any]:
    return {"log": ["ran"]}


def pick(state: State) -> Literal["left", "right"]:
    return "left"


inner = (
    StateGraph(State, name="inner")
    .add_node("a", note)
    .add_node("left", note)
    .add_node("right", note)
    .set_entry_point("a")
    .add_conditional_edges("a", pick)
    .add_node("50%, a|b: <x>", note)
    .add_join_edge(["left", "right"], "50%, a|b: <x>")
    .set_finish_point("50%, a|b: <x>")
    .compile()
)
order = StateGraph(State, name="order").add_subgraph_node("child", inner).set_entry_point("child")
order.set_finish_point("child").add_node("ask", note).add_edge("ask", "child")
order.must_pass("child", through=["ask"])
allowed = StateGraph(State, name="allowed").add_node("a", note, allow=["GA101: made for later"])
allowed.add_node("b", note, allow=["GA101: made for later"]).set_entry_point("a").set_finish_point("a")
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current directory, deep in a repository."""
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "app with space"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield folder
    forget_modules(tmp_path)


def checked(*targets: str, base: Path | None = None, **settings: Any) -> Outcome:
    """What a check of these targets comes to."""
    chosen = Settings(targets, **settings)
    found = find(targets)
    base = base or Path.cwd()
    return Outcome(judge(found.candidates, chosen, base, lambda text: None), found.failures, chosen, base)


def document(name: str, notation: str) -> str:
    """A graph as JSON; the file's name."""
    Path(name).write_text(json.dumps(parse_notation(notation, Path(name).stem)), "utf-8")
    return name


def everything() -> list[str]:
    """Targets with findings of all severities, a trace in a child graph, a broken file and an unknown result."""
    Path("order.py").write_text(FLOW, "utf-8")
    Path("broken.py").write_text("1 / 0\n", "utf-8")
    return [
        "order.py",
        "broken.py",
        document("wrong.json", "a -> bb"),
        document("info.json", "a -> b; a & b => c; a => b; c -> END"),
        document("warns.json", "a ? b | END; node b"),
        document("clean.json", "a -> END"),
    ]


# -- SARIF --------------------------------------------------------------------------------------


def sarif(outcome: Outcome) -> dict[str, Any]:
    """The log of an outcome, which follows the schema."""
    log: dict[str, Any] = json.loads(report(outcome, ReportFormat.sarif))
    jsonschema.Draft7Validator(SCHEMA).validate(log)
    return log


def test_sarif_follows_the_schema(here: Path) -> None:
    """A log with everything in it follows the schema: rules by index, levels, and the exit status."""
    outcome = checked(*everything())
    run = sarif(outcome)["runs"][0]
    rules = run["tool"]["driver"]["rules"]

    assert [rule["id"] for rule in rules] == list(catalogue())
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert {result["level"] for result in run["results"]} == {"error", "warning", "note"}
    assert len(run["results"]) == len(outcome.findings) + 1
    assert run["invocations"][0]["executionSuccessful"] is False
    assert run["invocations"][0]["exitCode"] == 2
    assert "ZeroDivisionError" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_sarif_points_at_the_call(here: Path) -> None:
    """A result is at the call that made what it speaks of, its file named from the root of the repository."""
    Path("order.py").write_text(FLOW, "utf-8")
    results = sarif(checked("order.py:inner", base=repository(here)))["runs"][0]["results"]
    starved = next(result for result in results if result["ruleId"] == "GA301")
    place = starved["locations"][0]["physicalLocation"]
    line = FLOW.splitlines()[place["region"]["startLine"] - 1]

    assert place["artifactLocation"] == {"uri": "app%20with%20space/order.py", "uriBaseId": "SRCROOT"}
    assert unquote(place["artifactLocation"]["uri"]) == "app with space/order.py"
    assert line.strip().startswith(".add_join_edge(")
    assert line[place["region"]["startColumn"] - 1 :].startswith(".add_join_edge(")
    assert starved["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "inner/50%, a|b: <x>"


def test_sarif_has_the_trace(here: Path) -> None:
    """The trace is a code flow: a location a step, at the call that added the node; the last says what is wrong."""
    Path("order.py").write_text(FLOW, "utf-8")
    results = sarif(checked("order.py:order"))["runs"][0]["results"]
    starved = next(result for result in results if result["ruleId"] == "GA301")
    flow = starved["codeFlows"][0]["threadFlows"][0]["locations"]
    lines = [step["location"]["physicalLocation"]["region"]["startLine"] for step in flow]

    assert [step["location"]["message"]["text"] for step in flow[:2]] == ["step 0: a=left", "step 1: left"]
    assert [FLOW.splitlines()[n - 1].strip() for n in lines[:2]] == ['.add_node("a", note)', '.add_node("left", note)']
    assert [step["executionOrder"] for step in flow] == [1, 2, 3]
    assert "waits for 'right'" in flow[-1]["location"]["message"]["text"]


def test_sarif_fingerprints_stay(here: Path) -> None:
    """A result keeps its fingerprint when its line moves."""
    Path("order.py").write_text(FLOW, "utf-8")
    Path("moved.py").write_text("\n\n\n" + FLOW, "utf-8")
    before, after = (
        {
            (result["ruleId"], result["partialFingerprints"]["graphagent/v1"])
            for result in sarif(checked(name))["runs"][0]["results"]
        }
        for name in ("order.py", "moved.py")
    )

    assert before == after


def test_sarif_tells_what_is_allowed(here: Path) -> None:
    """A finding that a node allows is a result with a suppression."""
    Path("order.py").write_text(FLOW, "utf-8")
    results = sarif(checked("order.py:allowed"))["runs"][0]["results"]

    assert [(result["ruleId"], result.get("suppressions")) for result in results if result["ruleId"] == "GA101"] == [
        ("GA101", [{"kind": "inSource"}])
    ]


def test_sarif_of_the_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of the examples follows the schema and has no error."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", list(sys.path))
    run = sarif(checked("examples/", base=ROOT))["runs"][0]

    assert not [result for result in run["results"] if result["level"] == "error"]
    assert run["invocations"][0]["exitCode"] == 0


# -- JUnit --------------------------------------------------------------------------------------


def test_junit_is_read_back(here: Path) -> None:
    """A reader of JUnit finds a suite a graph, a failed case for what fails the check, and an error for a broken
    target."""
    text = report(checked(*everything()), ReportFormat.junit)
    Path("report.xml").write_text(text, "utf-8")
    read = junitparser.JUnitXml.fromfile("report.xml")
    suites = {suite.name: suite for suite in read}

    assert list(suites)[-1] == "targets"
    assert {"order.py:inner", "order.py:order", "wrong.json", "warns.json", "clean.json"} <= set(suites)
    assert (suites["clean.json"].failures, suites["clean.json"].errors) == (0, 0)
    assert (suites["warns.json"].failures, suites["wrong.json"].failures, suites["targets"].errors) == (0, 1, 1)
    assert read.tests == sum(suite.tests for suite in read) == sum(1 for suite in read for case in suite)
    failed = next(case for case in suites["order.py:inner"] if case.result)
    assert (failed.name, failed.result[0].type) == ("behaviour", "failure")
    assert "GA301" in failed.result[0].message
    assert "step 0  a ? left" in failed.result[0].text
    assert any("GA103" in (case.system_out or "") for case in suites["warns.json"])


def test_junit_has_a_case_for_each_policy(here: Path) -> None:
    """A `must_pass` policy is a case of its own, which fails if it is violated."""
    Path("order.py").write_text(FLOW, "utf-8")
    read = junitparser.JUnitXml.fromstring(report(checked("order.py:order"), ReportFormat.junit))
    case = next(case for suite in read for case in suite if case.name == "'child' is reached through 'ask' only")

    assert case.result[0].message.startswith("GA501: ")


def test_junit_takes_every_sign(here: Path) -> None:
    """Signs that XML can't hold are escaped, so that the report can be read whatever a node is called."""
    content = parse_notation("a -> b", "odd")
    content["edges"] = [["a", "b\x00\x1b]]>\ufffe&<"]]
    Path("odd.json").write_text(json.dumps(content), "utf-8")
    read = junitparser.JUnitXml.fromstring(report(checked("odd.json"), ReportFormat.junit))

    assert "b\\x00\\x1b]]>\\ufffe&<" in next(case for suite in read for case in suite if case.result).result[0].message


def test_junit_tells_what_is_unknown(here: Path) -> None:
    """A bound that was hit is an error of a case, unless that is allowed."""
    wide = document("wide.json", "r * a | b | c; a & b & c =active=> j; j -> END")
    bounds = Bounds(max_states=1)
    errors = [
        junitparser.JUnitXml.fromstring(
            report(checked(wide, bounds=bounds, allow_unknown=allow), ReportFormat.junit)
        ).errors
        for allow in (False, True)
    ]

    assert errors == [1, 0]


# -- GitHub -------------------------------------------------------------------------------------

COMMAND = re.compile(r"::(?P<name>error|warning|notice) (?P<properties>[^:]*(?:%3A[^:]*)*)::(?P<message>.*)")


def parsed(line: str) -> tuple[str, dict[str, str], str]:
    """A line of a workflow as the runner of GitHub takes it: command, properties, message."""
    found = COMMAND.fullmatch(line)
    assert found is not None, line
    properties = dict(item.split("=", 1) for item in found["properties"].split(","))

    def plain(text: str, *more: tuple[str, str]) -> str:
        for code, sign in (*more, ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
            text = text.replace(code, sign)
        return text

    escapes = (("%3A", ":"), ("%2C", ","))
    return found["name"], {key: plain(text, *escapes) for key, text in properties.items()}, plain(found["message"])


def test_every_command_is_parsed_back(here: Path) -> None:
    """File, line, title and message of every finding come out of its line as they went in, worst first."""
    targets = everything()
    (here / "a, b: 100%.py").write_text(FLOW.replace('"inner"', '"odd"').replace('"order"', '"odd 2"'), "utf-8")
    outcome = checked(*targets, "a, b: 100%.py", base=repository(here))
    lines = github_commands(outcome).splitlines()
    found = [parsed(line) for line in lines[:-1]]
    shown = [item for item in found if item[1]["title"] != "not checked"]
    names = {"error": "error", "warning": "warning", "info": "notice"}

    assert sorted((name, p.get("file", ""), p.get("line", ""), p["title"]) for name, p, _ in shown) == sorted(
        (names[f.severity], f.where.file, str(f.where.line) if f.where.file else "", f.code) for f in outcome.findings
    )
    assert {message.splitlines()[0] for _, _, message in shown} == {
        f"[{f.graph}] {f.message}" for f in outcome.findings
    }
    assert [name for name, _, _ in found] == sorted((name for name, _, _ in found), key=list(names.values()).index)
    assert any(p.get("file") == "app with space/a, b: 100%.py" for _, p, _ in found)
    assert all("\n" not in line for line in lines)
    assert found[0][1] == {"title": "not checked"}
    assert lines[-1] == (
        f"graphagent check: {len(outcome.checked)} graph(s), {outcome.count('error')} errors, "
        f"{outcome.count('warning')} warnings, {outcome.count('info')} info, 1 target(s) not checked"
    )


def test_at_most_ten_of_a_kind(here: Path) -> None:
    """GitHub shows ten errors and ten warnings of a step; the last line says how many more there are."""
    names = [f"n{i}" for i in range(25)]
    lost = document("lost.json", "a -> END; " + "; ".join(f"node {name}; {name} -> END" for name in names))
    lines = github_commands(checked(lost)).splitlines()

    assert [parsed(line)[0] for line in lines[:-1]] == ["error"] * 10
    assert lines[-1] == "graphagent check: 1 graph(s), 25 errors, 15 of them not shown above"


def test_summary_of_the_job(here: Path) -> None:
    """The table has a row of five cells for every finding, whatever is in its text."""
    outcome = checked(*everything())
    table = [line for line in github_summary(outcome).splitlines() if line.startswith("|")]
    cells = [re.split(r"(?<!\\)\|", line) for line in table]

    assert len(table) == 2 + len(outcome.findings) + len(outcome.failures)
    assert {len(row) for row in cells} == {7}
    assert (
        github_summary(checked("clean.json")) == "### graphagent check\n\ngraphagent check: 1 graph(s), no findings\n"
    )


# -- JSON and text ------------------------------------------------------------------------------


def test_json(here: Path) -> None:
    """The document says what was found, in which graphs, and how that is known."""
    outcome = checked(*everything())
    data = json.loads(report(outcome, ReportFormat.json))

    assert (data["schema"], data["result"], data["exit"]) == (1, "findings", 2)
    assert data["counts"] == {level: outcome.count(level) for level in ("error", "warning", "info")}
    assert [ORDER[f["severity"]] for f in data["findings"]] == sorted(
        (ORDER[f["severity"]] for f in data["findings"]), reverse=True
    )
    by_source = {graph["source"]: graph for graph in data["graphs"]}
    assert by_source["clean.json"]["result"] == "clean"
    assert by_source["clean.json"]["stats"]["decided_by"] == "reduction"
    assert by_source["order.py:inner"]["stats"]["states"] > 0
    assert by_source["order.py:inner"]["fingerprint"]
    assert [error["target"] for error in data["errors"]] == ["broken.py"]
    trace = next(f for f in data["findings"] if f["code"] == "GA301" and f["graph"] == "inner")["trace"]
    assert trace[0]["node"] == "a"


def test_nothing_but_a_failure_is_unknown(here: Path) -> None:
    """Where no target could be looked at the result is not clean."""
    Path("broken.py").write_text("1 / 0\n", "utf-8")
    data = json.loads(report(checked("broken.py"), ReportFormat.json))

    assert (data["result"], data["exit"], data["findings"]) == ("unknown", 2, [])


def test_text_shows_the_way_in_a_child_graph(here: Path) -> None:
    """A finding in a child graph shows the child's drawing, and no command that would run the parent."""
    Path("order.py").write_text(FLOW, "utf-8")
    paragraphs = text_report(checked("order.py:order")).split("\n\n")
    starved = next(text for text in paragraphs if "GA301" in text)

    assert "[inner] join '50%, a|b: <x>' can wait for ever for 'right'" in starved
    assert "? right => 50%, a|b: <x>  join" in starved
    assert "reproduce:" not in starved


def test_text_in_colours(here: Path) -> None:
    """On a terminal the same text has colours, nothing else."""
    outcome = checked(*everything())
    coloured = text_report(outcome, painted)

    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == text_report(outcome)


def test_a_large_drawing_is_cut(here: Path) -> None:
    """Of a large graph only what touches the way is drawn, and the rest is counted."""
    rest = "; ".join(f"x{i} -> x{i + 1}" for i in range(60))
    large = document("large.json", f"r ? a | b | x0; a & b => j; j -> END; {rest}; x60 -> END; node x60")
    graph = checked(large).checked[0].graph
    assert graph is not None
    finding = next(f for f in checked(large).findings if f.code == "GA301")
    drawn = drawing(graph, finding.trace)

    assert len(drawn) <= LINES + 1
    assert drawn[0].text.startswith("> START -> r")
    assert drawn[-1].text.endswith("more line(s)")
    assert {line.mark for line in drawn} == {"taken", "missing", ""}


def test_unknown_codes_are_refused(here: Path) -> None:
    """A slip in a code is misuse also where only uncompiled graphs are checked."""
    Path("order.py").write_text(FLOW.replace('add_conditional_edges("a"', 'add_conditional_edges("aa"'), "utf-8")

    assert {f.code for f in checked("order.py").findings} == {"GA005"}
    with pytest.raises(UsageError, match="no rule 'GA999'"):
        checked("order.py", select=("GA999",))
