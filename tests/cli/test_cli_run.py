"""What `graphagent run` and `resume` do: statuses, inputs, answers, output for people and for programs."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cli_help import COMMAND, Call, environment, graph

from runner.cli.options import RunOptions
from runner.cli.run import resume_command

DB = ("--db", "runs.db")


def test_a_run_and_its_resume_are_two_processes(process: Call) -> None:
    """A run that asks ends with 3 and the exact command that resumes it; that command, answered, ends with 0."""
    first = process("run", graph("approval"), "--input", '{"text": "hi"}', "--lineage", "order 7", *DB)
    assert first.code == 3
    assert first.out.startswith("interrupted\nlineage order 7, checkpoint order 7:2, 1 step(s)\nstate:\n")
    assert 'asks: {"question": "Write it?"}\n    takes: yes|no' in first.out
    told = first.out.splitlines()[-1].strip()
    assert told == f"graphagent resume 'order 7' {graph('approval')} --db runs.db --answer 'approve=<yes|no>'"
    assert "step 1  read  done" in first.err

    words = told.replace("<yes|no>", "yes").replace("'order 7'", "ORDER").replace("'", "").split()[1:]
    second = process(*[word.replace("ORDER", "order 7") for word in words])
    assert (second.code, second.out.splitlines()[0]) == (0, "completed")
    assert '["read hi", "wrote 1"]' in second.out
    assert "step 1  read" not in second.err  # what had run is not run again


@pytest.mark.parametrize(
    ("name", "more", "code", "status"),
    [
        ("plain", (), 0, "completed"),
        ("failing", (), 1, "failed"),
        ("approval", (), 3, "interrupted"),
        ("breakpoints", (), 3, "interrupted"),
        ("endless", ("--max-steps", "3"), 4, "limit_reached"),
        ("starved", (), 4, "stalled"),
        ("make", (), 0, "completed"),
        ("plain", ("--engine", "eager"), 0, "completed"),
    ],
)
def test_exit_status_says_how_a_run_ended(call: Call, name: str, more: tuple[str, ...], code: int, status: str) -> None:
    """Each way to end has its exit status; with --json standard output is one document that says the same."""
    done = call("run", graph(name), *DB, "--lineage", "one", "--json", *more)

    assert (done.code, done.data["status"]) == (code, status)
    assert done.err == ""
    command = done.data["resume"]
    assert (command is None) == (status == "completed")
    assert command is None or command.startswith(f"graphagent resume one {graph(name)} --db runs.db")


def test_the_json_document_of_a_failure(call: Call) -> None:
    """A failed run names its error, keeps the state before the failed step and says where it stands."""
    data = call("run", graph("failing"), *DB, "-l", "f", "-i", '{"text": "a"}', "--json").data

    assert data["error"] == {"type": "NodeError", "message": "node 'broken' failed: ValueError: the printer is on fire"}
    assert (data["checkpoint"], data["steps"], data["state"]["log"]) == ("f:2", 1, ["read a"])


def test_text_of_a_failure_and_its_traceback(call: Call) -> None:
    """Text has one line for the error; the traceback of the node comes with --debug only."""
    done = call("run", graph("failing"))
    assert done.out.startswith("failed: node 'broken' failed: ValueError: the printer is on fire\n")
    assert "Traceback" not in done.err + done.out
    assert "go on with" not in done.out  # nothing was stored

    assert "in broken" in call("run", graph("failing"), "--debug").err


def test_inputs_come_from_text_file_and_standard_input(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JSON object given as such, in a file, or on standard input is the same input; types are those of the state."""
    text = '{"text": "hi", "due": "2026-01-02", "key": "s3cret"}'
    Path("input.json").write_text(text, "utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO(text))

    states = [
        call("run", graph("plain"), "--input", given, "--json").data["state"] for given in (text, "input.json", "-")
    ]

    assert states[0] == states[1] == states[2]
    assert list(states[0].items())[:4] == [("text", "hi"), ("amount", 1), ("due", "2026-01-02"), ("key", "**********")]


def test_without_a_store_a_note_says_what_that_means(call: Call) -> None:
    """In memory nothing can be resumed, which is said beside the result; answers still work within the command."""
    done = call("run", graph("approval"), "--answer", "approve=no", "--json")
    assert "no --db and no GRAPHAGENT_DB" in done.err
    assert (done.code, done.data["state"]["log"]) == (0, ["read ", "refused"])

    waiting = call("run", graph("approval"), "--json").data
    assert (waiting["status"], waiting["resume"], waiting["checkpoint"]) == ("interrupted", None, None)


def test_the_store_may_come_from_the_environment(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """GRAPHAGENT_DB names the store, and the resume command doesn't repeat it."""
    monkeypatch.setenv("GRAPHAGENT_DB", "sqlite:///env.db")
    done = call("run", graph("approval"), "-l", "e", "--json")

    assert done.err == ""
    assert done.data["resume"] == f"graphagent resume e {graph('approval')} --answer 'approve=<yes|no>'"
    assert Path("env.db").exists()


def test_answers_of_one_key_are_given_one_after_another(call: Call) -> None:
    """The same key answers lap after lap; a text is a text even if it looks like a number; steps count all parts."""
    done = call("run", graph("talkative"), "-a", "note=42", "-a", "note=true", "-a", "note=stop", "-a", "x=1", "--json")

    assert (done.data["state"]["log"], done.data["steps"]) == (["42", "true", "stop"], 6)
    assert "--answer x=... was not used" in done.err


def test_an_ambiguous_answer_lists_the_ids(call: Call) -> None:
    """Two questions under one key: nothing is answered, and the command to answer each by its id is shown."""
    done = call("run", graph("batch"), "-i", '{"items": ["bad1", "ok", "bad2"]}', "-l", "b", *DB, "-a", "fix=glue")
    assert done.code == 2
    assert "'fix' is the key of 2 pending interrupts" in done.err
    assert "--answer 'work[0]/work#2.0=<string>' --answer 'work[2]/work#2.0=<string>'" in done.err

    by_id = ("-a", "work[0]/work#2.0=glue", "-a", "work[2]/work#2.0=tape")
    done = call("resume", "b", graph("batch"), *DB, *by_id, "--json")
    assert done.data["state"]["done"] == ["bad1 glue", "ok fine", "bad2 tape"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("approve=maybe", "Input should be 'yes' or 'no'"),
        ("aprove=yes", "no interrupt 'aprove' is pending: did you mean 'approve'?"),
        ("approve", "--answer 'approve' has no '='"),
    ],
)
def test_a_wrong_answer_changes_nothing(call: Call, answer: str, message: str) -> None:
    """Unknown, malformed and type-wrong answers are refused by name, and the run goes on waiting."""
    call("run", graph("approval"), "-l", "w", *DB)
    done = call("resume", "w", graph("approval"), *DB, "--answer", answer)

    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(call("interrupts", "w", *DB, "--json").data["interrupts"]) == 1


def test_a_breakpoint_is_passed_by_resume(call: Call) -> None:
    """A breakpoint asks nothing: resume alone goes on, and the run says where it stopped."""
    assert "before:write  (write#2.0-before)  stopped here" in call("run", graph("breakpoints"), "-l", "b", *DB).out
    assert call("resume", "b", graph("breakpoints"), *DB).code == 0


def test_resume_goes_back_to_an_older_checkpoint(call: Call) -> None:
    """With --checkpoint a finished run goes on from the middle, with an answer of its own."""
    call("run", graph("approval"), "-l", "back", *DB, "-a", "approve=yes")
    done = call("resume", "back", graph("approval"), *DB, "--checkpoint", "2", "-a", "approve=no", "--json")

    assert (done.code, done.data["state"]["log"]) == (0, ["read ", "refused"])


def test_an_unfinished_lineage_wants_resume_or_abandon(call: Call) -> None:
    """New input for a waiting run is refused with both ways out; --abandon takes the second."""
    call("run", graph("approval"), "-l", "u", *DB)
    done = call("run", graph("approval"), "-l", "u", *DB)
    assert done.code == 2
    assert f"here: graphagent resume u {graph('approval')} --db runs.db\nor the same command with --abandon" in done.err

    again = call("run", graph("approval"), "-l", "u", *DB, "--abandon", "-a", "approve=no", "--json")
    assert again.data["state"]["log"] == ["read ", "read ", "refused"]


def test_stream_prints_an_event_a_line(call: Call) -> None:
    """--stream --json is JSON lines, numbered without a gap, the result last; as text each event is a line too."""
    done = call("run", graph("talking"), "--stream", "--json")
    *events, last = map(json.loads, done.out.splitlines())
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert [event["data"] for event in events if event["mode"] == "messages"] == ["hel", "lo"]
    assert ("updates", "update", {"log": ["talked"]}) in [(e["mode"], e["kind"], e["data"]) for e in events]
    assert (last["mode"], last["status"]) == ("result", "completed")

    assert 'step 1  messages/text  talk  "hel"\n' in call("run", graph("talking"), "--stream").out


def test_a_database_of_any_kind(call: Call, database: str, lineage: str) -> None:
    """Run, resume, look and delete work on SQLite and on PostgreSQL, by url."""
    db = ("--db", database)
    assert call("run", graph("parent"), "-l", lineage, *db).code == 3
    done = call("resume", lineage, graph("parent"), *db, "-a", "approve=yes", "--json")
    assert (done.code, done.data["state"]["log"]) == (0, ["read ", "wrote 1"])
    assert call("history", lineage, *db, "--json").data["namespaces"] == ["", "child@0.0"]
    assert call("delete", lineage, *db).code == 0
    assert f"no lineage '{lineage}'" in call("history", lineage, *db).err


def started(*words: str, until: str) -> subprocess.Popen[str]:
    """A command that has said `until` on standard error."""
    running = subprocess.Popen(
        [COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    assert running.stderr is not None
    for line in running.stderr:
        if until in line:
            return running
    raise AssertionError(f"it ended before it said {until!r}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_in_an_orderly_way(call: Call, number: signal.Signals) -> None:
    """Ctrl-C and TERM end with 5, the finished step is kept, the lineage is free, and a resume is offered."""
    running = started("run", graph("slow"), "-l", "s", *DB, until="half way")
    running.send_signal(number)
    out, err = running.communicate(timeout=30)

    assert running.returncode == 5
    assert out.startswith("cancelled\nlineage s, checkpoint s:1, 1 step(s)\n")
    assert out.splitlines()[-1].strip() == f"graphagent resume s {graph('slow')} --db runs.db"
    assert "cancelling" in err
    assert [row["source"] for row in call("history", "s", *DB, "--json").data["checkpoints"]] == ["step", "input"]


def test_a_second_signal_ends_a_deaf_node(call: Call) -> None:
    """A node that blocks its thread can't be cancelled; the second Ctrl-C ends the process at once, with 5."""
    running = started("run", graph("deaf"), "-l", "d", *DB, until="stuck  started")
    running.send_signal(signal.SIGINT)
    assert running.stderr is not None
    assert "cancelling" in running.stderr.readline()
    began = time.monotonic()
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)

    assert running.returncode == 5
    assert time.monotonic() - began < 10
    assert call("history", "d", *DB, "--json").data["checkpoints"][0]["source"] == "input"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@db.example/x", "'<the same as before>'"),
        ("postgresql://me@db.example/x", "postgresql://me@db.example/x"),
    ],
)
def test_a_password_is_not_repeated(url: str, shown: str) -> None:
    """The resume command names the store again, unless a password is in its url."""
    options = RunOptions(target="a:b", db=url)

    assert resume_command(("l", "a:b"), options, ()) == f"graphagent resume l a:b --db {shown}"
