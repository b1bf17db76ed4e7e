"""`graphagent check`: what a target may be, what the configuration says, and the exit status."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_help import Call, Done
from support.modules import forget_modules

from graphagent.validation.lock import lock_text
from graphagent.validation.notation import parse_notation
from runner.cli.target import load_module

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
CASES = sorted((SHARED / "validator_cases").glob("*.json"))

HEAD = """
from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel

from graphagent import END, Executor, Limits, MemoryCheckpoints, RetryPolicy, StateGraph, append


class State(BaseModel):
    log: Annotated[list[str], append] = []


def note(state: State) -> dict[str, Any]:
    return {"log": ["ran"]}


def pick(state: State) -> Literal["left", "right"]:
    return "left"

"""
GOOD = """
good = StateGraph(State, name="good").add_node("a", note, writes=["log"]).set_entry_point("a").set_finish_point("a")
"""
STARVED = """
starved = StateGraph(State, name="starved").add_node("a", note).add_node("left", note).add_node("right", note)
starved.set_entry_point("a").add_conditional_edges("a", pick)
starved.add_node("meet", note).add_join_edge(["left", "right"], "meet").set_finish_point("meet")
"""
WRONG = """
wrong = StateGraph(State, name="wrong").add_node("a", note).set_entry_point("a").add_edge("a", "bb").compile()
"""


@pytest.fixture(autouse=True)
def _alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    yield
    forget_modules(folder)


def write(path: str, *parts: str) -> None:
    """A file below the current directory, its folders made."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(parts), "utf-8")


def document(path: str, notation: str) -> None:
    """A graph as JSON."""
    write(path, json.dumps(parse_notation(notation, Path(path).stem)))


def codes(done: Done) -> set[str]:
    """The codes of the findings in JSON output."""
    return {finding["code"] for finding in done.data["findings"]}


def sources(done: Done) -> list[str]:
    """The graphs that were checked, as other commands would name them."""
    return [graph["source"] for graph in done.data["graphs"]]


# -- targets ------------------------------------------------------------------------------------


def test_a_clean_graph(call: Call) -> None:
    """Nothing found is status 0 and says how that is known."""
    write("clean.py", HEAD, GOOD)
    done = call("check", "clean.py:good")

    assert done.code == 0
    assert "clean.py:good [good]: clean; proved by reduction" in done.out
    assert done.out.endswith("1 graph(s), no findings\n")


def test_a_graph_that_can_stall(call: Call) -> None:
    """A finding has its place, the trace, the drawing with the way marked, the mend and the command that shows it."""
    write("order.py", HEAD, STARVED)
    done = call("check", "order.py:starved")
    line = next(n for n, text in enumerate((HEAD + STARVED).splitlines(), 1) if "add_join_edge" in text)

    assert done.code == 1
    assert f"order.py:{line}:1: GA301 error [starved] join 'meet' can wait for ever for 'right'" in done.out
    assert "    step 0  a ? left  live: a\n    step 1  left      live: left\n" in done.out
    assert "      > left => meet   join\n      ? right => meet  join\n" in done.out
    assert "    fix: " in done.out
    assert "    reproduce: graphagent simulate order.py:starved --script 'a=left; left'\n" in done.out
    assert "\x1b" not in done.out


def test_a_file_with_several_graphs(call: Call) -> None:
    """A file stands for all its graphs: builders, compiled ones, executors, and functions that make one; each once."""
    write(
        "many.py",
        HEAD,
        GOOD,
        STARVED,
        "good_compiled = good.compile()\n",
        "runs = Executor(good_compiled, limits=Limits(max_steps=7))\n",
        "def made() -> StateGraph:\n"
        "    return StateGraph(State, name='made').add_node('a', note).set_entry_point('a')\n",
        "made_once = made().compile()\n",
        "def needs(one: int) -> StateGraph:\n    raise SystemExit('called')\n",
        "def other() -> dict[str, int]:\n    raise SystemExit('called')\n",
        "def alone(name: str = 'alone') -> Executor:\n"
        "    return Executor(StateGraph(State, name=name).add_node('a', note).set_entry_point('a').compile())\n",
    )
    done = call("check", "many.py", "--json", "--ignore", "GA5")

    assert done.code == 1
    assert sources(done) == ["many.py:runs", "many.py:made_once", "many.py:starved", "many.py:alone"]
    assert codes(done) == {"GA301", "GA202"}


