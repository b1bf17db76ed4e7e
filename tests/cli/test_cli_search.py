"""`graphagent sessions search`: what was said, found in a database."""

from __future__ import annotations

from pathlib import Path

import anyio
from cli_help import Call

from graphagent.ledger import Event, SessionKey
from graphagent.messages import Message
from runner.sessions import SqlSessions

DB = ("--db", "s.db")
SAID = {
    SessionKey("app", "ann", "s1"): (
        "The serial of the certificate is 7731.",
        "And the weather is fine.",
        "证书在这里",
    ),
    SessionKey("app", "ann", "s2"): ("The certificate of the proxy has expired.",),
    SessionKey("app", "bob", "s3"): ("The serial of the certificate is 666.",),
}


def filled(folder: Path) -> None:
    """A database with three sessions of two users."""

    async def fill() -> None:
        async with SqlSessions(f"sqlite:///{folder}/s.db") as sessions:
            for key, texts in SAID.items():
                await sessions.create(*key)
                for number, text in enumerate(texts):
                    event = Event(id=f"{key.session}-{number}", author="user", messages=(Message.user(text),))
                    await sessions.append(key, event)

    anyio.run(fill)


def test_hits_with_their_ids(folder: Path, call: Call) -> None:
    """The best first, in all sessions of the user or in one; as JSON with all that is known; of nobody else."""
    filled(folder)
    where = ("--app", "app", "--user", "ann", *DB)
    found = call("sessions", "search", "certificate serial", *where, "--json").data
    assert found["query"] == "certificate serial"
    ids = [(one["session"], one["event"]) for one in found["hits"]]
    assert ids[0] == ("s1", "s1-0")
    assert ("s2", "s2-0") in ids
    assert not any("666" in one["text"] for one in found["hits"])
    first = found["hits"][0]
    assert (first["number"], first["role"], first["text"]) == (1, "user", "The serial of the certificate is 7731.")
    text = call("sessions", "search", "certificate serial", *where, "--limit", "1").out.splitlines()
    assert "session s1  event s1-0" in text[0]
    assert text[1].strip() == "user: The serial of the certificate is 7731."
    assert len(text) == 2
    inside = call("sessions", "search", "certificate", *where, "--session", "s2", "--json").data
    assert [one["event"] for one in inside["hits"]] == ["s2-0"]
    assert call("sessions", "search", "证书", *where, "--json").data["hits"][0]["event"] == "s1-2"


def test_nothing_found_and_misuse(folder: Path, call: Call) -> None:
    """No hit is no error; no words, or a session that isn't there, is."""
    filled(folder)
    where = ("--app", "app", "--user", "ann", *DB)
    nothing = call("sessions", "search", "zebra", *where)
    assert (nothing.code, nothing.out) == (0, "nothing is found\n")
    assert call("sessions", "search", "zebra", *where, "--json").data == {"query": "zebra", "hits": []}
    assert call("sessions", "search", "certificate", "--app", "other", *DB).out == "nothing is found\n"
    wordless = call("sessions", "search", *where)
    assert (wordless.code, "needs the words to look for" in wordless.err) == (2, True)
    unknown = call("sessions", "search", "certificate", *where, "--session", "s9")
    assert (unknown.code, "no session 's9'" in unknown.err) == (2, True)
