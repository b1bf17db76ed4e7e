"""Commands on stored runs: looking, going back, keeping house."""

from __future__ import annotations

import pytest
from cli_help import Call, graph

DB = ("--db", "sqlite:///runs.db")
GRAPH = ("--graph", graph("approval"))


@pytest.fixture(autouse=True)
def finished(call: Call) -> None:
    """A store with the finished run `o1`."""
    done = call(
        "run", graph("approval"), "-i", '{"text": "hi", "due": "2026-01-02"}', "-l", "o1", *DB, "-a", "approve=yes"
    )
    assert done.code == 0


def test_history_lists_checkpoints_newest_first(call: Call) -> None:
    """A line a checkpoint with step, id, source and nodes; --limit shortens it; without a lineage, the lineages."""
    rows = call("history", "o1", *DB, "--json").data["checkpoints"]
    assert [row["source"] for row in rows] == ["end", "step", "step", "interrupt", "interrupt", "step", "input"]
    assert (rows[1]["id"], rows[1]["nodes"], rows[1]["parent"]) == ("o1:5", ["write"], "o1:4")

    lines = call("history", "o1", *DB, "--limit", "2").out.splitlines()
    assert lines[0].split() == ["STEP", "CHECKPOINT", "SOURCE", "NODES", "TIME"]
    assert [line.split()[:3] for line in lines[1:]] == [["3", "o1:6", "end"], ["3", "o1:5", "step"]]

    assert call("history", *DB).out == "o1\n"


def test_state_is_typed_with_the_graph_and_plain_without(call: Call) -> None:
    """At any checkpoint, by number or id; plain data shows how it is stored, --graph what it means, in field order."""
    typed = call("state", "o1", *DB, "-c", "o1:1", *GRAPH, "--json").data
    assert (typed["checkpoint"], typed["typed"]) == ("o1:1", True)
    assert list(typed["state"].items())[:3] == [("text", "hi"), ("amount", 1), ("due", "2026-01-02")]

    plain = call("state", "o1", *DB, "-c", "1", "--json").data
    assert (plain["typed"], plain["state"]["log"]) == (False, ["read hi"])
    assert '  log      ["read hi", "wrote 1"]\n' in call("state", "o1", *DB, *GRAPH).out


@pytest.mark.parametrize("more", [(), GRAPH])
def test_diff_shows_what_changed(call: Call, more: tuple[str, ...]) -> None:
    """Changed fields before and after, new items of a list alone; the same with and without the graph."""
    changes = call("diff", "o1:1", "o1:6", *DB, *more, "--json").data["changes"]
    assert changes["approve"] == {"before": None, "after": "yes"}
    assert changes["log"]["added"] == ["wrote 1"]
    assert '  log\n    + "wrote 1"\n' in call("diff", "o1:1", "o1:6", *DB, *more).out + "\n"
    assert call("diff", "o1:2", "o1:1", *DB, *more).out == "no field differs\n"


def test_explain_tells_the_chain_of_triggers(call: Call) -> None:
    """From the node back to the input, each link with its checkpoint."""
    causes = call("explain", "o1", "write#3", *DB, *GRAPH, "--json").data["causes"]
    assert [(cause["activation"], cause["triggers"]) for cause in causes] == [
        ("write#3", ["approve#2"]), ("approve#2", ["read#1"]), ("read#1", []),
    ]  # fmt: skip
    assert "read#1  was started by the input (o1:0)" in call("explain", "o1", "write#3", *DB, *GRAPH).out
    assert "did you mean 'write#3'?" in call("explain", "o1", "wrote#3", *DB, *GRAPH).err


def test_replay_finds_a_graph_that_goes_another_way(call: Call) -> None:
    """The graph that wrote the run: status 0. Another one: status 1 and the checkpoint at which they part."""
    assert call("replay", "o1", *DB, *GRAPH).out == "3 step(s) checked: no divergence\n"

    other = call("replay", "o1", *DB, "--graph", graph("plain"), "--json")
    assert (other.code, other.data["ok"]) == (1, False)
    assert other.data["divergence"]["checkpoint"] == "o1:1"


def test_fork_and_edit_make_another_run(call: Call) -> None:
    """A copy of the waiting point goes on with edited state and another answer; the first run is untouched."""
    assert call("fork", "o1", "-c", "2", "--new-lineage", "o2", *DB, *GRAPH, "--json").data["id"] == "o2:0"
    edited = call("edit", "o2", "--set", "text=17", "--set", "due=2027-03-04", *DB, *GRAPH, "--json").data
    assert (edited["id"], edited["source"]) == ("o2:1", "edit")

    done = call("resume", "o2", graph("approval"), *DB, "-a", "approve=no", "--json").data["state"]
    assert (done["text"], done["due"], done["log"]) == ("17", "2027-03-04", ["read hi", "refused"])
    assert call("state", "o1", *DB, "--json").data["state"]["text"] == "hi"


