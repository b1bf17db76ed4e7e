"""The command line as tests call it: as a real process, and in this process where only its decisions matter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runner.cli.main import app

COMMAND = str(Path(sys.executable).with_name("graphagent"))
GRAPHS = Path(__file__).with_name("graphs.py")


@dataclass(frozen=True)
class Done:
    """What a command came back with."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output as the one JSON document that it must be."""
        return json.loads(self.out)


Call = Callable[..., Done]


def environment() -> dict[str, str]:
    """The environment of a command: warnings are errors, no store and no terminal that the tests happen to have."""
    kept = {name: value for name, value in os.environ.items() if name not in ("GRAPHAGENT_DB", "NO_COLOR", "COLUMNS")}
    return {**kept, "PYTHONWARNINGS": "error"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRAPHAGENT_DB", raising=False)
    return tmp_path


@pytest.fixture
def process() -> Call:
    """Calls the installed command as a process of its own."""

    def call(*words: str, stdin: str = "", **more: str) -> Done:
        done = subprocess.run(
            [COMMAND, *words], input=stdin, capture_output=True, text=True, env={**environment(), **more}, timeout=60
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls the command inside this process, which is quicker."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def inside(*words: str) -> Done:
        capsys.readouterr()
        try:
            app(list(words))
        except SystemExit as left:
            code = left.code
        else:
            code = None
        shown = capsys.readouterr()
        return Done(int(code or 0), shown.out, shown.err)

    return inside


def graph(name: str) -> str:
    """The target of a graph of graphs.py."""
    return f"{GRAPHS}:{name}"
