"""Debug sessions that pages of the studio sit at: one session a run, one page a session.

A page that is reloaded finds its session again; one that is closed gives it up, and after a while the session is left
in an orderly way, so that a run that it held can be resumed by anybody.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup, TaskStatus

from graphagent.debug.session import DebugSession

GRACE = 20.0
"""Seconds that a session waits for a page after it has lost its own."""
_LEAVING = 15.0
_log = logging.getLogger(__name__)

Place = tuple[str, str]
"""Lineage and namespace of a run."""
Make = Callable[[], AbstractAsyncContextManager[DebugSession]]
"""Makes a session, open while the block runs."""


@dataclass(slots=True)
class Seat:
    """A session, and the page that sits at it (None: nobody). `turn` counts those who sat down."""

    session: DebugSession
    page: str | None = None
    turn: int = 0
    over: anyio.Event = field(default_factory=anyio.Event)
    left: anyio.Event = field(default_factory=anyio.Event)


class Seats:
    """All sessions of a studio. `group` runs the task that each session lives in."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._seats: dict[Place, Seat] = {}
        self._lock = anyio.Lock()

    async def take(self, place: Place, page: str, make: Make) -> DebugSession | None:
        """The session of a run, made if there is none; None while another page sits at it."""
        async with self._lock:
            seat = self._seats.get(place)
            if seat is not None and seat.over.is_set():
                await seat.left.wait()
                seat = None
            if seat is None:
                seat = self._seats[place] = await self._group.start(self._own, place, make)
            if seat.page not in (None, page):
                return None
            seat.page = page
            seat.turn += 1
            return seat.session

    def free(self, place: Place, page: str) -> None:
        """The page is gone, or has no connection."""
        seat = self._seats.get(place)
        if seat is not None and seat.page == page:
            seat.page = None
            self._group.start_soon(self._expire, seat, seat.turn)

    async def close(self) -> None:
        """Leave all sessions; those that take too long are let go."""
        seats = list(self._seats.values())
        for seat in seats:
            seat.over.set()
        with anyio.move_on_after(_LEAVING, shield=True):
            for seat in seats:
                await seat.left.wait()

    async def _expire(self, seat: Seat, turn: int) -> None:
        await anyio.sleep(GRACE)
        if seat.turn == turn and seat.page is None:
            seat.over.set()

    async def _own(
        self,
        place: Place,
        make: Make,
        *,
        task_status: TaskStatus[Seat],
    ) -> None:
        seat: Seat | None = None
        try:
            async with make() as session:
                seat = Seat(session)
                task_status.started(seat)
                await seat.over.wait()
        except Exception:
            if seat is None:
                raise
            _log.exception("the session of '%s' could not be left in an orderly way", place[0])
        finally:
            if seat is not None:
                seat.left.set()
                if self._seats.get(place) is seat:
                    del self._seats[place]