def test_edit_as_a_node_fires_its_edges(call: Call) -> None:
    """Values given as the result of the question's node answer it: the other branch runs."""
    call("edit", "o1", "-c", "2", "--set", "approve=no", "--as-node", "approve", *DB, *GRAPH)

    assert call("resume", "o1", graph("approval"), *DB, "--json").data["state"]["log"] == ["read hi", "refused"]


def test_interrupts_say_what_is_asked(call: Call) -> None:
    """Key, id, prompt and schema of what is pending; nothing for a run that has ended."""
    call("run", graph("approval"), "-l", "o3", *DB)
    asked = call("interrupts", "o3", *DB, "--json").data["interrupts"]
    assert [(one["key"], one["id"], one["schema"]["enum"]) for one in asked] == [
        ("approve", "approve#2.0", ["yes", "no"])
    ]
    assert call("interrupts", "o1", *DB).out == "'o1' waits for nothing\n"


def test_prune_and_delete(call: Call) -> None:
    """A dry run removes nothing; pruning leaves the newest, which loads as before; delete leaves nothing."""
    before = call("state", "o1", *DB, "--json").data
    assert call("prune", *DB, "--keep-last", "2", "--dry-run", "--json").data["rows"] == 5
    assert len(call("history", "o1", *DB, "--json").data["checkpoints"]) == 7
    assert call("prune", "o1", *DB, "--keep-last", "2").out.startswith("removed 5 checkpoint(s) of 1 lineage(s)")
    assert call("state", "o1", *DB, "--json").data == before

    assert call("prune", *DB, "--max-age", "7d", "--max-bytes", "20MB", "--json").data["rows"] == 0
    assert call("delete", "o1", *DB, "--json").code == 0
    assert call("history", *DB).out == "nothing is stored here\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("history", "o2"), "no lineage 'o2' in this store: known: 'o1'"),
        (("history", "o1", "--namespace", "x"), "lineage 'o1' has no child graph 'x'"),
        (("state", "o1", "-c", "99"), "lineage 'o1' has no checkpoint 99: "),
        (("state", "o1", "-c", "o9:1"), "'o9:1' is not a checkpoint of 'o1'"),
        (("diff", "o1:1", "nothing"), "no checkpoint 'nothing' in this store; ids look like 'lineage:3'"),
        (("delete", "o2"), "no lineage 'o2' in this store"),
        (("prune",), "give --keep-last, --max-age or --max-bytes"),
        (("prune", "--max-age", "3y"), "--max-age '3y' is not understood; write for example '90' (seconds)"),
        (("prune", "--max-bytes", "much"), "--max-bytes 'much' is not understood"),
        (("edit", "o1", "--set", "amount=3"), "give --graph module:name"),
        (("edit", "o1", *GRAPH), "nothing is changed: give --set FIELD=VALUE"),
        (("edit", "o1", "--set", "amunt=3", *GRAPH), "which 'Order' doesn't declare: did you mean 'amount'?"),
        (("edit", "o1", "--set", "amount=x", *GRAPH), "Input should be a valid integer"),
        (("edit", "o1", "--set", "amount=3", "--as-node", "rad", *GRAPH), "'rad' is not a node: did you mean 'read'?"),
        (("resume", "o9", graph("approval")), "no lineage 'o9' in this store: known: 'o1'"),
    ],
)
def test_misuse_of_a_stored_run(call: Call, words: tuple[str, ...], message: str) -> None:
    """Every misuse ends with 2 and one message with the mend; with --json standard output has it too."""
    done = call(*words, *DB, "--json")

    assert done.code == 2
    assert message in done.err
    assert message in done.data["error"]["message"]
    assert "Traceback" not in done.err


def test_a_store_that_is_not_there(call: Call) -> None:
    """Looking never makes a database: no store named, and a file that isn't there, are misuse."""
    assert "give --db URL" in call("history").err
    assert "no database 'no.db'" in call("history", "--db", "no.db").err
    assert "known: 'sqlite'" in call("history", "--db", "mysql://host/x").err
    assert "no database 'no.db'" in call("history", "--db", "sqlite:///no.db").err
