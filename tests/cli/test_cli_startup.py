"""What the command line costs and says before it does anything."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from cli_help import Call, environment, graph

from runner.cli.main import COMMANDS

PROBE = """
import json, sys
from runner.cli.main import app
try:
    app({words!r})
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)))
"""


def loaded(*words: str) -> set[str]:
    """The top packages that a command has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(words=list(words))], capture_output=True, text=True, env=environment()
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_help_imports_nothing_slow() -> None:
    """Help needs no database, model or graph package, not even the engine."""
    assert not loaded("--help") & {"sqlalchemy", "litellm", "networkx", "sqlmodel", "pydantic", "graphagent", "rich"}


def test_a_run_without_a_store_imports_no_database() -> None:
    """A run in memory imports neither SQLAlchemy nor litellm, networkx or psycopg."""
    assert not loaded("run", graph("plain"), "--json") & {"sqlalchemy", "litellm", "networkx", "sqlmodel", "psycopg"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(call: Call, name: str) -> None:
    """Each command explains itself in a first line that fits the list of commands, and knows --json."""
    done = call(name, "--help")
    assert done.code == 0
    assert "--json" in done.out
    first = (COMMANDS[name][0].__doc__ or "").splitlines()[0]
    assert first.endswith(".")
    assert len(first) <= 60


def test_version_and_missing_command(process: Call) -> None:
    """--version says which; no command shows the help; an unknown one is misuse."""
    assert process("--version").out.startswith("graphagent 0.")
    assert "Commands:" in process().out + process().err
    assert process("rnu").code == 2