def test_graphs_that_only_look_the_same_are_all_checked(call: Call) -> None:
    """Two graphs of one function, made by the same lines with other values, are two graphs."""
    write(
        "alike.py",
        HEAD,
        "def build(targets, mode):\n"
        "    made = StateGraph(State, name='alike').add_node('a', note).add_node('b', note).add_node('c', note)\n"
        "    made.set_entry_point('a').add_conditional_edges('a', lambda s: 'b', targets)\n"
        "    return made.add_node('j', note).add_join_edge(['b', 'c'], 'j', mode=mode).set_finish_point('j')\n"
        "first = build(['b', 'c'], 'active')\n"
        "second = build(['b', 'c'], 'all')\n"
        "again = build(['b', 'c'], 'active').compile()\n",
    )
    done = call("check", "alike.py", "--json")

    assert sources(done) == ["alike.py:again", "alike.py:second"]
    assert "GA301" in codes(done)


def test_modules_and_dotted_names(call: Call) -> None:
    """A module stands for all its graphs, `module:name` for one, also through an attribute."""
    write("heresay.py", HEAD, GOOD, STARVED, "class Box:\n    graph = good\n")

    assert sources(call("check", "heresay", "--json")) == ["heresay:good", "heresay:starved"]
    assert sources(call("check", "heresay:Box.graph", "--json")) == ["heresay:Box.graph"]


def test_what_an_executor_says_counts(call: Call) -> None:
    """An executor tells the engine, whether there is a store, the step limit and the default retry."""
    write(
        "exe.py",
        HEAD,
        "asks = StateGraph(State, name='asks').add_interrupt_node('ask', prompt='?').add_node('pay', note,"
        " effects=['pay'])\n"
        "asks.set_entry_point('ask').add_edge('ask', 'pay').set_finish_point('pay')\n"
        "bare = Executor(asks.compile(), engine='eager', limits=Limits(max_steps=1))\n"
        "stored = Executor(asks.compile(), MemoryCheckpoints())\n"
        "tries = Executor(asks.compile(), MemoryCheckpoints(), default_retry=RetryPolicy(max_attempts=2))\n",
    )
    found = {name: call("check", f"exe.py:{name}", "--json") for name in ("bare", "stored", "tries")}

    assert {name: done.data["graphs"][0]["engine"] for name, done in found.items()} == {
        "bare": "eager",
        "stored": "superstep",
        "tries": "superstep",
    }
    assert {"GA502", "GA601"} <= codes(found["bare"])
    assert codes(found["stored"]) & {"GA502", "GA505", "GA601"} == set()
    assert "GA505" in codes(found["tries"])


def test_a_folder_is_searched(call: Call) -> None:
    """A folder stands for the graphs in it; what speaks of no StateGraph, tests and hidden folders are not imported."""
    write("flows/one.py", HEAD, GOOD)
    write("flows/inner/two.py", HEAD, STARVED)
    document("flows/inner/three.json", "a -> b; b -> END")
    write("flows/script.py", "raise SystemExit('imported')\n")
    write("flows/test_one.py", "import StateGraph_of_nobody\n")
    write("flows/.hidden/four.py", "StateGraph = 1 / 0\n")
    write("flows/env/pyvenv.cfg", "")
    write("flows/env/five.py", "StateGraph = 1 / 0\n")
    write("flows/data.json", '{"nodes": [1, 2]}')
    write("flows/broken.json", '{"nodes": ')
    done = call("check", "flows", "--json")

    assert sources(done) == ["flows/one.py:good", "flows/inner/three.json", "flows/inner/two.py:starved"]
    assert done.data["errors"] == []


