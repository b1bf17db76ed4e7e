"""What an agent costs, as far as it repeats: the benchmark's agent does its work, and waits for no thread."""

from __future__ import annotations

import pytest

from benchmarks.worker import measurement


@pytest.mark.parametrize("peer", ["limit", "ours", "ours-listen"])
@pytest.mark.parametrize("workload", ["W9", "W9m", "W9s"])
def test_the_workload_does_its_work(peer: str, workload: str) -> None:
    """50 rounds of the tool and the answer, by hand and by ours; a wrong talk would be an error."""
    assert measurement(peer, (workload, 2), "--mode", "once") == {"steps": 202}


def test_sessions_and_checkpoints_in_sqlite_take_no_thread() -> None:
    """A run with both in one file hands nothing over to a thread."""
    assert measurement("ours", ("W9s", 1), "--mode", "handoffs")["handoffs"] == 0


def test_calls_per_step_of_an_agent() -> None:
    """A step of an agent in memory takes at most 290 calls, as cProfile counts them, those of the script included."""
    found = measurement("ours", ("W9", 1), "--mode", "calls")
    assert found["calls"] / found["steps"] <= 290
