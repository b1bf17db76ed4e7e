"""What a picture shows of a run: the state of each node, told by colour, by sign and in words, and how to change it.

A badge at the lower right corner of a node has the sign of its state, how often the node was visited if that was more
than once, and a note, such as how many branches have come to a join. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log2
from typing import Any, Literal, get_args

from graphagent.errors import UsageError, alternatives
from runner.picture.text import cut, safe, text_width

State = Literal["idle", "next", "running", "done", "failed", "waiting", "held"]
STATES: tuple[State, ...] = get_args(State)

BADGE_HEIGHT, BADGE_LETTER, BADGE_SIZE = 16.0, 6.1, 10
"""Height of a badge, width of a letter in it, and size of its font, in pixels."""
_OVERHANG, _NOTE = 10.0, 12
_SIGNS: Mapping[State, str] = {
    "idle": "",
    "next": '<path d="M-3 -4 L4 0 L-3 4 z"/>',
    "running": '<circle r="3.6" class="hollow"/><circle r="1.4"/>',
    "done": '<path class="hollow" d="M-4 0 L-1 3 L4 -3.5"/>',
    "failed": '<path class="hollow" d="M-3.5 -3.5 L3.5 3.5 M3.5 -3.5 L-3.5 3.5"/>',
    "waiting": '<path d="M-3.5 -4 h2.6 v8 h-2.6 z M0.9 -4 h2.6 v8 h-2.6 z"/>',
    "held": '<path d="M-3.5 -3.5 h7 v7 h-7 z"/>',
}
"""Drawn about (0, 0): play, a ring with a dot, a tick, a cross, two bars, a square."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a node is marked with. `state`: "idle", "next" (due), "running", "done", "failed", "waiting" (for an answer
    or at a breakpoint), "held" (it ended, but its step did not, so its result is kept and not merged). `visits`: how
    often it was started. `note`: a few letters beside the sign, such as "2/3" at a join. Raises UsageError for a state
    that isn't one, and for less than 0 visits."""

    state: State
    visits: int = 0
    note: str = ""

    def __post_init__(self) -> None:
        if self.state not in STATES:
            raise UsageError(f"'{self.state}' is no state of a node in a picture; {alternatives(self.state, STATES)}")
        if self.visits < 0:
            raise UsageError(f"a node can't have been visited {self.visits} times; give 0 or more")


IDLE = Mark("idle")


def words(mark: Mark) -> list[str]:
    """What the mark says, for those who hear the picture: ["failed", "2 visits", "2/3"]."""
    visits = [f"{mark.visits} visit{'s' if mark.visits > 1 else ''}"] if mark.visits else []
    return [*([] if mark.state == "idle" else [mark.state]), *visits, *([mark.note] if mark.note else [])]


def badge(mark: Mark) -> str:
    """The inside of the badge as SVG, with the lower right corner of the node at (0, 0); empty if there is nothing to
    say."""
    count = str(mark.visits) if mark.visits > 1 or (mark.visits and mark.state == "idle") else ""
    text = " ".join(part for part in (count, cut(mark.note, _NOTE)) if part)
    sign = _SIGNS[mark.state]
    if not text and not sign:
        return ""
    signed, lettered = (BADGE_HEIGHT if sign else 0.0), text_width(text, BADGE_LETTER)
    width = max(BADGE_HEIGHT, signed + lettered + (0.0 if not text else 5.0 if sign else 10.0))
    left = _OVERHANG - width
    out = [f'<rect x="{left:.1f}" y="{-BADGE_HEIGHT / 2:.1f}" width="{width:.1f}" height="{BADGE_HEIGHT:.0f}" rx="8"/>']
    if sign:
        out.append(f'<g transform="translate({left + BADGE_HEIGHT / 2:.1f} 0)">{sign}</g>')
    if text:
        at = left + (signed - 1 + lettered / 2 if sign else width / 2)
        out.append(f'<text x="{at:.1f}" y="{BADGE_SIZE * 0.36:.1f}">{safe(text)}</text>')
    return "".join(out)


def count_words(taken: int) -> str:
    """How often an edge was taken, to be put behind the other words for it."""
    return f", taken {taken} time{'s' if taken > 1 else ''}" if taken else ""


def edge_width(taken: int) -> float:
    """How thick a line is that was taken so often, in pixels; 0 leaves it as it is."""
    return round(min(2.2 + 0.6 * log2(taken), 5.0), 1) if taken else 0.0


def mark_patch(before: Mapping[str, Mark], after: Mapping[str, Mark]) -> list[dict[str, Any]]:
    """What has to be changed in a picture with the marks `before` so that it shows `after`, as plain data for the
    function `apply` of `APPLY_JS`: per node that differs its name, state, badge and words. A node without a mark is
    idle. In the order of `after`, then of `before`."""
    return [
        {"node": name, "state": new.state, "badge": badge(new), "words": ", ".join(words(new))}
        for name in dict.fromkeys([*after, *before])
        if (new := after.get(name, IDLE)) != before.get(name, IDLE)
    ]


def edge_patch(before: Mapping[tuple[str, str], int], after: Mapping[tuple[str, str], int]) -> list[dict[str, Any]]:
    """The same for edges: per pair of nodes how often one of the edges between them was taken, and how thick it is."""
    return [
        {"source": source, "target": target, "taken": new, "width": edge_width(new), "words": count_words(new)}
        for source, target in dict.fromkeys([*after, *before])
        if (new := after.get((source, target), 0)) != before.get((source, target), 0)
    ]
