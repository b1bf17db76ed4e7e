"""`graphagent sessions show --why`: what a model saw, below its answer."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cli_help import COMMAND, Call, environment

AGENTS = Path(__file__).with_name("agents.py")
DB = ("--db", "chat.db")


def test_why_is_printed_below_answers(folder: Path, call: Call) -> None:
    """As text, events with one fate on a line, with their numbers; as JSON an entry for each event, for answers."""
    talk = [COMMAND, "chat", f"{AGENTS}:bob", *DB, "-s", "s1", "-m", "look x", "-m", "hi"]
    subprocess.run(talk, check=True, capture_output=True, env=environment(), timeout=60)
    where = ("sessions", "show", "s1", "--app", "bob", *DB)
    lines = [line.strip() for line in call(*where, "--why").out.splitlines()]
    at = next(place for place, line in enumerate(lines) if line.endswith("bob: hi (2)"))
    assert lines[at].startswith("6  20")
    assert lines[at + 1 : at + 4] == [
        "saw 5 of 5 event(s), in a request of 5 message(s):",
        "in       event 1 to 4  it says: seen x",
        "in       event 5  (visibility.kept)  hi",
    ]
    assert "saw" not in call(*where).out
    events = call(*where, "--why", "--json").data["events"]
    assert ["saw" in event for event in events] == [False, True, False, True, False, True]
    assert events[3]["saw"] == [
        {"event": events[0]["id"], "verdict": "in", "reasons": ["visibility.kept"]},
        {"event": events[1]["id"], "verdict": "in", "reasons": ["run.in"]},
        {"event": events[2]["id"], "verdict": "in", "reasons": ["run.in"]},
    ]
    assert events[3]["view"]["base"] == events[1]["id"]
