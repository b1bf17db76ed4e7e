"""Debugging at a real terminal (tmux): each planted fault is found within ten commands, as docs/debugging.md has it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.debug_sessions import SESSIONS, Session, play, prepare

pytest.importorskip("cryptography", reason="the examples need cryptography")
pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
PAGE = Path(__file__).parents[2] / "docs" / "debugging.md"


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.name)
def test_the_fault_is_found_as_the_page_says(session: Session, tmp_path: Path) -> None:
    """The transcript in the docs is what a terminal shows; the last command shows the fault; ten commands are enough.
    (`python -m tests.tools.debug_pages` writes the page anew.)"""
    prepare(tmp_path)
    told = play(session, tmp_path)
    assert len(session.commands) <= 10
    assert session.finds in told[-1][1]
    page = PAGE.read_text("utf-8")
    own = page.partition(f"### {session.title}\n")[2].partition("\n### ")[0]
    for command, text in told:
        assert command in own
        assert text in own, f"after '{command}'"
