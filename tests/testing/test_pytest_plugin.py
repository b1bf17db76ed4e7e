"""The pytest plugin on a scratch project: graphs and recorded runs as tests."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from support.graphs import flow

from graphagent import StateGraph
from graphagent.errors import UsageError
from graphagent.testing import assert_graph_ok
from graphagent.validation import Bounds, load_document
from graphagent.validation.notation import parse_notation

pytest_plugins = ["pytester"]

FLOWS = """
from pydantic import BaseModel
from graphagent import END, StateGraph

class State(BaseModel):
    n: int = 0

def step(state):
    return {"n": state.n + 1}

def made(name, target):
    graph = StateGraph(State, name=name).add_node("a", step).add_node("b", step).add_node("j", step)
    graph.set_entry_point("a").add_edge("j", END)
    return graph

good = made("good", "b").add_conditional_edges("a", lambda state: "b" if state.n < 5 else "j", ["b", "j"])
good = good.add_edge("b", "j")
bad = made("bad", "b").add_conditional_edges("a", lambda state: "b", ["b", END]).add_join_edge(["a", "b"], "j")
"""


_UNUSED = ("cacheprovider", "pytest_cov", "hypothesispytest", "anyio")


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with a module of graphs and a test of its own."""
    pytester.makepyfile(flows=FLOWS, test_own="def test_own(): pass")
    return pytester


def ini(project: pytest.Pytester, *lines: str) -> None:
    """The ini file of the project."""
    project.path.joinpath("pytest.ini").write_text("\n".join(["[pytest]", *lines]) + "\n")


def run(project: pytest.Pytester, *words: str) -> pytest.RunResult:
    """Pytest as a process of its own, so that nothing is imported before it starts; without plugins that cost time."""
    return project.runpytest_subprocess(*(word for name in _UNUSED for word in ("-p", f"no:{name}")), *words)


def record(project: pytest.Pytester, n: int = 0) -> None:
    """Export a run of `flows:good`."""
    code = "from runner.cli.main import main; main()"
    command = [sys.executable, "-c", code]
    db = ["--db", "sqlite:///runs.db"]
    for words in (
        ["run", "flows:good", "-l", f"r{n}", "-i", json.dumps({"n": n}), *db],
        ["export", f"r{n}", *db, "--graph", "flows:good", "-o", f"run{n}.json"],
    ):
        subprocess.run([*command, *words], cwd=project.path, check=True, capture_output=True)


def test_nothing_happens_without_an_option(project: pytest.Pytester) -> None:
    """No graph, no item, and nothing of graphagent beside the plugin is imported."""
    project.makepyfile(
        test_own="import sys\ndef test_own():\n"
        "    heavy = ('graphagent', 'runner', 'pydantic', 'networkx')\n"
        "    ours = {name for name in sys.modules if name.partition('.')[0] in heavy}\n"
        "    assert ours == {'runner', 'runner.pytest_plugin'}\n"
    )
    result = run(project, "-p", "no:anyio", "-v")
    result.assert_outcomes(passed=1)
    assert "graphagent::" not in result.stdout.str()


def test_each_graph_is_a_test_that_fails_with_the_report(project: pytest.Pytester) -> None:
    """A sound graph passes; a broken one fails with the finding, its trace and the mend, without a traceback."""
    ini(project, "graphagent_graphs =", "  flows:good", "  flows:bad")
    result = run(project, "-v")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["*collected 3 items*", "*graphagent::flows:good PASSED*", "*graphagent::flows:bad FAILED*"]
    )
    text = result.stdout.str()
    assert "GA301 error" in text
    assert "flows.py:" in text
    assert "fix: " in text
    assert "Traceback" not in text
    assert str(project.path) not in text.partition("= FAILURES =")[2]


def test_files_folders_and_documents_are_targets(project: pytest.Pytester) -> None:
    """As for `graphagent check`: several graphs in one place are one test."""
    project.path.joinpath("flow.json").write_text(json.dumps(parse_notation("a -> b; b -> END")))
    ini(project, "graphagent_graphs =", "  flow.json", "  flows.py", "  flows.py:good")
    run(project).assert_outcomes(passed=3, failed=1)


def test_a_target_that_is_not_there_fails(project: pytest.Pytester) -> None:
    """It is never left out in silence."""
    ini(project, "graphagent_graphs =", "  flows:goood", "  nowhere:graph")
    result = run(project)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*did you mean 'good'*", "*no module 'nowhere'*"])


@pytest.mark.parametrize(("fail_on", "failed"), [("error", 0), ("warning", 1), ("info", 1)])
def test_what_severity_fails_can_be_said(project: pytest.Pytester, fail_on: str, failed: int) -> None:
    """`graphagent_fail_on`; two nodes that lead to each other in either order are a warning."""
    doc = parse_notation("s ? a | b; a -> b; b ? a | END; limit laps a 3")
    project.path.joinpath("flow.json").write_text(json.dumps(doc))
    ini(project, "graphagent_graphs = flow.json", f"graphagent_fail_on = {fail_on}")
    run(project, "-k", "flow").assert_outcomes(passed=1 - failed, failed=failed, deselected=1)


def test_an_unknown_severity_is_told(project: pytest.Pytester) -> None:
    """With those that there are."""
    ini(project, "graphagent_graphs = flows:good", "graphagent_fail_on = errors")
    result = run(project, "-k", "flows")
    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(["*graphagent_fail_on is 'errors'*did you mean 'error'*"])


