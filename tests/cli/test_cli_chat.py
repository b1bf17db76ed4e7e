"""`graphagent chat` and `graphagent sessions`, as processes that read standard input."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from cli_help import COMMAND, Call, Done, environment

AGENTS = Path(__file__).with_name("agents.py")
BOB = f"{AGENTS}:bob"
DB = ("--db", "chat.db")


def chat(*words: str, said: str = "") -> Done:
    """A talk with what is said on standard input."""
    command = [COMMAND, "chat", *words]
    done = subprocess.run(command, input=said, capture_output=True, text=True, env=environment(), timeout=60)
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_talk_streams_and_shows_tools() -> None:
    """Text is shown once, calls and results are shown; blank lines say nothing; the end of input ends it."""
    done = chat(BOB, said="hi\n\nlook x\n")
    assert done.out == ('bob: hi (1)\nbob: let me see\n  -> look(what="x")\n  <- "seen x"\nbob: it says: seen x\n')
    assert done.code == 0
    assert "no --db" in done.err


def test_a_question_takes_the_next_line() -> None:
    """An approval is asked for on standard error, and answered by the next line."""
    done = chat(BOB, said="drop y\ntrue\nbye\n")
    assert '  <- "dropped y"' in done.out
    assert done.out.endswith("bob: bye (2)\n")
    assert "approve:drop" in done.err
    assert "boolean|Approval >" in done.err


def test_a_question_without_an_answer_is_asked_again_later(folder: Path) -> None:
    """The talk ends with status 3; when it goes on, the question comes before anything else."""
    done = chat(BOB, *DB, "-s", "s1", said="drop y\n")
    assert done.code == 3
    done = chat(BOB, *DB, "-s", "s1", said="hello\nfalse\nhello\n")
    assert "the question comes first" in done.err
    assert done.out.endswith("bob: hello (2)\n")
    assert done.code == 0


def test_a_session_is_gone_on_with(folder: Path) -> None:
    """The second talk knows what was said in the first; the command to go on with is shown."""
    first = chat(BOB, *DB, "--session", "s1", "-m", "one", "-m", "two")
    assert first.out == "bob: one (1)\nbob: two (2)\n"
    assert f"graphagent chat {BOB} --session s1 --db chat.db" in first.err
    assert chat(BOB, *DB, "--session", "s1", "-m", "three").out == "bob: three (3)\n"
    assert chat(BOB, *DB, "--session", "s1", "--user", "eve", "-m", "x").out == "bob: x (1)\n"


def test_json_has_every_event(folder: Path) -> None:
    """Each event is a line, the completion last; a failure is an event with status 1."""
    done = chat(BOB, "--json", "-m", "fail")
    events = [event for line in done.out.splitlines() if not (event := json.loads(line)).get("partial")]
    assert [event.get("kind", "message") for event in events] == ["error", "completion"]
    assert events[-1]["extensions"]["outcome"] == "failed"
    assert "no route to the model" in events[0]["error"]["message"]
    assert done.code == 1


def test_an_error_is_said_and_the_talk_goes_on() -> None:
    """What went wrong is on standard error; the next message works."""
    done = chat(BOB, said="fail\nhi\n")
    assert "error: " in done.err
    assert "no route to the model" in done.err
    assert "bob: hi (" in done.out
    assert done.code == 0


def test_a_sub_agent_is_talked_with() -> None:
    """`--agent` names one below; a wrong name is misuse and names the known ones."""
    assert chat(BOB, "--agent", "tim", "-m", "x").out == "tim: tim here\n"
    wrong = chat(BOB, "--agent", "tom", "-m", "x")
    assert wrong.code == 2
    assert "did you mean 'tim'?" in wrong.err


def test_ctrl_c_cancels_the_answer() -> None:
    """The signal cancels the run in an orderly way; the talk goes on, and ends with status 5 if that was the last."""
    command = [COMMAND, "chat", BOB, "-m", "wait"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None
    shown = ""
    while "waiting" not in shown:
        shown += process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 5, err
    assert "<-" in out
    assert "cancelled" in err


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (f"{AGENTS}:nobody", "has no 'nobody'"),
        (f"{AGENTS}:number", "is 3, not an agent"),
        (f"{AGENTS}:broken", "calling"),
        ("nowhere:bob", "no module 'nowhere'"),
    ],
)
def test_misuse(target: str, message: str) -> None:
    """A target that is no agent is misuse, with the reason."""
    done = chat(target, "-m", "x")
    assert done.code == 2
    assert message in done.err


def test_the_only_agent_of_a_module_needs_no_name() -> None:
    """Agents below another one don't count."""
    assert chat(str(AGENTS), "-m", "hi").out == "bob: hi (1)\n"


def test_sessions_are_listed_shown_and_deleted(folder: Path, call: Call) -> None:
    """The three actions, as text and as JSON; a deleted session leaves no checkpoints behind."""
    chat(BOB, *DB, "-s", "s1", "-m", "look x")
    chat(BOB, *DB, "-s", "s2", "-m", "hi")
    where = ("--app", "bob", *DB)
    listed = call("sessions", "list", *where)
    assert [line.split()[0] for line in listed.out.splitlines()] == ["session", "s2", "s1"]
    assert [one["id"] for one in call("sessions", "list", *where, "--json").data] == ["s2", "s1"]
    shown = call("sessions", "show", "s1", *where).out
    assert [line.partition("Z  ")[2] for line in shown.splitlines()[1:]] == [
        "user: look x",
        "bob: let me see",
        '  -> look(what="x")',
        '  <- "seen x"',
        "bob: it says: seen x",
    ]
    assert len(call("sessions", "show", "s1", *where, "--json").data["events"]) == 4
    assert "bob/user/s1" in call("history", *DB).out
    assert call("sessions", "delete", "s1", *where).code == 0
    assert "s1" not in call("history", *DB).out
    gone = call("sessions", "show", "s1", *where)
    assert gone.code == 2
    assert "no session 's1': known: 's2'" in gone.err
    assert call("sessions", "delete", "s1", *where).code == 2


def test_misuse_of_sessions(folder: Path, call: Call) -> None:
    """No store, no session, or one too many: each says what to write."""
    assert "no store is named" in call("sessions", "list", "--app", "bob").err
    assert "no database" in call("sessions", "list", "--app", "bob", *DB).err
    chat(BOB, *DB, "-s", "s1", "-m", "hi")
    assert "did you mean 'sessions show s1'?" in call("sessions", "list", "s1", "--app", "bob", *DB).err
    assert "needs to know which session" in call("sessions", "show", "--app", "bob", *DB).err
    assert call("sessions", "list", "--app", "other", *DB).out == "no sessions\n"
