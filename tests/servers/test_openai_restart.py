"""What a session has when the server is another process: on SQLite and PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from support.serving import served

MINE = [{"type": "function", "function": {"name": "mine"}}]


def test_calls_and_questions_outlive_the_server(fresh_database: str, tmp_path: Path) -> None:
    """A call that one process handed out, and a question that it asked, are answered in the next."""
    talks = {name: {"X-Session-Id": name} for name in ("calls", "asks")}
    with served(tmp_path, "bob", "--db", fresh_database) as up:
        first = up.chat("mine x", talks["calls"], tools=MINE, stream=False).json()
        [call] = first["choices"][0]["message"]["tool_calls"]
        [question] = up.chat("drop it", talks["asks"]).json()["interrupts"]
        assert up.stop() == 0
    with served(tmp_path, "bob", "--db", fresh_database) as up:
        result = [{"role": "tool", "tool_call_id": call["id"], "content": "done"}]
        said = up.chat(result, talks["calls"], tools=MINE).json()["choices"][0]["message"]["content"]
        assert said == "it says: done"
        assert up.chat(result, talks["calls"]).json()["error"]["code"] == "unknown_tool_call"
        assert up.chat("new", talks["asks"]).json()["error"]["code"] == "interrupted"
        answer = up.chat("yes", talks["asks"], answers={question["key"]: True}).json()
        assert answer["choices"][0]["message"]["content"] == "it says: dropped it"
        assert up.chat("again", talks["asks"]).json()["choices"][0]["message"]["content"] == "again (2)"
