"""The runs of a server's threads: one at a time in each, those that go on and those that have just ended."""

from __future__ import annotations

from typing import Literal

import anyio

from runner.servers.agui.errors import Refused
from runner.servers.agui.live import Buffer, LiveRun
from runner.servers.agui.work import Work
from runner.servers.app import ServerContext
from runner.tasks import start_task

OnConflict = Literal["reject", "queue", "cancel_previous"]
Thread = tuple[str, str]
"""A user, and a thread of theirs."""


class Runs:
    """The runs of one app. `on_conflict`: what a run does whose thread has one that goes on: it is refused (`reject`),
    waits for its end (`queue`), or ends it (`cancel_previous`). `shown`: keys of the state that readers see."""

    def __init__(self, context: ServerContext, on_conflict: OnConflict, shown: tuple[str, ...], buffer: Buffer) -> None:
        self._context = context
        self._on_conflict = on_conflict
        self._shown = shown
        self._buffer = buffer
        self._going: dict[Thread, LiveRun] = {}
        self._ended: dict[tuple[str, str, str], LiveRun] = {}  # the oldest comes first
        self._lines: dict[Thread, tuple[anyio.Lock, list[str]]] = {}

    def going(self, user: str, thread: str) -> LiveRun | None:
        """The run that goes on in a thread."""
        return self._going.get((user, thread))

    def find(self, user: str, thread: str, run: str) -> LiveRun | None:
        """A run that goes on, or that has ended lately."""
        now = self._going.get((user, thread))
        if now is not None and now.work.names.run_id == run:
            return now
        return self._ended.get((user, thread, run))

    async def cancel(self, user: str, thread: str) -> LiveRun | None:
        """End the run of a thread; returns it when nothing of it runs any more, None if there is none."""
        run = self.going(user, thread)
        if run is None:
            return None
        await self._context.runner.cancel(run.work.request_id)
        await run.over.wait()
        return run

    async def begin(self, work: Work) -> LiveRun:
        """Begin a run when it is its turn. Raises Refused."""
        thread = work.key.user, work.key.session
        lock, waiting = self._lines.setdefault(thread, (anyio.Lock(), []))
        self._check_new(work, waiting)
        waiting.append(work.names.run_id)
        try:
            async with lock:
                while (before := self._going.get(thread)) is not None:
                    await self._wait_for(before)
                return self._started(work, thread)
        finally:
            waiting.remove(work.names.run_id)
            if not waiting:
                self._lines.pop(thread, None)

    def _check_new(self, work: Work, waiting: list[str]) -> None:
        """Raises Refused for a run that there is already."""
        user, thread, run = work.key.user, work.key.session, work.names.run_id
        if run in waiting or self.find(user, thread, run) is not None:
            raise Refused(
                f"there is a run '{run}' in this thread; read on in its events, or give the new one its own id",
                status=409,
                code="run_exists",
                param="runId",
            )

    async def _wait_for(self, before: LiveRun) -> None:
        if self._on_conflict == "reject":
            going = before.work.names.run_id
            told = f"run '{going}' goes on in this thread: wait for its end, or cancel it"
            raise Refused(told, status=409, code="busy", more={"runId": going})
        if self._on_conflict == "cancel_previous":
            await self._context.runner.cancel(before.work.request_id)
        await before.over.wait()

    def _started(self, work: Work, thread: Thread) -> LiveRun:
        run = LiveRun(self._context.runner, work, self._shown, self._buffer)
        self._going[thread] = run

        def free() -> None:
            if self._going.get(thread) is run:
                del self._going[thread]
            if run.has_begun:
                self._ended[(*thread, work.names.run_id)] = run
                while len(self._ended) > self._buffer.finished:
                    del self._ended[next(iter(self._ended))]

        start_task(run.go(free), f"run {work.request_id}")
        return run