def test_folders_with_files_of_one_name(call: Call) -> None:
    """Each folder's graph gets its own neighbours, though they are called the same."""
    for name, target in (("left", "END"), ("right", "'bb'")):
        write(f"flows/{name}/settings.py", "from graphagent import END\n", f"TARGET = {target}\n")
        write(
            f"flows/{name}/graph.py",
            HEAD,
            "from settings import TARGET\n",
            f"graph = StateGraph(State, name='{name}').add_node('a', note).set_entry_point('a')\n",
            "graph.add_edge('a', TARGET)\n",
        )
    done = call("check", "flows", "--json")

    assert [(graph["name"], graph["result"]) for graph in done.data["graphs"]] == [
        ("left", "clean"),
        ("right", "findings"),
    ]


def test_a_file_of_a_package(call: Call) -> None:
    """A file inside a package may import its neighbours relatively, and is the same module as for its package."""
    write("packed/__init__.py", "")
    write("packed/states.py", HEAD)
    write("packed/graphs.py", "from .states import StateGraph, State, note\n", GOOD)
    write("packed/use.py", "from packed.graphs import good  # a StateGraph\n")

    assert sources(call("check", "packed/graphs.py", "--json")) == ["packed/graphs.py:good"]
    assert len(sources(call("check", "packed", "--json"))) == 1


def test_a_document(call: Call) -> None:
    """Canonical JSON is a target, as written by hand and as a graph writes it; findings name the file."""
    document("hand.json", "r ? a | b; a & b => j; j -> END")
    write("made.py", HEAD, STARVED)
    write("own.json", call("graph", "made.py:starved", "--format", "json").out)

    for path in ("hand.json", "own.json"):
        done = call("check", path, "--json")
        assert done.code == 1
        assert "GA301" in codes(done)
        assert {finding["location"]["file"] for finding in done.data["findings"]} == {path}


def test_a_graph_that_does_not_compile(call: Call) -> None:
    """A `compile()` that fails while a file is imported is a finding at its line, not a failed import."""
    write("flows/wrong.py", HEAD, WRONG)
    write("flows/good.py", HEAD, GOOD)
    line = next(n for n, text in enumerate((HEAD + WRONG).splitlines(), 1) if '"bb"' in text)
    done = call("check", "flows", "--json")

    assert done.code == 1
    assert [(f["code"], f["location"]) for f in done.data["findings"]] == [
        ("GA006", {"file": "flows/wrong.py", "line": line})
    ]
    assert "not looked at" in call("check", "flows").out


@pytest.mark.parametrize("select", [["--select", "GA3"], ["--ignore", "GA006"]])
def test_an_error_that_is_left_out_proves_nothing(call: Call, select: list[str]) -> None:
    """Where the definition has errors no other rule is judged; leaving them out makes the result unknown, not clean."""
    write("wrong.py", HEAD, WRONG)
    document("wrong.json", "a -> bb")

    for target in ("wrong.py", "wrong.json"):
        done = call("check", target, "--json", *select)
        assert (done.code, done.data["result"], done.data["findings"]) == (3, "unknown", [])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to check: name a target, or 'targets' in [tool.graphagent.check]"),
        (["nosuch.py"], "no file 'nosuch.py'"),
        (["nosuch"], "no module 'nosuch'"),
        (["nosuch.json"], "'nosuch.json' can't be read as the JSON of a graph"),
        (["empty"], "no graph is in 'empty'"),
        (["none.py"], "'none.py' has no graph"),
        (["none.py:x"], "'none.py:x' is 1, not a graph"),
        (["fine.py:goood"], "has no 'goood': did you mean 'good'?"),
        (["fails.py"], "importing 'fails.py' failed at "),
        (["raises.py"], "calling 'raises.py:make' failed: ValueError: no"),
        (["fine.py", "--select", "GA999"], "no rule 'GA999'"),
        (["fine.py", "--ignore", "XX"], "no rule 'XX'"),
        (["fine.py", "--json", "--format", "sarif"], "--json and --format sarif can't both be had"),
        (["fine.py", "--baseline", "nosuch.base"], "'nosuch.base' can't be read as a baseline"),
        (["fine.py", "--write-baseline"], "--write-baseline needs a file"),
        (["fine.py", "--output", "nosuch/report"], "'nosuch/report' can't be written"),
        (["fine.py", "--from", "langgraph"], "'fine.py' doesn't say which graph"),
        (["fine.py:good", "--from", "langgraph"], "is no LangGraph graph"),
    ],
)
def test_misuse(call: Call, words: list[str], message: str) -> None:
    """What can't be checked is status 2 with the mend, in text and in JSON."""
    Path("empty").mkdir()
    write("none.py", "x = 1\n")
    write("fine.py", HEAD, GOOD)
    write("fails.py", "1 / 0\n")
    write("raises.py", HEAD, "def make() -> StateGraph:\n    raise ValueError('no')\n")
    done = call("check", *words)

    assert done.code == 2
    assert message in done.out + done.err
    assert "Traceback" not in done.out + done.err
    if "--format" not in words:
        data = call("check", *words, "--format", "json").data
        assert message in (data["error"]["message"] if "error" in data else data["errors"][0]["message"])


