"""Looks for what other processes write to a run that a page shows, often while something happens."""

from __future__ import annotations

from nicegui import ui

from graphagent.errors import GraphAgentError
from runner.studio.model import StudioRun

_EVERY, _CALM, _STATUS = 0.5, 2.0, 2.0
_UNTIL_CALM = 20
"""Looks without anything new, and without an owner, after which the pace is slower."""


class Follower:
    """Looks every half second, or every two while nothing happens; the status of the run every two seconds."""

    def __init__(self, run: StudioRun) -> None:
        self._run = run
        self._quiet = self._since_status = 0
        self._looking = False
        self._timer = ui.timer(_EVERY, self.look, immediate=False)
        self._problem = False

    async def look(self) -> None:
        """Look once; a store that can't be read is told of once, and tried again."""
        if self._looking:
            return
        self._looking = True
        try:
            new = await self._run.refresh()
            self._since_status += 1
            if not new and self._since_status * self._timer.interval >= _STATUS:
                await self._run.look_again()
                self._since_status = 0
            self._problem = False
        except GraphAgentError as error:
            if not self._problem:
                self._run.say(f"the store can't be read: {error}", "negative")
            self._problem, new = True, False
        finally:
            self._looking = False
        self._quiet = 0 if new or self._is_running() else self._quiet + 1
        self._timer.interval = _CALM if self._quiet > _UNTIL_CALM else _EVERY

    def _is_running(self) -> bool:
        return self._run.info is not None and self._run.info.status == "running"