def test_the_settings_of_check_hold(project: pytest.Pytester) -> None:
    """[tool.graphagent.check] of pyproject.toml: rules that are ignored there are ignored here."""
    project.path.joinpath("pyproject.toml").write_text(
        '[tool.pytest.ini_options]\ngraphagent_graphs = ["flows:bad"]\n'
        '[tool.graphagent.check]\nignore = ["GA1", "GA2", "GA3"]\n'
    )
    run(project).assert_outcomes(passed=2)


def test_an_undecided_graph_fails(project: pytest.Pytester) -> None:
    """A bound that was hit is no success, unless that is allowed."""
    doc = parse_notation("s -> a, b; a ? a | x; b ? b | y; x & y =active=> j; j -> END; node x; node y")
    project.path.joinpath("flow.json").write_text(json.dumps(doc))
    table = '[tool.pytest.ini_options]\ngraphagent_graphs = ["flow.json"]\n[tool.graphagent.check]\nmax_states = 2\n'
    project.path.joinpath("pyproject.toml").write_text(table)
    run(project).assert_outcomes(passed=1, failed=1)
    project.path.joinpath("pyproject.toml").write_text(table + "allow_unknown = true\n")
    run(project).assert_outcomes(passed=2)


def test_graphs_can_be_chosen(project: pytest.Pytester) -> None:
    """By id, by -k, by --deselect; not with single files, and with folders."""
    ini(project, "graphagent_graphs =", "  flows:good", "  flows:bad", "  flows.py:good")
    run(project, "graphagent::flows:good").assert_outcomes(passed=1)
    run(project, "graphagent::flows.py:good").assert_outcomes(passed=1)
    run(project, "graphagent::flows::py:good").assert_outcomes(passed=1)
    run(project, "graphagent::flows:good", "test_own.py").assert_outcomes(passed=2)
    run(project, "-k", "good").assert_outcomes(passed=2, deselected=2)
    run(project, "--deselect", "graphagent::flows:bad").assert_outcomes(passed=3, deselected=1)
    run(project, "test_own.py").assert_outcomes(passed=1)
    run(project, "test_own.py::test_own").assert_outcomes(passed=1)
    run(project, ".").assert_outcomes(passed=3, failed=1)
    result = run(project, "graphagent::flows:ugly")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*'graphagent::flows:ugly' is none of*known: 'flows:good', 'flows:bad', 'flows.py:good'*"]
    )


def test_the_plugin_can_be_left_out(project: pytest.Pytester) -> None:
    """`-p no:graphagent` runs the other tests; pytest then knows nothing of the options."""
    ini(project, "graphagent_graphs = flows:bad")
    result = run(project, "-p", "no:graphagent")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*graphagent::*")


def test_workers_and_reports_know_the_items(project: pytest.Pytester) -> None:
    """With pytest-xdist, and in a JUnit file."""
    ini(project, "graphagent_graphs =", "  flows:good", "  flows:bad")
    run(project, "-n", "2", "--junitxml", "junit.xml").assert_outcomes(passed=2, failed=1)
    cases = ET.parse(project.path / "junit.xml").getroot().iter("testcase")
    failed = {case.get("name"): case.find("failure") is not None for case in cases}
    assert failed == {"flows:good": False, "flows:bad": True, "test_own": False}
    run(project, "-n", "2", "graphagent::flows:good").assert_outcomes(passed=1)


def test_recorded_runs_are_tests(project: pytest.Pytester) -> None:
    """They pass while the graph goes their way, and fail with the first divergence."""
    record(project)
    ini(project, "graphagent_runs = run*.json")
    result = run(project, "-v", "-rP")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*graphagent::run0::json PASSED*", "*3 step(s) of 'r0' checked: no divergence*"])

    project.makepyfile(flows=FLOWS.replace("state.n < 5", "state.n < 0"))
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*diverges at r0:1: after a the run stood at*this graph goes to*"])


def test_a_pattern_without_files_fails(project: pytest.Pytester) -> None:
    """And so does a file that is no run."""
    project.path.joinpath("broken.json").write_text("{}")
    ini(project, "graphagent_runs =", "  none*.json", "  broken.json")
    result = run(project)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        ["*names 'none[*].json', and no file is there*", "*'broken.json' is not an exported run*"]
    )


def test_a_graph_is_asserted() -> None:
    """`assert_graph_ok` passes a sound graph, and says what is wrong with another."""
    assert assert_graph_ok(flow("START -> a -> END")).result == "clean"
    bad = load_document(parse_notation("r ? a | b; a & b => j; j -> END")).builder
    with pytest.raises(AssertionError, match=r"GA301 error.*\n(.*\n)*  trace: r=a; a\n  fix: "):
        assert_graph_ok(bad)
    assert_graph_ok(bad, ignore=["GA1", "GA2", "GA3"])
    with pytest.raises(UsageError):
        assert_graph_ok(bad, ignore=["GA999"])


def test_an_undecided_graph_is_not_asserted() -> None:
    """A bound that was hit, or a definition whose errors are ignored, is no success."""
    wide = parse_notation("s -> a, b; a ? a | x; b ? b | y; x & y =active=> j; j -> END; node x; node y")
    with pytest.raises(AssertionError, match="was not decided"):
        assert_graph_ok(load_document(wide).builder, bounds=Bounds(max_states=2))
    broken = StateGraph(flow("START -> a").schema.state).add_node("a", lambda state: {}).add_edge("a", "nowhere")
    with pytest.raises(AssertionError, match="GA0"):
        assert_graph_ok(broken)
    with pytest.raises(AssertionError, match="errors of its definition are ignored"):
        assert_graph_ok(broken, ignore=["GA0"])
