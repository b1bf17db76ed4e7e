"""The timeline as lanes: the order of checkpoints over frames, and which lane each of them lies on."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graphagent.checkpoint.record import Header
from runner.studio.lanes import MOST, Timeline, frame_of, timeline


def row(space: str, seq: int, at: float, source: Any = "step", nodes: tuple[str, ...] = (), **more: Any) -> Header:
    """A header that follows the one before it."""
    parent = more.get("parent", seq - 1 if seq else None)
    return Header("run", space, seq, parent, source, seq, nodes, at)


def told(found: Timeline) -> list[str]:
    """Per row, the newest first: its place, its lane, and the lanes that are drawn there (`|` passing, `/` opening,
    `\\` closing)."""
    lines = []
    for line in reversed(found.lines):
        drawn = "".join(
            sign * bool(mask >> lane & 1) + (str(lane) if mask >> lane & 1 else "")
            for sign, mask in (("|", line.through), ("/", line.opens), ("\\", line.closes))
            for lane in range(found.lanes)
        )
        lines.append(f"{line.header.id.removeprefix('run:')} {line.lane}{' ' if drawn else ''}{drawn}")
    return lines


def test_a_child_frame_is_a_lane_between_the_rows_of_its_step() -> None:
    """A child's rows come between the row it started from and that of its step, also if all have one time."""
    for tick in (0.0, 1.0):
        frames = {
            "": [
                row("", 0, 0, "input"),
                row("", 1, 1 * tick, nodes=("a",)),
                row("", 2, 5 * tick, nodes=("ship",)),
                row("", 3, 5 * tick, "end"),
            ],
            "ship@1.0": [
                row("ship@1.0", 0, 2 * tick, "input"),
                row("ship@1.0", 1, 3 * tick, nodes=("x",)),
                row("ship@1.0", 2, 3 * tick, "end"),
            ],
        }
        assert told(timeline(frames, "")) == [
            "3 0",
            "2 0 \\1",
            "ship@1.0:2 1 |0",
            "ship@1.0:1 1 |0",
            "ship@1.0:0 1 |0",
            "1 0 /1",
            "0 0",
        ]


def test_children_side_by_side_and_within_one_another_have_their_own_lanes() -> None:
    """Two children of one step lie beside each other; what runs inside of one lies further out."""
    frames = {
        "agent": [row("agent", 0, 0, "input"), row("agent", 1, 9, nodes=("b", "c"))],
        "agent/b@0.0": [
            row("agent/b@0.0", 0, 1, "input"),
            row("agent/b@0.0", 1, 7, nodes=("in",)),
            row("agent/b@0.0", 2, 7, "end"),
        ],
        "agent/b@0.0/in@0.0": [row("agent/b@0.0/in@0.0", 0, 3, "input"), row("agent/b@0.0/in@0.0", 1, 4, "end")],
        "agent/c@0.1": [row("agent/c@0.1", 0, 2, "input"), row("agent/c@0.1", 1, 5, "end")],
    }
    found = timeline(frames, "agent")
    lanes = {line.header.namespace: line.lane for line in found.lines}
    assert lanes == {"agent": 0, "agent/b@0.0": 1, "agent/c@0.1": 2, "agent/b@0.0/in@0.0": 3}
    assert found.lines[-1].closes == 0b110
    assert found.lines[0].opens == 0b110


def test_a_fork_in_the_same_lineage_is_a_branch() -> None:
    """A row behind an older one leaves its line; one behind the end of a line goes on with it."""
    frames = {
        "": [
            row("", 0, 0, "input"),
            row("", 1, 1),
            row("", 2, 2),
            row("", 3, 3, "edit", parent=1),
            row("", 4, 4),
            row("", 5, 5, "fork", parent=2),
        ]
    }
    assert told(timeline(frames, "")) == ["5 0", "4 1 |0", "3 1 |0", "2 0 |1", "1 0 /1", "0 0"]


def test_a_loop_of_child_frames_keeps_to_one_lane() -> None:
    """Each lap's child has the lane that the last one left."""
    frames = {"": [row("", seq, 10.0 * seq, nodes=("n",)) for seq in range(50)]}
    for seq in range(49):
        space = f"n@{seq}.0"
        frames[space] = [row(space, 0, 10.0 * seq + 1, "input"), row(space, 1, 10.0 * seq + 2, "end")]
    assert timeline(frames, "").lanes == 2


def test_hundreds_of_children_side_by_side_share_the_last_lane() -> None:
    """What can't be told apart any more lies on the last lane."""
    frames = {"": [row("", 0, 0, "input"), row("", 1, 9, nodes=("n",))]}
    for place in range(300):
        frames[f"n@0.{place}"] = [row(f"n@0.{place}", 0, 1, "input"), row(f"n@0.{place}", 1, 2, "end")]
    found = timeline(frames, "")
    assert found.lanes == MOST
    assert len(found.lines) == 602


def test_rows_whose_frame_around_them_was_pruned_are_shown_all_the_same() -> None:
    """A child whose first row, or whose parent's row, is gone still has its place by time."""
    frames = {"": [row("", 7, 5)], "n@3.0": [row("n@3.0", 4, 3), row("n@3.0", 5, 4, "end")]}
    assert [line.header.id for line in timeline(frames, "").lines] == ["run:n@3.0:4", "run:n@3.0:5", "run:7"]
    assert timeline({}, "").lines == []


def test_what_runs_a_frame_is_read_from_its_name() -> None:
    """Parent, node and base; a node on a branch of a split, and nodes of agents, too."""
    frames = {"": [], "a@1.0": [], "bot": []}
    assert frame_of("a@1.0", frames, "") == ("", "a", 1)
    assert frame_of("a@1.0/b@12.3", frames, "") == ("a@1.0", "b", 12)
    assert frame_of("left/b@12.3", frames, "") == ("", "b", 12)
    assert frame_of("bot/b@2.0", {"bot": []}, "bot") == ("bot", "b", 2)
    assert frame_of("bot", frames, "bot") is None
    assert frame_of("other/b@2.0", {"bot": []}, "bot") is None


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=60))
def test_every_row_has_one_place_and_lanes_never_cross_a_dot(picks: list[tuple[int, int]]) -> None:
    """Whatever the tree of forks: each row once, parents before children, no lane passes through a dot."""
    rows = [row("", 0, 0, "input")]
    for number, (parent, tick) in enumerate(picks, 1):
        rows.append(row("", number, rows[-1].created_at + tick, parent=parent % number))
    found = timeline({"": rows}, "")
    assert sorted(found.place.values()) == [*range(len(rows))]
    for line in found.lines:
        assert not line.through >> line.lane & 1 or found.lanes == MOST
        assert line.header.parent is None or found.place[f"run:{line.header.parent}"] < found.place[line.header.id]
    assert sum(bin(line.opens).count("1") for line in found.lines) <= len(rows)