def test_a_failed_import_hides_no_finding(call: Call) -> None:
    """One file that can't be imported is status 2; the findings in the others are reported all the same."""
    write("flows/fails.py", "import nosuchpackage  # for a StateGraph\n")
    write("flows/order.py", HEAD, STARVED)
    done = call("check", "flows", "--json")

    assert done.code == 2
    assert "nosuchpackage" in done.data["errors"][0]["message"]
    assert "GA301" in codes(done)
    assert "flows/fails.py: not checked: " in call("check", "flows").out


# -- what counts --------------------------------------------------------------------------------


def test_fail_on(call: Call) -> None:
    """--fail-on says which severity is bad enough; `never` reports only."""
    document("warns.json", "a -> b, c; b -> END")

    assert {level: call("check", "warns.json", "--fail-on", level).code for level in ("error", "never")} == {
        "error": 1,
        "never": 0,
    }
    document("warns.json", "a ? b | END; node b")
    assert {level: call("check", "warns.json", "--fail-on", level).code for level in ("error", "warning", "info")} == {
        "error": 0,
        "warning": 1,
        "info": 1,
    }
    assert call("check", "warns.json", "--json").data["result"] == "findings"


def test_select_and_ignore(call: Call) -> None:
    """Codes or their beginnings, with commas or repeated."""
    document("both.json", "r ? a | b; a & b => j; j -> END; node lost; lost -> END")

    assert codes(call("check", "both.json", "--json")) == {"GA101", "GA202", "GA301"}
    assert codes(call("check", "both.json", "--json", "--select", "GA1,GA301")) == {"GA101", "GA301"}
    assert codes(call("check", "both.json", "--json", "--select", "GA1", "--select", "GA301")) == {"GA101", "GA301"}
    assert codes(call("check", "both.json", "--json", "--ignore", "GA1, GA2")) == {"GA301"}


def test_engine(call: Call) -> None:
    """A node that two branches of one length lead to is right by timing in supersteps, and wrong with eager."""
    document("diamond.json", "s -> a, b; a -> m; b -> m; m -> END")
    found = {
        engine: call("check", "diamond.json", "--json", "--engine", engine) for engine in ("superstep", "eager", "both")
    }

    assert {engine: done.code for engine, done in found.items()} == {"superstep": 0, "eager": 1, "both": 1}
    assert "GA201" in codes(found["superstep"])
    assert "GA302" in codes(found["eager"])


def test_a_bound_that_is_hit(call: Call) -> None:
    """What the search could not finish is unknown: status 3, or 0 if that is allowed; findings win."""
    document("wide.json", "r * a | b | c; a & b & c =active=> j; j -> END")
    document("wrong.json", "a -> bb")
    document("again.json", "r * a | b | c; a & b & c =active=> j; j -> END; node lost; lost -> END")
    bound = ("--max-states", "1")
    done = call("check", "wide.json", "--json", *bound)

    assert (done.code, done.data["result"], codes(done)) == (3, "unknown", {"GA309"})
    assert call("check", "wide.json", *bound, "--fail-on", "info").code == 3
    assert call("check", "wide.json", *bound, "--allow-unknown").code == 0
    assert call("check", "wide.json", "again.json", *bound).code == 1
    assert call("check", "wide.json", "wrong.json", *bound).code == 1
    assert call("check", "wide.json", "--json").data["result"] == "clean"
    assert call("check", "wide.json", "--max-seconds", "0").code == 3


