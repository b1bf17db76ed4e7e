"""One thread that writes to SQLite, so that the event loop never waits for a disk to sync."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import anyio
from anyio.lowlevel import current_token

from graphagent.errors import CheckpointError

T = TypeVar("T")


class Reply(Generic[T]):
    """A result that a thread hands to a task of an event loop, asyncio's or trio's."""

    def __init__(self) -> None:
        self._done = anyio.Event()
        self._loop: Any = current_token().native_token
        self._result: T | None = None
        self._error: BaseException | None = None

    def set(self, result: T | None, error: BaseException | None = None) -> None:
        """Called by the thread, once."""
        self._result, self._error = result, error
        notify = getattr(self._loop, "call_soon_threadsafe", None) or self._loop.run_sync_soon
        try:
            notify(self._done.set)
        except RuntimeError:  # the loop ended before its answer came: nobody waits any more
            return

    async def get(self) -> T:
        """The result, or the error raised. Giving up waiting doesn't undo the work."""
        await self._done.wait()
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]


class WriterThread:
    """Runs what is given to it in order, in one daemon thread that starts with the first piece of work.

    `work` is called with all pieces that are waiting if `group` is set, else with one at a time; it answers each.
    """

    def __init__(self, work: Callable[[list[tuple[Any, Reply[Any]]]], None], *, group: bool) -> None:
        self._work = work
        self._group = group
        self._queue: queue.SimpleQueue[tuple[Any, Reply[Any]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    async def submit(self, piece: Any) -> Any:
        """Have `piece` worked on and wait for the answer. Raises CheckpointError after `close`."""
        if self._closed:
            raise CheckpointError("this checkpoint store is closed; open a new one")
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="graphagent-writer", daemon=True)
            self._thread.start()
        reply: Reply[Any] = Reply()
        self._queue.put((piece, reply))
        return await reply.get()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            pieces = [first]
            while self._group and not self._queue.empty():
                piece = self._queue.get()
                if piece is None:
                    self._queue.put(None)
                    break
                pieces.append(piece)
            self._work(pieces)

    async def close(self) -> None:
        """Finish what was submitted, then end the thread."""
        self._closed = True
        if self._thread is not None:
            self._queue.put(None)
            await anyio.to_thread.run_sync(self._thread.join)
            self._thread = None
