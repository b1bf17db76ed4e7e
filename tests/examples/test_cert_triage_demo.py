"""The demo as a person or a CI job starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def demo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the demo in a folder, without a terminal."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.cert_triage.demo", *arguments],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_demo_ends_with_report_graph_and_next_steps(tmp_path: Path) -> None:
    """Answered on the command line it shows the table, the report, the graph and three commands; plain, no colours."""
    done = demo(tmp_path, "--answer", "approve=yes")

    assert done.returncode == 0, done.stderr
    for text in ("leaf-last", "waits for 'approve'", "script written to", "flowchart TD", "graphagent check"):
        assert text in done.stdout, text
    assert "\x1b[" not in done.stdout
    assert (tmp_path / "demo-out" / "remediate-leaf-last.sh").exists()
    assert (tmp_path / "demo-out" / "demo.db").exists()


def test_without_terminal_and_answer_the_run_keeps_waiting(tmp_path: Path) -> None:
    """Nobody is asked where nobody can answer: no script, and the way to answer is shown."""
    done = demo(tmp_path)

    assert done.returncode == 0, done.stderr
    assert "--answer approve=yes" in done.stdout
    assert not list((tmp_path / "demo-out").glob("remediate-*"))


def test_the_demo_as_data_can_be_run_again(tmp_path: Path) -> None:
    """--json prints one document, and a second run in the same folder starts its lineages anew."""
    first, second = (demo(tmp_path, "--json", "--sample", "expired", "--answer", "approve=no") for _ in range(2))
    found = json.loads(first.stdout)

    assert found == json.loads(second.stdout)
    assert found["samples"]["expired"] == {"verdict": "critical", "findings": ["expired"], "status": "interrupted"}
    assert found["chosen"]["status"] == "completed"
    assert found["chosen"]["script"] is None


@pytest.mark.parametrize("sample", ["healthy", "nosuch"])
def test_a_sample_that_asks_nothing_is_refused(tmp_path: Path, sample: str) -> None:
    """Only critical samples have a question to answer; the others are refused with the list of them."""
    done = demo(tmp_path, "--sample", sample)

    assert done.returncode == 2
    assert f"sample '{sample}' is not one of the critical ones: expired, missing-intermediate" in done.stderr
