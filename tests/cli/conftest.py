"""The command line as tests call it: as a real process, and in this process where only its decisions matter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_help import COMMAND, Call, Done, environment

from runner.cli.main import app


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRAPHAGENT_DB", raising=False)
    return tmp_path


@pytest.fixture
def process() -> Call:
    """Calls the installed command as a process of its own."""

    def call(*words: str) -> Done:
        done = subprocess.run([COMMAND, *words], capture_output=True, text=True, env=environment(), timeout=60)
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
