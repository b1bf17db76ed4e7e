"""What a step costs, in counts: they repeat exactly where times do not."""

import pytest

from benchmarks import counts
from benchmarks.matrix import OURS


def met(found):
    """The counts that have a bound, and a text for those that break it."""
    return [f"{count.what}: {count.value}, at most {count.must}" for count in found if not count.met]


def test_python_calls_per_step():
    """A step of a two-node loop with a route takes at most 40 Python calls, as cProfile counts them."""
    assert met(counts.calls(OURS)) == []


def test_no_thread_hand_off_per_saved_step():
    """With `sync="normal"` a saved step is written without a thread hand-off."""
    assert met([counts.handoffs(OURS)]) == []


def test_one_disk_sync_per_saved_step():
    """With `sync="full"` a saved step costs at most one fdatasync."""
    found = counts.syncs(OURS)
    if found.value == "strace is not installed":
        pytest.skip("needs strace")
    assert met([found]) == []


def test_database_bytes_grow_on_a_line():
    """Bytes a turn at 100, 300, 1000 and 3000 turns of a 500-byte message: the later ones don't outgrow the first."""
    assert met(counts.bytes_per_turn(OURS)) == []
