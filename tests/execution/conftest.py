"""Executors that the tests of this folder share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graphagent.errors import ExecutorUnavailable
from runner.execution import LocalExecutor, SandboxExecutor


@pytest.fixture(params=[LocalExecutor, SandboxExecutor], ids=["local", "sandbox"])
async def executor(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Any]:
    """An executor of each kind, closed afterwards."""
    made = request.param()
    try:
        await made.open("probe")
    except ExecutorUnavailable as error:
        pytest.skip(f"the sandbox can't be had here: {error}")
    try:
        yield made
    finally:
        await made.aclose()
