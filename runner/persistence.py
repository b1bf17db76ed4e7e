"""What of a run goes into its session, and how: spec/context section 3."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import anyio

from graphagent.agents.agent_tool import TRIGGER
from graphagent.agents.tool_run import CANCELLED
from graphagent.ledger import Event, SessionKey
from graphagent.messages import Message, ToolCall
from graphagent.patience import in_line
from graphagent.services import SessionService

_log = logging.getLogger(__name__)

APOLOGY = "An error occurred during execution. Please contact the service provider."
"""What an assistant says in an event with an error that has no text of its own."""

Prepare = Callable[[Event], Awaitable[Event]]
ToStore = Callable[[Event], Awaitable[Event | None]]
Stored = Callable[[Event], Awaitable[None]]


@dataclass(slots=True)
class _Entry:
    """An event of the run. `event`: as the reader gets it, once it has been prepared."""

    lock: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    event: Event | None = None
    stored: bool = False
    handed_out: bool = False


class Ledger:
    """Stores the events of one run, each once, in whatever way it comes first: from a node before it counts as
    finished, or in the agent's stream.

    `prepare`: what is done to every event first. `to_store`: the event as it is stored, None for one that shall not be.
    `lenient`: the run goes on if an event can't be stored; else that is raised, so that the activation that made it
    fails. Either way the append is tried twice, and `failures` says what happened. `stored`: is told of each event that
    was stored.
    """

    def __init__(
        self,
        sessions: SessionService,
        key: SessionKey,
        prepare: Prepare,
        to_store: ToStore,
        *,
        lenient: bool,
        stored: Stored | None = None,
    ) -> None:
        self.failures: list[Exception] = []
        self._sessions = sessions
        self._key = key
        self._prepare = prepare
        self._to_store = to_store
        self._lenient = lenient
        self._stored = stored
        self._line = anyio.Lock(fast_acquire=True)
        self._entries: dict[str, _Entry] = {}
        self._open_calls: dict[str, tuple[ToolCall, Event]] = {}

    async def admit(self, event: Event) -> Event:
        """The event as it is known from now on, stored if it belongs into the session.

        One whose append failed is stored when it comes again. Raises what the session service raised.
        """
        if event.partial and not event.state_delta:
            return await self._prepare(event)
        entry = self._entries.setdefault(event.id, _Entry())
        async with entry.lock:
            if entry.event is None:
                entry.event = await self._prepare(event)
                self._note_calls(entry.event)
            if not entry.stored and entry.event.stored:
                await self._store(entry, entry.event)
        return entry.event

    async def hand_out(self, event: Event) -> Event | None:
        """Admit an event that is about to go to the reader; None if it has gone there before."""
        known = await self.admit(event)
        entry = self._entries.get(event.id)
        if entry is not None:
            if entry.handed_out:
                return None
            entry.handed_out = True
        return known

    def unseen(self) -> list[Event]:
        """The events that have not been handed out, and shall be: those of an agent that is a tool are its caller's."""
        known = ((entry.event, entry.handed_out) for entry in self._entries.values())
        return [event for event, out in known if event is not None and not out and TRIGGER not in event.extensions]

    async def settle(self) -> list[Event]:
        """At the end: try again to store what could not be, and hand out what has not been yet."""
        for entry in self._entries.values():
            if entry.event is not None and entry.event.stored and not entry.stored:
                await self._store_at_last(entry, entry.event)
        late = self.unseen()
        for entry in self._entries.values():
            entry.handed_out = True
        return late

    @property
    def in_a_round(self) -> bool:
        """True while a tool call of the run has no result yet."""
        return bool(self._open_calls)

    def cancelled_results(self) -> Iterator[Event]:
        """A result for each call that was cut off, so that the next request is well formed."""
        for call, asked in list(self._open_calls.values()):
            yield asked.clone().model_copy(
                update={
                    "kind": "tool_result",
                    "messages": (CANCELLED.message(call),),
                    "usage": None,
                    "state_delta": {},
                    "view": None,
                    "finish_reason": None,
                }
            )

    def _note_calls(self, event: Event) -> None:
        for message in event.messages:
            for call in message.tool_calls:
                if call.id not in event.long_running_tool_ids:
                    self._open_calls[call.id] = (call, event)
            if message.tool_call_id is not None:
                self._open_calls.pop(message.tool_call_id, None)

    async def _store_at_last(self, entry: _Entry, event: Event) -> None:
        try:
            await self._store(entry, event)
        except Exception:
            _log.warning("event '%s' of session '%s' is lost", event.id, self._key.session, exc_info=True)

    async def _store(self, entry: _Entry, event: Event) -> None:
        told = await self._to_store(event)
        if told is not None:
            try:
                await self._append(told)
            except Exception as error:
                self.failures.append(error)
                _log.warning("event '%s' of session '%s' was not stored: %s", event.id, self._key.session, error)
                if not self._lenient:
                    raise
                return
        entry.stored = True
        if told is not None and self._stored is not None:
            await self._stored(told)

    async def _append(self, event: Event) -> None:
        """Twice if need be: a failure of the store is often over at once, and the same id is not added again.

        One at a time: a database appends to a session in a line anyway, and each that stood in it there would keep a
        connection from the other sessions.
        """
        with in_line():
            await self._line.acquire()
        try:
            try:
                await self._sessions.append(self._key, event)
            except Exception:
                await self._sessions.append(self._key, event)
        finally:
            self._line.release()


def with_apology(event: Event) -> Event:
    """An error that a reader of the session can see: with a text of its own, or a general one. A run that was cut off
    by a limit and has landed has said what it had to say."""
    if event.error is None or event.partial or event.has_content or "landed" in event.extensions:
        return event
    said = Message.assistant(APOLOGY)
    return event.model_copy(update={"messages": (said,), "finish_reason": event.finish_reason or "error"})
