"""`graphagent lock` and `graphagent compat` as they are called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from cli_help import Call

FLOWS = """
from typing import Annotated
from pydantic import BaseModel
from graphagent import StateGraph, append

class State(BaseModel):
    log: Annotated[list[str], append] = []

def build(review="review", formerly=()):
    builder = StateGraph(State, name="flows")
    builder.add_node("draft", lambda state: {"log": ["draft"]}, inline=True, reads=(), writes=("log",))
    builder.add_interrupt_node(review, prompt="fine?", key="fine", formerly=formerly)
    builder.add_node("send", lambda state: {"log": ["send"]}, inline=True, reads=(), writes=("log",))
    return (builder.add_edge("draft", review).add_edge(review, "send")
            .set_entry_point("draft").set_finish_point("send"))

old = build().compile()
renamed = build("human_review").compile()
declared = build("human_review", ["review"]).compile()
"""


@pytest.fixture(autouse=True)
def flows(folder: Path) -> Path:
    """A module with an old graph, one with a renamed node, and one that declares the rename."""
    (folder / "flows.py").write_text(FLOWS)
    return folder


def written(name: str, content: Any) -> str:
    """A JSON file in the current directory."""
    Path(name).write_text(json.dumps(content))
    return name


def test_lock_writes_what_check_compares_with(call: Call) -> None:
    """A locked graph passes `check --locked`; after a change the check fails with GA719 until it is locked again."""
    assert call("lock", "flows.py:old").out == "wrote graphs.lock.json: flows\n"
    assert call("lock", "flows.py:old").out == "nothing has changed in graphs.lock.json: flows\n"
    assert call("check", "flows.py:old", "--locked").code == 0
    done = call("check", "flows.py:renamed", "--locked", "--json")
    assert done.code == 1
    assert "GA719" in [finding["code"] for finding in done.data["findings"]]
    assert call("lock", "flows.py:renamed").code == 0
    assert call("check", "flows.py:renamed", "--locked").code == 0


def test_lock_refuses_what_it_cannot_look_at(call: Call) -> None:
    """Nothing is written unless every target could be read."""
    done = call("lock", "flows.py:old", "nowhere.py:graph")
    assert done.code == 2
    assert "nothing was locked" in done.err
    assert not Path("graphs.lock.json").exists()
    assert call("lock").code == 2


@pytest.mark.parametrize(
    ("new", "more", "code", "verdict"),
    [
        ("old", [], 0, "compatible"),
        ("renamed", [], 1, "blocking"),
        ("declared", [], 0, "migratable"),
        ("renamed", ["--map", "map.json"], 0, "migratable"),
    ],
    ids=["same", "renamed", "declared", "mapped"],
)
def test_the_class_is_the_exit_status(call: Call, new: str, more: list[str], code: int, verdict: str) -> None:
    """0 where every run can go on, by itself or by a declared rename; 1 where one can't. From code or from a lock."""
    written("map.json", {"nodes": {"review": "human_review"}})
    call("lock", "flows.py:old")
    for old in ("flows.py:old", "graphs.lock.json#flows", "graphs.lock.json"):
        done = call("compat", old, f"flows.py:{new}", "--format", "json", *more)
        assert (done.code, done.data["class"], done.data["resumes"]) == (code, verdict, code == 0)
    done = call("compat", "flows.py:old", f"flows.py:{new}", *more)
    assert done.out.startswith(f"{verdict}: from ")


def test_text_names_place_way_and_mend(call: Call) -> None:
    """What is gone, how many places break, how a run gets there, what to declare."""
    done = call("compat", "flows.py:old", "flows.py:renamed")
    assert "3 places where a run can be stored: 2 go on" in done.out
    assert "GA701 error: node 'review' is gone" in done.out
    assert "a way there: draft" in done.out
    assert "fix: declare formerly=('review',)" in done.out


@pytest.mark.parametrize(("node", "code"), [("draft", 0), ("review", 1), ("send", 0)])
def test_one_run_from_a_file(call: Call, node: str, code: int) -> None:
    """`--checkpoint` judges the run that a file describes, with graphs that are documents."""
    for name in ("old", "renamed"):
        Path(f"{name}.json").write_text(call("graph", f"flows.py:{name}", "--format", "json").out)
    run = written("run.json", {"frontier": [node], "interrupts": [], "state": {"log": []}})
    done = call("compat", "old.json", "renamed.json", "--checkpoint", run, "--format", "json")
    assert (done.code, done.data["situations"]["total"]) == (code, 1)
    errors = [finding["code"] for finding in done.data["findings"] if finding["severity"] == "error"]
    assert errors == ["GA701"] * code
    mapped = written("map.json", {"review": "human_review"})
    assert call("compat", "old.json", "renamed.json", "--checkpoint", run, "--map", mapped).code == 0


def test_stored_runs_that_a_deploy_would_strand(call: Call) -> None:
    """`--db` judges every unfinished run of the old graph, lists the stranded ones by reason, and writes nothing."""

    async def fill() -> None:
        from flows import old  # type: ignore[import-not-found]

        from graphagent import Executor, SqlCheckpoints

        async with SqlCheckpoints("sqlite:///runs.db") as store:
            executor = Executor(old, store)
            for lineage in ("one", "two", "done"):
                await executor.run(lineage=lineage)
            await executor.resume("done", {"fine": True})

    call("graph", "flows.py:old")  # puts the folder on the path
    anyio.run(fill)
    done = call("compat", "flows.py:old", "flows.py:renamed", "--db", "sqlite:///runs.db", "--json")
    assert done.code == 1
    assert {name: run["class"] for name, run in done.data["runs"].items()} == {"one": "blocking", "two": "blocking"}
    assert done.data["runs"]["one"]["codes"] == ["GA701"]
    text = call("compat", "flows.py:old", "flows.py:renamed", "--db", "sqlite:///runs.db").out
    assert "2 stored runs: 0 go on, 0 go on by a rename or migration, 2 can't go on" in text
    assert "stranded, 2: one, two" in text
    assert call("compat", "flows.py:old", "flows.py:declared", "--db", "sqlite:///runs.db").code == 0
    mapped = written("map.json", {"nodes": {"review": "human_review"}})
    assert call("compat", "flows.py:old", "flows.py:renamed", "--db", "sqlite:///runs.db", "--map", mapped).code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["flows.py:old", "nothing.json"], "'nothing.json' can't be read"),
        (["graphs.lock.json#flows", "flows.py:old"], "there is no lock file"),
        (["flows.py:old", "flows.py:old", "--map", "broken.json"], "a map of renames"),
        (["flows.py:old", "flows.py:old", "--checkpoint", "empty.json"], "the checkpoint is malformed"),
        (["flows.py:old", "flows.py:old", "--checkpoint", "empty.json", "--db", "x.db"], "can't both be had"),
    ],
    ids=["no-document", "no-lock", "no-map", "no-checkpoint", "both"],
)
def test_misuse_is_status_2(call: Call, words: list[str], message: str) -> None:
    """With what is wrong."""
    Path("broken.json").write_text("{")
    written("empty.json", {})
    done = call("compat", *words)
    assert done.code == 2
    assert message in done.err
