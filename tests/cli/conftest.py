"""The command line as tests call it: as a real process, and in this process where only its decisions matter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_help import COMMAND, Call, Done, environment

from runner.cli.main import app


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current directory. Modules that were loaded from it are forgotten with it: the next test's module of
    the same name is another one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRAPHAGENT_DB", raising=False)
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(f"{tmp_path}/"):
            del sys.modules[name]


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
