"""Starts one measurement in a process of its own and reads its JSON line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.matrix import PEERS, Cell

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
TIMEOUT_SECONDS = 150.0
TELEMETRY = ("LANGSMITH", "LANGCHAIN", "OTEL")  # settings that would have a peer report its runs somewhere


def interpreter(peer: str) -> Path:
    """The Python that runs the peer, whether or not it is there."""
    venv = PEERS[peer].venv
    return Path(sys.executable) if venv is None else FOLDER / ".peers" / venv / "bin" / "python"


def is_installed(peer: str) -> bool:
    return interpreter(peer).exists()


def command(peer: str, cell: Cell, *options: str) -> list[str]:
    module, variant = PEERS[peer].module, PEERS[peer].variant
    workload, size = cell
    start = [str(interpreter(peer)), "-m", "benchmarks.measure", module, workload, str(size)]
    return [*start, *(("--variant", variant) if variant else ()), *options]


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(TELEMETRY)}


def output(arguments: list[str]) -> str:
    """Standard output of a finished process; raises RuntimeError with the end of its errors when it failed."""
    done = subprocess.run(
        arguments, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=environment(), cwd=ROOT, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"process ended with {done.returncode}: {done.stderr.strip()[-300:].replace(str(ROOT), '')}")
    return done.stdout


def measurement(peer: str, cell: Cell, *options: str) -> dict[str, Any]:
    """What the worker measured, or {"not_available": why}, or {"error": what}."""
    try:
        result: dict[str, Any] = json.loads(output(command(peer, cell, *options)).splitlines()[-1])
        return result
    except subprocess.TimeoutExpired:
        return {"error": f"no result after {TIMEOUT_SECONDS:.0f} s"}
    except (RuntimeError, IndexError, ValueError) as error:
        return {"error": f"no result: {error}"}
