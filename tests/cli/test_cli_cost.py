"""What a talk has cost, in `graphagent chat` and `graphagent sessions show`."""

from __future__ import annotations

import json
from pathlib import Path

from cli_help import Call

AGENTS = Path(__file__).with_name("agents.py")
DB = ("--db", "chat.db")


def test_a_talk_says_what_it_took(folder: Path, call: Call) -> None:
    """After each answer on standard error, in the completion with --json, and for a session; zero is not shown."""
    talk = ("chat", f"{AGENTS}:dear", *DB, "-s", "s1")
    done = call(*talk, "-m", "one", "-m", "two")
    assert done.out == "dear: done\ndear: done\n"
    assert done.err.count("tokens: 1200 in (200 cached), 30 out; cost: $0.001500\n") == 2
    shown = call("sessions", "show", "s1", "--app", "dear", *DB).out
    assert shown.endswith("tokens: 2400 in (400 cached), 60 out; cost: $0.003000\n")
    last = json.loads(call(*talk, "-m", "three", "--json").out.splitlines()[-1])
    assert last["usage"]["cost"] == 0.0015
    assert "tokens:" not in call("chat", f"{AGENTS}:bob", "-m", "hi").err


def test_a_price_that_is_not_known_is_said(folder: Path, call: Call) -> None:
    """It is neither left out nor 0."""
    done = call("chat", f"{AGENTS}:cheap", *DB, "-s", "s1", "-m", "one")
    assert "tokens: 5 in, 1 out; cost: not known" in done.err
    assert "cost: not known" in call("sessions", "show", "s1", "--app", "cheap", *DB).out
