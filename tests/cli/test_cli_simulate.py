"""Commands on what a graph does or has done: simulate, export, replay of a file, cover."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_help import Call, graph

from graphagent.validation.catalogue import catalogue
from graphagent.validation.notation import parse_notation

DB = ("--db", "sqlite:///runs.db")


@pytest.fixture
def stored(call: Call) -> None:
    """A store with two finished runs of one graph, and one of another graph."""
    for name, answer in (("o1", "yes"), ("o2", "yes")):
        done = call("run", graph("approval"), "-i", '{"text": "hi"}', "-l", name, *DB, "-a", f"approve={answer}")
        assert done.code == 0
    assert call("run", graph("plain"), "-l", "p1", *DB).code == 0


def test_random_walks_are_told_and_repeated(call: Call) -> None:
    """How the walks ended and what they covered, as text and as data; the same for the same seed."""
    done = call("simulate", graph("approval"), "--runs", "40", "--seed", "5")
    assert done.code == 0
    assert done.out.splitlines() == [
        "40 walk(s) with seed 5, superstep engine, 120 activation(s): 40 completed",
        "approval: 100.0 % (nodes 4/4, edges 6/6, labels 2/2)",
    ]
    one, two = (call("simulate", graph("approval"), "--runs", "40", "--seed", "5", "--json").data for _ in range(2))
    assert one == two
    assert one["ended"] == {"completed": 40}
    assert one["coverage"]["labels"][0]["label"] == "yes"


def test_a_stalled_walk_fails_and_comes_with_its_script(call: Call) -> None:
    """Status 4, and the command that shows it, which ends like that in the real executor."""
    done = call("simulate", graph("starved"), "-n", "10", "--json")
    assert (done.code, done.data["ended"]) == (4, {"stalled at 'meet'": 10})
    script = done.data["examples"]["stalled at 'meet'"]
    text = call("simulate", graph("starved"), "-n", "10").out
    assert f"--engine superstep --script '{script}'" in text
    shown = call("simulate", graph("starved"), "--script", script)
    assert shown.code == 4
    assert shown.out.splitlines()[-1].startswith("stalled: join 'meet'")


def test_a_script_is_shown_step_by_step(call: Call) -> None:
    """What ran and chose what, what could run then, how it ended; like `run`, status 0 for a completed one."""
    done = call("simulate", graph("approval"), "--script", "read; approve=no; refuse")
    assert (done.code, done.out.splitlines()) == (
        0,
        [
            "step 0  read          live: read",
            "step 1  approve ? no  live: approve",
            "step 2  refuse        live: refuse",
            "completed",
        ],
    )
    data = call("simulate", graph("approval"), "--script", "read; approve=no", "--json")
    assert (data.code, data.data["status"]) == (4, "unfinished")
    assert data.data["reason"] == "the script is over before the run; 'refuse' would be next"
    assert [step["node"] for step in data.data["steps"]] == ["read", "approve"]


@pytest.mark.parametrize("engine", ["eager", "superstep"])
def test_either_engine_follows_a_script(call: Call, engine: str) -> None:
    """Supersteps take several picks as one step."""
    script = "read; approve=yes; write"
    data = call("simulate", graph("approval"), "--script", script, "--engine", engine, "--json").data
    assert (data["status"], data["engine"], len(data["steps"])) == ("completed", engine, 3)


@pytest.mark.parametrize("code", ["GA301", "GA302", "GA308"])
def test_the_trace_of_a_finding_can_be_run(call: Call, code: str) -> None:
    """A document is a target too: the script that check prints is what simulate takes."""
    Path("flow.json").write_text(json.dumps(parse_notation(catalogue()[code].fails)))
    checked = call("check", "flow.json", "--engine", "eager", "--json")
    finding = next(finding for finding in checked.data["findings"] if finding["code"] == code)
    done = call("simulate", "flow.json", "--script", finding["script"], "--json")
    stalls = code in ("GA301", "GA308")
    assert (done.code, done.data["status"]) == ((4, "stalled") if stalls else (0, "completed"))
    assert [step["node"] for step in done.data["steps"]] == [step["node"] for step in finding["trace"] if step["node"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing.json",), "can't be read"),
        ((graph("approval"), "--script", "rread"), "did you mean 'read'?"),
        ((graph("approval"), "--script", "read; approve"), "write 'approve=yes'"),
        ((graph("approval"), "--script", "write"), "not due there"),
        ((graph("number"),), "not a graph"),
        ((graph("").rstrip(":"),), "graphs: name one of"),
    ],
)
def test_misuse_is_told(call: Call, words: tuple[str, ...], said: str) -> None:
    """Status 2 and what would be right, before anything runs."""
    done = call("simulate", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_an_exported_run_replays_offline(call: Call, stored: None) -> None:
    """The file names its graph; without the store it is gone through to the end."""
    done = call("export", "o1", *DB, "--graph", graph("approval"), "-o", "run.json")
    assert (done.code, done.out) == (0, "wrote run.json: 7 row(s) of 'o1'\n")
    Path("runs.db").unlink()
    done = call("replay", "run.json")
    assert (done.code, done.out) == (0, "3 step(s) checked: no divergence\n")
    content = json.loads(Path("run.json").read_text())
    assert (content["lineage"], content["target"]) == ("o1", graph("approval"))
    answered = [row["questions"][0]["answer"] for row in content["frames"][""]["rows"] if row.get("questions")]
    assert answered[-1] == "yes"


def test_a_replay_of_a_file_names_the_first_divergence(call: Call, stored: None) -> None:
    """Status 1, the checkpoint, where the run stood and where this graph goes."""
    call("export", "o1", *DB, "--graph", graph("approval"), "-o", "run.json")
    text = Path(graph("").rstrip(":")).read_text()
    Path("other.py").write_text(text.replace("lambda state: state.approve,", 'lambda state: "no",'))
    done = call("replay", "run.json", "--graph", "other.py:approval", "--json")
    assert (done.code, done.data["ok"], done.data["steps"]) == (1, False, 1)
    assert done.data["divergence"]["nodes"] == ["approve"]
    assert "this graph goes to {'f': [['refuse']]}" in done.data["divergence"]["message"]


def test_an_export_goes_to_standard_output_too(call: Call, stored: None) -> None:
    """Where no file is named; it is one JSON document."""
    assert call("export", "o1", *DB, "--graph", graph("approval")).data["lineage"] == "o1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export", "o9", *DB, "--graph", graph("approval")), "no lineage 'o9'"),
        (("export", "o1", *DB), "give --graph module:name"),
        (("cover", graph("approval")), "no run is named"),
        (("cover", graph("approval"), "--lineage", "o1"), "give --db URL too"),
        (("cover", graph("approval"), "--run", "none.json"), "'none.json' can't be read"),
        (("cover", graph("approval"), "--run", "text.json"), "is not an exported run"),
        (("cover", graph("approval"), "--merge", "text.json"), "is no coverage"),
        (("cover", graph("approval"), "--merge", "plain.json"), "covers other graphs"),
        (("cover", graph("approval"), *DB, "--lineage", "o9"), "no lineage 'o9'"),
        (("replay", "text.json"), "is not an exported run"),
    ],
)
def test_misuse_of_recorded_runs_is_told(call: Call, stored: None, words: tuple[str, ...], said: str) -> None:
    """Status 2 with what is missing."""
    Path("text.json").write_text("[]")
    Path("plain.json").write_text(call("cover", graph("plain"), *DB, "--json").out)
    done = call(*words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_what_the_recorded_runs_never_took_is_listed(call: Call, stored: None) -> None:
    """Over all lineages of the graph, as text and as data; those of other graphs are left out, and counted."""
    done = call("cover", graph("approval"), *DB)
    assert done.code == 0
    assert done.out.splitlines() == [
        "approval: 66.7 % (nodes 3/4, edges 4/6, labels 1/2)",
        "  nodes never run:",
        "    refuse",
        "  edges never taken:",
        "    refuse -> END",
        "    approve -> refuse (route)",
        "  labels never chosen:",
        "    approve ? no -> refuse",
        "66.7 % of all by 2 lineage(s), 6 step(s); ended: 2 completed",
        "1 lineage(s) of other graphs were left out",
    ]
    data = call("cover", graph("approval"), *DB, "--lineage", "o1", "--json").data
    assert (data["lineages"], data["steps"], data["untold"]) == (1, 3, 0)
    assert data["graphs"][0]["nodes"] == {"read": 1, "approve": 1, "write": 1, "refuse": 0}


def test_coverage_is_merged_over_stores_files_and_earlier_coverage(call: Call, stored: None) -> None:
    """An exported run and what was printed before add to what a store has."""
    run = ("run", graph("approval"), "-l", "o3", "-a", "approve=no")
    assert call(*run, "--db", "sqlite:///more.db").code == 0
    call("export", "o3", "--db", "sqlite:///more.db", "--graph", graph("approval"), "-o", "o3.json")
    both = call("cover", graph("approval"), *DB, "--run", "o3.json", "--fail-under", "100")
    assert (both.code, both.out.splitlines()[0]) == (0, "approval: 100.0 % (nodes 4/4, edges 6/6, labels 2/2)")

    before = call("cover", graph("approval"), *DB, "--json").out
    Path("before.json").write_text(before)
    merged = call("cover", graph("approval"), "--run", "o3.json", "--merge", "before.json", "--json").data
    assert (merged["percent"], merged["lineages"], merged["graphs"][0]["nodes"]["read"]) == (100.0, 3, 3)


def test_too_little_coverage_fails(call: Call, stored: None) -> None:
    """Status 1 below --fail-under."""
    done = call("cover", graph("approval"), *DB, "--fail-under", "70")
    assert done.code == 1
    assert "66.7 % is below --fail-under 70" in done.err


def test_child_graphs_are_covered_with_their_parent(call: Call) -> None:
    """Each graph has its own figures; the share is of all."""
    assert call("run", graph("parent"), "-l", "c1", *DB, "-a", "approve=no").code == 0
    done = call("cover", graph("parent"), *DB, "--json").data
    assert [(part["graph"], part["percent"]) for part in done["graphs"]] == [("parent", 100.0), ("approval", 66.67)]


def test_steps_that_this_graph_does_not_take_count_only_their_nodes(call: Call, stored: None) -> None:
    """A graph that has changed since is told where it goes another way."""
    text = Path(graph("").rstrip(":")).read_text()
    Path("other.py").write_text(text.replace("lambda state: state.approve,", 'lambda state: "no",'))
    done = call("cover", "other.py:approval", *DB, "--json").data
    assert (done["steps"], done["untold"]) == (4, 2)
    assert done["why"][0].endswith("this graph goes another way than the run did")
    assert done["graphs"][0]["nodes"]["write"] == 2
    assert done["graphs"][0]["labels"][0]["count"] == 0
