"""The timeline of a run as lanes: the checkpoints of all frames in one order, child frames and forks beside the line
that they leave. Plain values; nothing of any page."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from graphagent.checkpoint.record import Header

MOST = 24
"""Lanes that are told apart; those of further branches lie on the last one."""


@dataclass(slots=True)
class Line:
    """A checkpoint of a timeline. `lane`: 0 is the line that the run began with. `older`, `newer`: its own lane goes on
    there. `through`: lanes that pass by, bit by bit; `opens`: lanes that leave from here; `closes`: lanes of child
    frames that this step ended."""

    header: Header
    lane: int = 0
    older: bool = False
    newer: bool = False
    through: int = 0
    opens: int = 0
    closes: int = 0


@dataclass(slots=True)
class _Branch:
    """Rows of one frame that follow one another. `start`: place of the row that it leaves (None: it leaves none);
    `end`: of its last row; `closed`: of the step that ended its frame, if there is one."""

    places: list[int]
    above: _Branch | None = None
    start: int | None = None
    closed: int | None = None
    lane: int = 0

    @property
    def end(self) -> int:
        return self.places[-1] if self.closed is None else self.closed


@dataclass(slots=True)
class Timeline:
    """All checkpoints, the oldest first. `place`: of each by its id. `lanes`: how many there are."""

    lines: list[Line] = field(default_factory=list)
    place: dict[str, int] = field(default_factory=dict)
    lanes: int = 1


def timeline(by_frame: Mapping[str, Sequence[Header]], root: str) -> Timeline:
    """The timeline of a run. `by_frame`: the headers of each frame, the oldest first; `root`: the frame of the run."""
    order = list(_ordered(by_frame, root))
    made = Timeline([Line(header) for header in order], {header.id: place for place, header in enumerate(order)})
    at = {(header.namespace, header.seq): place for place, header in enumerate(order)}
    branches = _branches(order, at, by_frame, root)
    made.lanes = _allocate(branches)
    _draw(made.lines, branches)
    return made


def frame_of(namespace: str, frames: Mapping[str, object], root: str) -> tuple[str, str, int] | None:
    """What runs a child frame: the frame around it, its node, and the seq of the row it started from; None for the
    frame of the run, and for one whose parent isn't known."""
    if namespace == root:
        return None
    cut = len(namespace)
    while (cut := namespace.rfind("/", 0, cut)) >= 0:
        if namespace[:cut] in frames:
            break
    parent = namespace[:cut] if cut >= 0 else ""
    if cut < 0 and root:
        return None
    own, _, place = namespace[cut + 1 :].rpartition("@")
    base = place.partition(".")[0]
    return (parent, own.rpartition("/")[2], int(base)) if base.isdigit() else None


def _ordered(by_frame: Mapping[str, Sequence[Header]], root: str) -> Iterator[Header]:
    """All headers as they were written. Within a frame by seq, and a child's behind the row that it started from; apart
    from that by time, and of those of one time the inner ones first, since their ends come before the step's."""
    waiting: dict[tuple[str, int], list[str]] = {}
    ready: list[tuple[float, int, str, int]] = []

    def push(namespace: str, place: int) -> None:
        rows = by_frame[namespace]
        if place < len(rows):
            heappush(ready, (rows[place].created_at, -namespace.count("@"), namespace, place))

    for namespace in by_frame:
        found = frame_of(namespace, by_frame, root)
        rows = by_frame.get(found[0], ()) if found is not None else ()
        if found is not None and any(row.seq == found[2] for row in _near(rows, found[2])):
            waiting.setdefault((found[0], found[2]), []).append(namespace)
        else:
            push(namespace, 0)
    while ready:
        *_, namespace, place = heappop(ready)
        header = by_frame[namespace][place]
        yield header
        push(namespace, place + 1)
        for child in waiting.pop((namespace, header.seq), ()):
            push(child, 0)


def _near(rows: Sequence[Header], seq: int) -> Sequence[Header]:
    """The row with a seq, if it is there."""
    place = bisect_right(rows, seq, key=lambda row: row.seq)
    return rows[place - 1 : place]


def _branches(
    order: Sequence[Header], at: Mapping[tuple[str, int], int], by_frame: Mapping[str, Sequence[Header]], root: str
) -> list[_Branch]:
    """The rows as branches, in the order in which those begin."""
    found: list[_Branch] = []
    of: list[_Branch] = []
    steps: dict[tuple[str, str], list[int]] = {}
    for place, header in enumerate(order):
        before = None if header.parent is None else at.get((header.namespace, header.parent))
        if before is not None and of[before].places[-1] == before:
            branch = of[before]
            branch.places.append(place)
        else:
            start = before if before is not None else _leaves(header.namespace, at, by_frame, root)
            branch = _Branch([place], None if start is None else of[start], start)
            found.append(branch)
        of.append(branch)
        if header.source == "step":
            for node in header.nodes:
                steps.setdefault((header.namespace, node), []).append(place)
    for branch in found:
        last = order[branch.places[-1]]
        child = frame_of(last.namespace, by_frame, root) if last.source == "end" else None
        if child is not None and branch.start is not None:
            ends = steps.get(child[:2], [])
            later = bisect_right(ends, branch.places[-1])
            branch.closed = ends[later] if later < len(ends) else None
    return found


def _leaves(
    namespace: str, at: Mapping[tuple[str, int], int], by_frame: Mapping[str, Sequence[Header]], root: str
) -> int | None:
    """Place of the row from which the activation of a child frame started."""
    found = frame_of(namespace, by_frame, root)
    return None if found is None else at.get((found[0], found[2]))


def _allocate(branches: Sequence[_Branch]) -> int:
    """Give every branch the first lane that is free beside the one it leaves; returns how many there are."""
    free_from: list[int] = []
    for branch in sorted(branches, key=lambda one: one.places[0] if one.start is None else one.start):
        start = branch.places[0] if branch.start is None else branch.start
        lane = 0 if branch.above is None else branch.above.lane + 1
        while lane < min(len(free_from), MOST - 1) and free_from[lane] > start:
            lane += 1
        branch.lane = lane = min(lane, MOST - 1)
        free_from += [0] * (lane + 1 - len(free_from))
        free_from[lane] = max(free_from[lane], branch.end)
    return max(len(free_from), 1)


def _draw(lines: Sequence[Line], branches: Sequence[_Branch]) -> None:
    """Note on every line what is to be drawn of the lanes."""
    begins: dict[int, int] = {}
    changes: dict[int, list[tuple[int, int]]] = {}
    for branch in branches:
        own = 1 << branch.lane
        first, last = branch.places[0], branch.places[-1]
        for place in branch.places:
            line = lines[place]
            line.lane = branch.lane
            line.older = place > first or branch.start is not None
            line.newer = place < last or branch.closed is not None
        if branch.start is not None:
            lines[branch.start].opens |= own
        if branch.closed is not None:
            lines[branch.closed].closes |= own
        begin = first if branch.start is None else branch.start
        if branch.end - begin > 1:
            changes.setdefault(begin + 1, []).append((branch.lane, 1))
            changes.setdefault(branch.end, []).append((branch.lane, -1))
    for place, line in enumerate(lines):
        for lane, change in changes.get(place, ()):
            begins[lane] = begins.get(lane, 0) + change
        line.through = sum(1 << lane for lane, count in begins.items() if count) & ~(1 << line.lane)
