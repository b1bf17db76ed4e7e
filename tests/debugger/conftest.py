"""A debugger in this process: commands in, replies out, as data and as text."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runner.cli.debug import debug
from runner.cli.debug_options import DebugOptions
from runner.cli.output import Output

BROKEN = Path(__file__).parent / "broken"
Debug = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample certificates of the demo, with an input file for each."""
    made = pytest.importorskip("examples.cert_triage.samples", reason="the examples need cryptography")
    folder = tmp_path_factory.mktemp("samples")
    made.make_samples(folder, datetime.now(UTC))
    return folder


@pytest.fixture
def debugged(tmp_path: Path) -> Debug:
    """A function that carries out commands on a target and returns their replies as data."""

    def run(target: str, *commands: str, db: str | None = None, **options: Any) -> list[dict[str, Any]]:
        out = io.StringIO()
        url = db or f"sqlite:///{tmp_path / 'runs.db'}"
        chosen = DebugOptions(target=target, db=url, command=list(commands), as_json=True, **options)
        debug(chosen, Output(True, out))
        return [json.loads(line) for line in out.getvalue().splitlines()]

    return run


@pytest.fixture
def shown(tmp_path: Path) -> Callable[..., str]:
    """The same as text, as a person reads it."""

    def run(target: str, *commands: str, db: str | None = None, **options: Any) -> str:
        out = io.StringIO()
        url = f"sqlite:///{tmp_path / 'runs.db'}" if db is None else db or None
        debug(DebugOptions(target=target, db=url, command=list(commands), **options), Output(False, out))
        return out.getvalue()

    return run
