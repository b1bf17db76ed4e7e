"""A run that goes on whoever reads it, and the newest part of its stream for readers that come, go and come again."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, fields

import anyio
from ag_ui.core import BaseEvent
from ag_ui.core import Message as Shown

from graphagent.errors import UsageError
from graphagent.ledger import Event
from runner.outcome import DISCARDED
from runner.runner import Runner
from runner.servers.agui.encode import encoded
from runner.servers.agui.errors import Refused, refusal
from runner.servers.agui.files import ARTIFACTS, added, newest
from runner.servers.agui.history import conversation
from runner.servers.agui.order import Order
from runner.servers.agui.state import ShownState
from runner.servers.agui.translator import Translator
from runner.servers.agui.work import Work
from runner.servers.client_tools import offering

_log = logging.getLogger(__name__)

ANSWERS_CHECKED = 2.0
"""Seconds after which a run that was given answers, and tells nothing yet, has taken them."""
BATCH = 64
"""Events that are sent at once to a reader that is behind."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """What is kept of streams. `events`, `characters`: the newest of each run; `finished`: runs that have ended, the
    last ones of all users. Raises UsageError for one below 1."""

    events: int = 2_000
    characters: int = 1_000_000
    finished: int = 64

    def __post_init__(self) -> None:
        for one in fields(self):
            if getattr(self, one.name) < 1:
                raise UsageError(f"{one.name} is {getattr(self, one.name)}; a bound of a buffer has to be 1 or more")


class LiveRun:
    """One run. `over`: its stream has its last event, or it never began. Its readers don't hold it up: one that is so
    far behind that the buffer has no more what it misses is shown where the run is."""

    def __init__(self, runner: Runner, work: Work, shown: tuple[str, ...], buffer: Buffer) -> None:
        self.work = work
        self.over = anyio.Event()
        self._runner, self._buffer = runner, buffer
        self._state = ShownState(shown, work.state)
        self._translator = Translator(work.names, announced=work.announced, state=self._state)
        self._known = anyio.Event()  # whether it has begun
        self._failed: Exception | None = None
        self._events: list[Event] = []  # complete ones
        self._files = work.files
        self._kept: deque[tuple[int, BaseEvent, str]] = deque()
        self._size = 0
        self._last = 0
        self._before = Order()  # where the stream is before the first event that is kept
        self._more = anyio.Event()

    # -- the run ---------------------------------------------------------------------------------

    async def go(self, free: Callable[[], None]) -> None:
        """The whole run; never raises. `free`: called before its last event goes out, so that who has read it can
        begin the next run of the thread."""
        work = self.work
        try:
            with offering(work.tools):
                async with anyio.create_task_group() as group:
                    group.start_soon(self._begin_when_known)
                    await self._read(free)
                    group.cancel_scope.cancel()
        except Exception:
            _log.exception("run '%s' broke off", work.names.run_id)
        finally:
            free()
            if self._failed is None:
                self._begin()
                self._publish(self._translator.fail("incomplete", "the run ended without an outcome"))
            self._known.set()
            self.over.set()
            self._more.set()

    async def _read(self, free: Callable[[], None]) -> None:
        work = self.work
        try:
            run = self._runner.run(work.key.user, work.key.session, work.said, work.options)
            async with aclosing(run) as events:
                async for event in events:
                    self._begin()
                    if event.kind == "completion":
                        await self._complete(event, free)
                    else:
                        await self._take(event)
        except Exception as error:
            if not self._known.is_set():
                self._failed = error
            elif not self._translator.over:
                told = refusal(error)
                self._publish(self._translator.fail(told.code, str(told)))

    async def _begin_when_known(self) -> None:
        """A run has begun when its agent is about to run; one that answers questions when they are found to fit."""
        await self.work.marks.begun.wait()
        if self.work.said is None:
            await anyio.sleep(ANSWERS_CHECKED)
        self._begin()

    def _begin(self) -> None:
        if not self._known.is_set():
            self._publish(self._translator.begin(self.work.results))
            self._known.set()

    async def _take(self, event: Event) -> None:
        if not event.partial:
            self._events.append(event)
        self._publish(self._translator.take(event))
        if event.is_tool_result:
            self._publish(await self._artifacts())

    async def _complete(self, event: Event, free: Callable[[], None]) -> None:
        """The end. Where readers were told what the session doesn't say, they are told the whole first."""
        if event.error is not None and event.error.type != "cancelled":
            _log.warning("run '%s' has failed: %s", self.work.names.run_id, event.error)
        told = await self._artifacts()
        if self._translator.changed or event.extensions.get(DISCARDED):
            told += self._translator.snapshot(await self._conversation())
        free()
        self._publish([*told, *self._translator.take(event)])

    async def _artifacts(self) -> list[BaseEvent]:
        now = await newest(self._runner.services.artifacts, self.work.key)
        found, self._files = added(self._files, now), {**self._files, **now}
        return self._translator.custom(ARTIFACTS, {"artifacts": found}) if found else []

    async def _conversation(self) -> list[Shown]:
        """The messages of the session, and of this run as far as they are not stored yet."""
        try:
            session = await self._runner.sessions.get(self.work.key)
            stored = [] if session is None else session.events
        except Exception:
            _log.warning("session '%s' can't be read for its reader", self.work.key.session, exc_info=True)
            stored = []
        known = {event.id for event in stored}
        return conversation([*stored, *(event for event in self._events if event.id not in known)])

    def _publish(self, events: Iterable[BaseEvent]) -> None:
        for event in events:
            self._last += 1
            text = encoded(event, self._last)
            self._kept.append((self._last, event, text))
            self._size += len(text)
        while len(self._kept) > self._buffer.events or (self._size > self._buffer.characters and len(self._kept) > 1):
            _, old, text = self._kept.popleft()
            self._size -= len(text)
            self._before.take(old)
        self._more.set()
        self._more = anyio.Event()

    # -- its readers -----------------------------------------------------------------------------

    @property
    def has_begun(self) -> bool:
        """Whether it has a stream."""
        return self._last > 0

    async def begun(self) -> None:
        """Returns when the run has begun. Raises what kept it from that."""
        await self._known.wait()
        if self._failed is not None:
            raise self._failed

    async def follow(self, after: int = 0) -> AsyncGenerator[str, None]:
        """The events after a number, as text, to the last. Where they are no longer kept, or for a reader that has none
        (0), it begins with RUN_STARTED; what is missing is told as it stands now. Raises Refused for a number that no
        event has."""
        if after > self._last:
            raise Refused(f"the run has {self._last} events, none of number {after}", param="after", code="bad_cursor")
        reader, at = self._before.copy(), after
        if after and self._is_kept(after + 1):
            for _, event, _ in self._from(self._first, after + 1):
                reader.take(event)
        elif not self._is_kept(1):
            reader = Order()
            at, text = await self._picture(reader)
            yield text
        else:
            reader = Order()
        while True:
            if not self._is_kept(at + 1):
                at, text = await self._picture(reader)
                yield text
            batch = self._from(at + 1, at + 1 + BATCH)
            if batch:
                at = batch[-1][0]
                for _, event, _ in batch:
                    reader.take(event)
                yield "".join(text for _, _, text in batch)
            elif self.over.is_set():
                return
            else:
                await self._more.wait()

    @property
    def _first(self) -> int:
        return self._last - len(self._kept) + 1

    def _is_kept(self, number: int) -> bool:
        """Whether an event is kept, or has yet to come."""
        return number >= self._first

    def _from(self, first: int, end: int) -> Sequence[tuple[int, BaseEvent, str]]:
        start = first - self._first
        return [self._kept[place] for place in range(start, min(end - self._first, len(self._kept)))]

    async def _picture(self, reader: Order) -> tuple[int, str]:
        """Where the run is: what `reader` has open is closed, and what is open now is opened. Who breaks off in the
        middle of it has to take all of it again, so its last event alone has a number."""
        messages = await self._conversation()
        at = self._last - 1 if self._translator.over else self._last
        events = [*reader.closing(), *self._translator.picture(messages, first=not reader.begun)]
        told = [event for event in events if reader.take(event)]
        return at, "".join(encoded(event, at if event is told[-1] else None) for event in told)