def test_a_baseline(call: Call) -> None:
    """Known findings are not reported again, new ones are, and those that are gone are counted."""
    document("old.json", "r ? a | b; a & b => j; j -> END")
    document("new.json", "a -> bb")
    wrote = call("check", "old.json", "--baseline", "known.json", "--write-baseline")
    again = call("check", "old.json", "--baseline", "known.json", "--json")
    more = call("check", "old.json", "new.json", "--baseline", "known.json", "--json")
    less = call("check", "new.json", "--baseline", "known.json", "--json")

    assert (wrote.code, wrote.out) == (0, "wrote known.json: 2 known finding(s)\n")
    assert (again.code, again.data["findings"], again.data["graphs"][0]["known"]) == (0, [], 2)
    assert (more.code, codes(more)) == (1, {"GA006"})
    assert less.data["gone"] == 2
    assert "2 known finding(s) gone" in call("check", "new.json", "--baseline", "known.json").out


def test_a_baseline_covers_as_many_as_it_lists(call: Call) -> None:
    """A second finding with the fingerprint of a known one is new; one whose message was reworded is not."""
    document("flow.json", "a -> END; node lost; lost -> END")
    call("check", "flow.json", "--baseline", "known.json", "--write-baseline")
    known = json.loads(Path("known.json").read_text("utf-8"))
    known["findings"][0]["message"] = "as said by an older version"
    write("known.json", json.dumps(known))
    document("two/flow.json", "a -> END; node lost; lost -> END")

    assert call("check", "flow.json", "--baseline", "known.json").code == 0
    assert call("check", "flow.json", "two/flow.json", "--baseline", "known.json").code == 1


def test_the_lock_file(call: Call) -> None:
    """With --locked a graph that is not as the lock file has it is a finding; without one the check is misuse."""
    write("flow.py", HEAD, GOOD)
    missing = call("check", "flow.py", "--locked")
    assert (missing.code, "there is no lock file 'graphs.lock.json'" in missing.err) == (2, True)

    module = load_module("flow.py")
    write("graphs.lock.json", lock_text([module.good.compile()]))
    write("own.json", lock_text([]))
    configured(targets=["flow.py"], ignore=["GA1"])
    changed = call("check", "--locked", "--lock-file", "own.json", "--json")

    assert call("check", "--locked").code == 0
    assert (changed.code, codes(changed)) == (1, {"GA719"})
    assert call("check", "--locked", "--lock-file", "own.json", "--ignore", "GA7").code == 0
    configured(targets=["flow.py"], lock_file="own.json")
    assert call("check").code == 0
    assert call("check", "--locked").code == 1


# -- configuration ------------------------------------------------------------------------------


def configured(**table: Any) -> None:
    """A pyproject.toml with the table."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    write("pyproject.toml", "[tool.graphagent.check]\n" + "\n".join(lines) + "\n")


def test_configuration(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table says what to check and how, from any folder below; its paths begin at its file."""
    write("flows/order.py", HEAD, STARVED)
    write("atroot.py", HEAD, GOOD)
    document("graphs/wide.json", "r * a | b; a & b =active=> j; j -> END; node lost; lost -> END")
    configured(
        targets=["flows", "graphs/wide.json", "atroot:good"],
        ignore=["GA2"],
        fail_on="never",
        engine="eager",
        max_states=1,
        baseline="known.json",
        allow_unknown=True,
    )
    assert call("check", "--write-baseline", "--ignore", "GA3,GA2").out == "wrote known.json: 1 known finding(s)\n"
    document("flows/late.json", "a -> END; node late; late -> END")
    Path("deep/deeper").mkdir(parents=True)
    monkeypatch.chdir("deep/deeper")
    done = call("check", "--json")

    assert sources(done) == [
        "../../flows/late.json",
        "../../flows/order.py:starved",
        "../../graphs/wide.json",
        "atroot:good",
    ]
    assert (done.code, codes(done)) == (0, {"GA101", "GA309"})
    assert {graph["engine"] for graph in done.data["graphs"]} == {"eager"}


