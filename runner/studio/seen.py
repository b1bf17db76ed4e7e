"""Content that is costly to make: made only while it is to be seen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui
from nicegui.events import GenericEventArguments

from runner.studio.model import Change, StudioRun


class WhenSeen:
    """Makes the content of an element anew after a change, as soon as the element is in view."""

    def __init__(
        self, run: StudioRun, element: ui.element, show: Callable[[], Awaitable[None]], *kinds: Change
    ) -> None:
        self._element, self._show = element, show
        self._seen, self._stale, self._at_work = False, True, False
        run.on_change(self.changed, *kinds)
        ui.on("studio_seen", self._told)
        ui.run_javascript(f"sgSeen('c{element.id}')")

    async def changed(self) -> None:
        """What is shown is old."""
        self._stale = True
        await self._make()

    async def _told(self, event: GenericEventArguments) -> None:
        name, seen = event.args
        if name == f"c{self._element.id}":
            self._seen = bool(seen)
            await self._make()

    async def _make(self) -> None:
        if self._at_work:
            return
        self._at_work = True
        try:
            while self._seen and self._stale:
                self._stale = False
                await self._show()
        finally:
            self._at_work = False
