"""`kill -9` while memories are taken from a conversation: the next process ends it, and nothing is there twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphagent.ids import fresh_id
from graphagent.testing.forks import ForkServer

pytestmark = pytest.mark.kill

EXPECTED = [
    ("asked to forget something", [], "fact", None, ""),
    ("likes green tea", ["drinks"], "fact", None, "Oslo"),
]


def test_killed_at_every_point(database: str, tmp_path: Path) -> None:
    """Through a Runner, at every write of a memory or of the cursor and at every question: the same is remembered, the
    metadata of an updated memory too, and what was found already is not asked for again."""
    job = {"url": database, "folder": str(tmp_path), "after": 0.0, "trace": None}
    with ForkServer("support.memory_worker:live") as server:
        [whole] = server.run({**job, "app": f"app-{fresh_id()}", "kill": 0})
        assert [tuple(one) for one in whole.result["memories"]] == EXPECTED
        assert whole.result["points"] > 15
        lives = [
            {**job, "app": f"app-{fresh_id()}", "kill": kill, "trace": str(tmp_path / f"{kill}.trace")}
            for kill in range(1, whole.result["points"] + 1)
        ]
        assert [ended.result for ended in server.run(*lives)] == [None] * len(lives)
        ends = server.run(*({**life, "kill": 0, "trace": None} for life in lives))
    for life, then in zip(lives, ends, strict=True):
        kill = life["kill"]
        assert [tuple(one) for one in then.result["memories"]] == EXPECTED, kill
        assert then.result["read"] == whole.result["read"], kill
        questions = (tmp_path / f"{life['app']}.log").read_text().splitlines()
        twice = (tmp_path / f"{kill}.trace").read_text().splitlines()[-2:] == ["question", "before update_state"]
        assert len(questions) == 2 + twice, kill
