"""Debugging sessions at a real terminal (tmux): the three broken triages, and the demo's expired certificate."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

BROKEN = Path(__file__).parents[1] / "debugger" / "broken"
PROMPT = "(ga)"
COLUMNS, LINES = 118, 400
PATIENCE = 90.0


@dataclass(frozen=True)
class Session:
    """What is typed, and why. `finds`: what has to be on the screen of the last command."""

    name: str
    title: str
    symptom: str
    target: str
    commands: Sequence[str]
    finds: str
    conclusion: str


SESSIONS = (
    Session(
        "why-this-route",
        "Why did the expired certificate take its route?",
        "The triage of the demo stops at a question for the expired certificate. Why?",
        "examples.cert_triage.graph:graph",
        ("until approve", "why", "p state.severity", "p [one.title for one in state.findings]", "who severity"),
        "by verdict#3",
        "`verdict` judged `critical`, since one finding is; its route by that label leads to `approve`.",
    ),
    Session(
        "wrong-route",
        "A wrong route",
        "The certificate has expired, yet nobody was asked: there is a report at once.",
        "wrong_route.py:graph",
        ("until report", "p state.severity", "why", "list verdict"),
        "[verdict] --(ok, critical)--> report",
        "The verdict was right. The map of its route is not: `critical` leads to `report`, and `warning` to `approve`.",
    ),
    Session(
        "lost-write",
        "A lost write",
        "The report says `ok`, though the certificate has expired.",
        "lost_write.py:graph",
        (
            "continue",
            "p [one.severity for one in state.findings]",
            "who severity",
            "goto 3",
            "p state.severity",
            "alone tidy",
            "source tidy",
        ),
        "def tidy",
        "`verdict` had written `critical`; `tidy` wrote the field again, from the findings that it had left.",
    ),
    Session(
        "stalled-join",
        "A stalled join",
        "The run ends as `stalled`.",
        "stalled_join.py:graph",
        ("continue", "joins", "list valid", "list validity", "goto 2", "writes validity"),
        "validity/validity#2",
        "The join waits for `valid`, which only the label `go on` leads to. `validity` found something grave and left "
        "by `alarm`: the join can't be filled on that way.",
    ),
)


def play(session: Session, folder: Path) -> list[tuple[str, str]]:
    """Type the commands of a session into a terminal; returns each with what it printed, the command line first."""
    terminal = _Terminal(folder)
    line = ["graphagent", "debug", session.target, "--db", "sqlite:///runs.db", "--lineage", "case-1"]
    line += ["--input", "samples/expired.json"]
    try:
        terminal.start(line)
        told = [(shlex.join(line), terminal.answer(0))]
        for number, command in enumerate(session.commands, 1):
            terminal.type(command)
            told.append((command, terminal.answer(number)))
        return [(command, _plain(text, folder)) for command, text in told]
    finally:
        terminal.close()


def prepare(folder: Path) -> None:
    """The samples of the demo and the broken triages in a folder."""
    from examples.cert_triage.samples import make_samples

    make_samples(folder / "samples", datetime.now(UTC))
    for file in BROKEN.glob("*.py"):
        shutil.copy(file, folder)


class _Terminal:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = str(folder / "tmux")

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", self._socket, "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, env=_environment(), cwd=self._folder).stdout

    def start(self, line: Sequence[str]) -> None:
        program = str(Path(sys.executable).parent / line[0])
        shell = f"{shlex.join([program, *line[1:]])}; exec sleep 600"
        self.tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), shell)

    def type(self, command: str) -> None:
        self.tmux("send-keys", "-l", command)
        self.tmux("send-keys", "Enter")

    def answer(self, number: int) -> str:
        """What the command of that number printed, once the next prompt is there."""
        end = time.monotonic() + PATIENCE
        screen = ""
        while time.monotonic() < end:
            screen = self.tmux("capture-pane", "-p", "-J").rstrip()
            prompts = [m.start() for m in re.finditer(rf"(?m)^{re.escape(PROMPT)}", screen)]
            if len(prompts) == number + 1 and screen.endswith(PROMPT):
                if number == 0:
                    return screen[: prompts[0]].strip("\n")
                shown = screen[prompts[number - 1] : prompts[number]]
                return shown.partition("\n")[2].rstrip("\n")
            time.sleep(0.05)
        raise AssertionError(f"no prompt {number} after {PATIENCE} s; the screen:\n{screen}")

    def close(self) -> None:
        self.tmux("kill-server")


def _environment() -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TERM", "GRAPHAGENT_DB")}
    paths = [str(Path(__file__).parents[2]), kept.get("PYTHONPATH", "")]
    return {
        **kept,
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "XDG_STATE_HOME": "state",
    }


def _plain(text: str, folder: Path) -> str:
    """What is the same on every machine and day: paths from the folder on, no dates."""
    text = text.replace(f"{folder.resolve()}{os.sep}", "").replace(f"{folder}{os.sep}", "")
    text = text.replace(str(folder.resolve()), ".").replace(str(folder), ".")
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00| UTC)?", "<time>", text)
    text = re.sub(r'"-----BEGIN.*?\((\d+) characters', '"<PEM>... (<n> characters', text)
    return "\n".join(line.rstrip() for line in text.splitlines())