def test_the_command_line_wins(call: Call) -> None:
    """What is said on the command line takes the place of what the table says."""
    document("flow.json", "r ? a | b; a & b => j; j -> END; node lost; lost -> END")
    document("other.json", "a -> END")
    configured(targets=["other.json"], select=["GA1"], ignore=["GA101"], fail_on="never", engine="eager", max_states=1)
    done = call("check", "flow.json", "--select", "GA3", "--ignore", "GA9", "--fail-on", "error", "--engine", "both",
                "--max-states", "100", "--json")  # fmt: skip

    assert (done.code, codes(done), sources(done)) == (1, {"GA301"}, ["flow.json"])
    assert done.data["graphs"][0]["engine"] == "both"


def test_c159_the_severity_of_a_rule_is_configurable(call: Call) -> None:
    """A dead end is a warning by itself, and an error where the project says so; an unknown rule there is misuse."""
    document("flow.json", "r ? a | b; a -> END; node b")
    assert call("check", "flow.json").code == 0
    table = "[tool.graphagent.check]\n[tool.graphagent.check.severity]\n"
    write("pyproject.toml", table + "GA103 = 'error'\nGA308 = 'info'\n")
    done = call("check", "flow.json", "--json")
    assert done.code == 1
    assert {(f["code"], f["severity"]) for f in done.data["findings"]} == {("GA103", "error"), ("GA308", "info")}
    write("pyproject.toml", table + "GA999 = 'error'\n")
    assert call("check", "flow.json").code == 2
    write("pyproject.toml", table + "GA103 = 'fatal'\n")
    assert "a table of codes and severities" in call("check", "flow.json").err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.graphagent.check]\ntarget = ['x']\n", "has the unknown key 'target': did you mean 'targets'?"),
        ("[tool.graphagent.check]\ntargets = 'x'\n", "'tool.graphagent.check.targets' in "),
        ("[tool.graphagent.check]\nmax_states = true\n", "it must be a whole number above 0"),
        ("[tool.graphagent.check]\nmax_states = 0\n", "it must be a whole number above 0"),
        ("[tool.graphagent.check]\nmax_seconds = -1\n", "it must be a number, 0 or more"),
        ("[tool.graphagent.check]\nallow_unknown = 1\n", "it must be true or false"),
        ("[tool.graphagent.check]\nfail_on = 'eror'\n", "which is unknown: did you mean 'error'?"),
        ("[tool.graphagent.check]\nengine = 'bsp'\n", "which is unknown: known: 'superstep', 'eager', 'both'"),
        ("[tool.graphagent]\ncheck = 3\n", "is 3, not a table"),
        ("[tool.graphagent\n", "can't be read"),
    ],
)
def test_a_table_that_can_not_be_meant(call: Call, text: str, message: str) -> None:
    """A table with a slip in it is misuse, not a check that does less than was asked for."""
    write("pyproject.toml", text)
    document("flow.json", "a -> END")
    done = call("check", "flow.json")

    assert done.code == 2
    assert message in done.err


# -- output -------------------------------------------------------------------------------------


def test_what_modules_print_is_no_report(call: Call) -> None:
    """Standard output is the report alone, whatever a module prints when it is imported."""
    for form in ("json", "sarif"):
        write(f"loud_{form}.py", HEAD, GOOD, "print('loud')\n")
        done = call("check", f"loud_{form}.py", "--format", form)
        assert "loud\n" in done.err
        assert json.loads(done.out)


def test_output_to_a_file(call: Call) -> None:
    """--output writes the report and leaves standard output empty."""
    write("order.py", HEAD, STARVED)
    done = call("check", "order.py", "--format", "json", "--output", "report.json")

    assert (done.code, done.out, done.err) == (1, "", "wrote report.json\n")
    assert json.loads(Path("report.json").read_text("utf-8"))["result"] == "findings"


