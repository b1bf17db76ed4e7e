"""Who may run in a session: one run at a time, also over processes that share a checkpoint store."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio
from anyio.lowlevel import current_token

from graphagent.checkpoint.store import CheckpointStore, Lease, Signal
from graphagent.errors import LineageBusy, SessionBusy
from graphagent.ledger import SessionKey
from graphagent.patience import at_most
from runner.run_state import RunState

_log = logging.getLogger(__name__)

OnConflict = Literal["reject", "queue", "cancel_previous"]
FIRST_WAIT, LONGEST_WAIT = 0.005, 0.25
RELEASE_TIME = 10.0
"""Seconds that the store may work to take a session back: a lease that is not given back has to run out before the
session's next run."""


def lock_name(key: SessionKey) -> str:
    """The lineage whose lease stands for a session. It has no rows."""
    return "/".join(("session", *key))


@dataclass(slots=True)
class _Line:
    """The runs of a session in this process: the one that runs, and those that wait, first come first served."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    runs: list[RunState] = field(default_factory=list)


class Turns:
    """Gives sessions out to runs. `on_conflict`: a run that finds its session taken is refused (`reject`), waits its
    turn (`queue`), or ends those before it and takes over (`cancel_previous`)."""

    def __init__(self, checkpoints: CheckpointStore, on_conflict: OnConflict) -> None:
        self._checkpoints = checkpoints
        self._on_conflict = on_conflict
        self._lines: dict[SessionKey, _Line] = {}

    @asynccontextmanager
    async def hold(self, run: RunState) -> AsyncIterator[None]:
        """The session for the time of a run. Raises SessionBusy under `reject`."""
        line = self._lines.setdefault(run.key, _Line())
        if line.runs and self._on_conflict == "reject":
            raise _busy(run.key, f"run '{line.runs[0].request_id}' of this process")
        if self._on_conflict == "cancel_previous":
            for other in line.runs:
                other.cancel(f"superseded by '{run.request_id}'")
        line.runs.append(run)
        try:
            async with line.lock:
                lease = await self._lease(run)
                try:
                    yield
                finally:
                    await self._give_back(lease)
        finally:
            line.runs.remove(run)
            if not line.runs:
                del self._lines[run.key]

    async def _give_back(self, lease: Lease) -> None:
        try:
            with at_most(RELEASE_TIME, shield=True):
                await self._checkpoints.release(lease)
                return
            _log.warning("'%s' was not given back in %s s; its lease will run out", lease.lineage, RELEASE_TIME)
        except Exception:
            _log.warning("'%s' was not given back; its lease will run out", lease.lineage, exc_info=True)

    async def _lease(self, run: RunState) -> Lease:
        """The session against other processes, and other runners on the same store."""
        name = lock_name(run.key)
        loop: Any = current_token().native_token  # of trio or of asyncio
        soon = getattr(loop, "run_sync_soon", None) or loop.call_soon_threadsafe

        def on_signal(signal: Signal) -> None:
            soon(run.cancel, "superseded" if signal == "cancel" else "another process has taken the session over")

        wait = FIRST_WAIT
        while True:
            try:
                return await self._checkpoints.acquire(name, run.request_id, on_signal=on_signal)
            except LineageBusy as error:
                if self._on_conflict == "reject":
                    raise _busy(run.key, str(error)) from error
            if self._on_conflict == "cancel_previous":
                await self._checkpoints.request_cancel(name)
            await anyio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)


def _busy(key: SessionKey, who: str) -> SessionBusy:
    return SessionBusy(
        f"session '{key.session}' of user '{key.user}' is taken by {who}: wait for its end, cancel it, or make the "
        f"runner with on_conflict='queue' or 'cancel_previous'"
    )
