"""The timeline of a run: its checkpoints as a list with lanes, of which the page has only those around what is seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from html import escape

from nicegui import ui
from nicegui.events import GenericEventArguments

from graphagent.checkpoint.record import Header
from runner.studio.lanes import Line, Timeline, frame_of, timeline
from runner.studio.model import StudioRun

HEIGHT, AROUND = 24, 50
"""Of a row in CSS pixels; rows that the page has above and below those that were asked for."""
_SEEN, _WIDTH, _SHOWN = 60, 12, 8
"""Rows that may be seen at once, pixels of a lane, and lanes that are drawn apart."""


class TimelinePanel:
    """The list, newest first. Its places count from the oldest row; rows in the page count from the top."""

    def __init__(self, run: StudioRun) -> None:
        self._run = run
        self._timeline = Timeline()
        self._of = self._version = -1
        self._first = 0

    def build(self) -> None:
        """The elements, and what they listen to."""
        with ui.element("div").classes("sg-bar"), ui.element("h2"):
            self._title = ui.label("Timeline")
        self._box = ui.element("div").classes("sg-rows")
        self._box.props('tabindex=0 role=listbox aria-label="Checkpoints, the newest first"')
        with self._box:
            self._rows = ui.html("", sanitize=False).props("role=presentation")
        ui.run_javascript(f"sgRows('{self._id}', {HEIGHT})")
        ui.on("studio_rows", self._asked)
        ui.on("studio_row", self._clicked)
        ui.on("studio_row_by", self._moved)
        self._run.on_change(self._show, "moment", "rows")
        self._show()

    @property
    def _id(self) -> str:
        return f"c{self._box.id}"

    @property
    def _cursor(self) -> int | None:
        return self._timeline.place.get(self._run.moment.id)

    def _show(self) -> None:
        """Show the cursor, and what is new."""
        run, before = self._run, len(self._timeline.lines)
        if self._of != run.rows.version:
            self._timeline, self._of = timeline(run.rows.by_frame, run.namespace), run.rows.version
        total, cursor = len(self._timeline.lines), self._cursor
        self._title.text = f"Timeline, {total:,} checkpoint{'' if total == 1 else 's'}"
        grown = total - before if before else 0
        top = None if cursor is None else total - 1 - cursor
        self._first += grown
        if top is not None and not self._first <= top < self._first + _SEEN:
            self._first = max(0, top - _SEEN // 2)
        self._draw()
        ui.run_javascript(f"sgRowsAt('{self._id}', {self._version}, {HEIGHT}, {grown}, {json.dumps(top)})")

    def _draw(self) -> None:
        """Put the rows around the wanted ones into the page."""
        lines, total = self._timeline.lines, len(self._timeline.lines)
        first, last = max(0, self._first - AROUND), min(total, self._first + _SEEN + AROUND)
        self._version += 1
        width = _WIDTH * min(self._timeline.lanes, _SHOWN) + 4
        cursor = self._cursor
        self._box.props(remove="aria-activedescendant")
        if cursor is not None and first <= total - 1 - cursor < last:
            self._box.props(f"aria-activedescendant={self._id}-{cursor}")
        rows = (
            self._line(lines[place], place, width, place == cursor)
            for place in range(total - 1 - first, total - 1 - last, -1)
        )
        self._rows.content = (
            f'<div class="sg-height" role="presentation" style="height:{total * HEIGHT}px">'
            f'<div class="sg-window" role="presentation" data-version="{self._version}" data-from="{first}" '
            f'data-total="{total}" style="top:{first * HEIGHT}px">{"".join(rows)}</div></div>'
        )

    def _line(self, line: Line, place: int, width: int, now: bool) -> str:
        header, total = line.header, len(self._timeline.lines)
        at = datetime.fromtimestamp(header.created_at).astimezone()
        title = f"{header.id}, {header.source}, {at.isoformat(' ', 'milliseconds')}"
        source = "" if header.source == "step" else f'<span class="source {header.source}">{header.source}</span>'
        return (
            f'<div class="sg-line" role="option" id="{self._id}-{place}" aria-selected="{str(now).lower()}" '
            f'aria-setsize="{total}" aria-posinset="{total - place}" data-place="{place}" title="{escape(title)}">'
            f'{_svg(line, width)}<span class="no">{header.step}</span>'
            f'<span class="what">{escape(self._what(header))}</span>'
            f"{source}<time>{at:%H:%M:%S}</time></div>"
        )

    def _what(self, header: Header) -> str:
        """The nodes that ran; of the first row of a child frame the node that runs it."""
        if header.source == "input" and header.namespace != self._run.namespace:
            found = frame_of(header.namespace, self._run.rows.by_frame, self._run.namespace)
            return f"in {found[1] if found is not None else header.namespace}"
        if header.source in ("edit", "fork") and header.parent is not None:
            return f"from {header.parent}"
        return ", ".join(header.nodes)

    def _asked(self, event: GenericEventArguments) -> None:
        """The page has come to the end of the rows that it has."""
        total = len(self._timeline.lines)
        self._first = max(0, min(int(event.args), total - 1))
        self._draw()
        ui.run_javascript(f"sgRowsAt('{self._id}', {self._version}, {HEIGHT}, 0, null)")

    async def _clicked(self, event: GenericEventArguments) -> None:
        await self._goto(int(event.args))

    async def _moved(self, event: GenericEventArguments) -> None:
        cursor = self._cursor
        if cursor is not None:
            await self._goto(min(max(cursor + int(event.args), 0), len(self._timeline.lines) - 1))

    async def _goto(self, place: int) -> None:
        if 0 <= place < len(self._timeline.lines):
            header = self._timeline.lines[place].header
            if header.id != self._run.rows.newest_id:
                self._run.following = False
            await self._run.goto(header.id)


def _svg(line: Line, width: int) -> str:
    """The lanes of a row. Those that are not drawn apart lie on the last one."""
    middle = HEIGHT // 2

    def x(lane: int) -> int:
        return _WIDTH * min(lane, _SHOWN - 1) + 8

    own = x(line.lane)
    path = [f"M{x(lane)} 0V{HEIGHT}" for lane in _bits(line.through)]
    path += [f"M{own} {middle}V{HEIGHT}"] if line.older else []
    path += [f"M{own} 0V{middle}"] if line.newer else []
    path += [f"M{own} {middle}C{x(lane)} {middle} {x(lane)} {middle} {x(lane)} 0" for lane in _bits(line.opens)]
    path += [f"M{own} {middle}C{x(lane)} {middle} {x(lane)} {middle} {x(lane)} {HEIGHT}" for lane in _bits(line.closes)]
    return (
        f'<svg width="{width}" height="{HEIGHT}" aria-hidden="true"><path class="sg-lane" d="{"".join(path)}"/>'
        f'<circle class="sg-dot {line.header.source}" cx="{own}" cy="{middle}" r="4"/></svg>'
    )


def _bits(mask: int) -> Iterator[int]:
    lane = 0
    while mask >> lane:
        if mask >> lane & 1:
            yield lane
        lane += 1


def panel(run: StudioRun) -> None:
    """The timeline of a run."""
    TimelinePanel(run).build()