def test_the_summary_of_a_job(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a GitHub workflow every check adds its table to the summary of the job."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    document("wrong.json", "a -> bb")
    done = call("check", "wrong.json", "--format", "github")
    call("check", "wrong.json", "--format", "github", "--ignore", "GA0")
    call("check", "wrong.json")
    summary = Path("summary.md").read_text("utf-8")

    assert done.out.startswith(
        "::error file=wrong.json,line=1,col=1,title=GA006::[wrong] an edge from 'a' leads to 'bb'"
    )
    assert summary.count("### graphagent check") == 2
    assert "| error | GA006 | wrong | wrong.json:1 | an edge" in summary


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit", "github"])
def test_no_path_of_the_machine(call: Call, folder: Path, form: str) -> None:
    """Files below the current directory are named from there, in places and in messages."""
    twins = "twins = StateGraph(State, name='twins').add_node('a', note).set_entry_point('a').add_node('A', note)\n"
    write("flows/order.py", HEAD, STARVED, twins)
    document("flows/one.json", "a -> bb")
    done = call("check", str(folder / "flows"), "--format", form)

    assert "flows/order.py" in done.out
    assert str(folder) not in done.out


def test_the_examples_are_clean(process: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example graphs have no error, and the command runs as it does in CI."""
    monkeypatch.chdir(ROOT)
    done = process("check", "examples/", "--json")

    assert done.code == 0, done.out
    assert done.data["counts"]["error"] == 0
    assert len(done.data["graphs"]) >= 1


@pytest.mark.skipif(not CASES, reason="the cases with known verdicts are not here")
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_known_verdicts(call: Call, path: Path) -> None:
    """Every finding that must be there is, none that must not be, and the worst severity is as known."""
    expected = json.loads(path.read_text("utf-8"))["expected"]
    done = call("check", str(path), "--engine", "eager", "--format", "json")
    found = done.data["findings"]

    for must in expected["must"]:
        assert any(f["code"] == must["code"] and set(must["at"]) <= set(f["at"]) for f in found), must
    assert not {f["code"] for f in found} & set(expected["must_not"])
    assert (done.data["graphs"][0]["worst"] or "clean") == expected["verdict"]
    assert done.code == (1 if expected["verdict"] == "error" else 0)


# -- graphs of LangGraph ------------------------------------------------------------------------

DRAWN = {
    "nodes": [
        {"id": "__start__", "type": "schema", "data": "State"},
        {"id": "agent", "type": "runnable", "data": {"id": ["x"], "name": "agent"}},
        {"id": "tools", "type": "runnable", "data": {"id": ["x"], "name": "tools"}},
        {"id": "__end__"},
    ],
    "edges": [
        {"source": "__start__", "target": "agent"},
        {"source": "agent", "target": "tools", "conditional": True},
        {"source": "agent", "target": "__end__", "conditional": True},
        {"source": "tools", "target": "agent"},
    ],
}


def test_graphs_of_langgraph(call: Call) -> None:
    """`--from langgraph` takes what `get_graph().to_json()` gives, in a file or from an object, and shows no command
    that could not run it."""
    write("agent.json", json.dumps(DRAWN))
    write(
        "theirs.py",
        f"DRAWN = {DRAWN!r}\n",
        "class Drawn:\n    edges = ()\n    def to_json(self):\n        return DRAWN\n",
        "class Compiled:\n    def get_graph(self, **more):\n        return Drawn()\n",
        "graph = Compiled()\n",
        "def make():\n    return graph\n",
        "def fails():\n    raise ValueError('no key')\n",
    )
    for target in ("agent.json", "theirs:graph", "theirs.py:graph", "theirs:make"):
        done = call("check", target, "--from", "langgraph", "--json")
        assert (done.code, sources(done), done.data["counts"]["error"]) == (0, [target], 0), target

    failed = call("check", "theirs:fails", "--from", "langgraph")
    assert failed.code == 2
    assert "making the graph 'theirs:fails' failed: ValueError: no key" in failed.out
