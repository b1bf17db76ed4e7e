"""Writes docs/debugging.md from sessions that it plays at a real terminal: `python -m tests.tools.debug_pages`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.debug_sessions import SESSIONS, Session, play, prepare

PAGE = Path(__file__).parents[2] / "docs" / "debugging.md"
START, END = "<!-- sessions -->", "<!-- end of sessions -->"


def section(session: Session, told: list[tuple[str, str]]) -> str:
    """A session as a section of the page."""
    lines = [f"### {session.title}", "", session.symptom, "", "```text", f"$ {told[0][0]}", told[0][1]]
    for command, text in told[1:]:
        lines += [f"(ga) {command}", text]
    return "\n".join([*(line for line in lines), "```", "", session.conclusion, ""])


def sections() -> str:
    """All sessions, played now."""
    made = []
    for session in SESSIONS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            prepare(folder)
            made.append(section(session, play(session, folder)))
    return "\n".join(made)


def main() -> None:
    """Put the sessions into the page."""
    page = PAGE.read_text("utf-8")
    head, _, rest = page.partition(START)
    PAGE.write_text(f"{head}{START}\n\n{sections()}\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()
