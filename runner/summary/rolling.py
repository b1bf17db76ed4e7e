"""The rolling summary: what a summary doesn't cover yet is summed up with it, and text and boundary move together.

An event is summed up once: what is given to the summariser is what no stored boundary of its key covers. An event is
hidden only if a summary covers it: the boundary is the number of the last event that went in, never a time.
Source: spec/context, 8, with the boundary by number.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from operator import attrgetter

import anyio

from graphagent.errors import GraphAgentError, SessionNotFound, SummaryError
from graphagent.ledger import WHOLE, Boundary, Event, Session, SessionKey, Summary, is_below
from graphagent.services import SessionService, read_again
from runner.held import HELD, HeldSessions
from runner.summary.locks import SummaryLocks
from runner.summary.parent import bound
from runner.summary.policy import ANY_KEY, SummaryPolicy
from runner.summary.record import TOLD, keep_record
from runner.summary.stats import SummaryStats
from runner.summary.values import (
    NO_CONTEXT,
    NOTHING_SPENT,
    Attempt,
    Made,
    Spent,
    Summarizer,
    SummaryContext,
    SummaryInput,
    Trigger,
)

_log = logging.getLogger(__name__)

FORCED = Trigger(True, "force", "force")
OVERTAKEN = "another summary was stored meanwhile, and stays"
RECENT = 100
"""How many attempts are remembered."""
GRACE = 1.0
"""Seconds for telling of an attempt that was cancelled."""
Listener = Callable[[Attempt], Awaitable[None]]


class RollingSummary:
    """The summaries of sessions. `summarizer`: None makes none. `policy`: of which keys. `locks`: None takes those of
    the service. `listener`: is told of every attempt. `recent`: the last of them; `stats`: counts them all."""

    def __init__(
        self,
        sessions: SessionService,
        summarizer: Summarizer | None,
        *,
        policy: SummaryPolicy = ANY_KEY,
        locks: SummaryLocks | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.sessions = sessions
        self.summarizer = summarizer
        self.policy = policy
        self.stats = SummaryStats()
        self.recent: deque[Attempt] = deque(maxlen=RECENT)
        self._locks = locks or SummaryLocks(sessions)
        self._held = HeldSessions(sessions, HELD)
        self._listener = listener

    async def summarize(
        self, key: SessionKey, filter_key: str = WHOLE, *, force: bool = False, context: SummaryContext = NO_CONTEXT
    ) -> Attempt:
        """Bring the summary of a key up to date if that is due (`force`: in any case), and say what became of it.

        A failure is told, not raised, and leaves the stored summary as it is; so does a cancellation, which is raised.
        """
        work = _Work(self, key, filter_key, force, context)
        return await self._locked(work, work.attempt)

    async def copy(self, key: SessionKey, branch: str, *, context: SummaryContext = NO_CONTEXT) -> Attempt:
        """Let the summary of a branch be that of the whole session, where the branch has all that it would cover; else
        an attempt at one, unforced. As `summarize` it raises nothing but a cancellation."""
        work = _Work(self, key, WHOLE, False, context)
        return await self._locked(work, lambda: work.copied(branch))

    async def _locked(self, work: _Work, make: Callable[[], Awaitable[Attempt]]) -> Attempt:
        try:
            async with self._locks.hold(work.key, work.filter_key) as mine:
                attempt = await make() if mine else work.told("busy", "another process makes it")
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(GRACE, shield=True):
                await self._tell(work.told("cancelled", "it was cancelled"))
            raise
        except Exception as error:
            attempt = work.failed(error)
        await self._tell(attempt)
        return attempt

    async def _tell(self, attempt: Attempt) -> None:
        self.stats.count(attempt)
        self.recent.append(attempt)
        if attempt.outcome in TOLD:
            await keep_record(self.sessions, attempt)
        if self._listener is not None:
            try:
                await self._listener(attempt)
            except Exception:
                _log.warning("a listener to summaries failed", exc_info=True)

    async def read(self, key: SessionKey) -> Session:
        """The session as it is now; events that were read before are not read again. Raises SessionNotFound."""
        held = self._held.take(key)
        session = await (self.sessions.get(key) if held is None else read_again(self.sessions, held))
        if session is None:
            raise SessionNotFound(f"there is no session '{key.session}' of user '{key.user}' in app '{key.app}'")
        self._held.put(session)
        return session


def uncovered(session: Session, filter_key: str) -> tuple[Event, ...]:
    """The events of a key, and of those below it, that its summary doesn't cover, in order."""
    summary, events = session.summaries.get(filter_key), session.events
    if summary is not None and summary.boundary.seq and events and events[0].seq:  # what is covered isn't looked at
        events = events[bisect_right(events, summary.boundary.seq, key=attrgetter("seq")) :]
    below = (event for event in events if is_below(event.filter_key, filter_key))
    return tuple(event for event in below if summary is None or not summary.boundary.covers(event))


class _Work:
    """One attempt."""

    def __init__(
        self, owner: RollingSummary, key: SessionKey, filter_key: str, force: bool, context: SummaryContext
    ) -> None:
        self._owner = owner
        self.key = key
        self.filter_key = filter_key
        self._force = force
        self._context = context
        self._began = time.monotonic()
        self._trigger: Trigger | None = None
        self._spent = NOTHING_SPENT
        self._unstored: Summary | None = None

    async def attempt(self) -> Attempt:
        """Read, ask whether it is due, sum up, store."""
        if not self._owner.policy.allows(self.filter_key):
            return self.told("blocked", "the key is not on the allow list")
        return await self._made(await self._owner.read(self.key))

    async def copied(self, branch: str) -> Attempt:
        """Read, and take over the branch's summary if it leaves nothing out that this one would hide."""
        session = await self._owner.read(self.key)
        own, whole = session.summaries.get(branch), session.summaries.get(self.filter_key)
        if own is None:
            return await self._made(session)
        if whole is not None and whole.boundary.seq >= own.boundary.seq and whole.text == own.text:
            return self.told("nothing_new", f"it is that of '{branch}'")
        if any(e.seq <= own.boundary.seq and not is_below(e.filter_key, branch) for e in session.events):
            return self.told("nothing_new", f"not all up to the summary of '{branch}' belongs to it")
        copy = own.model_copy(update={"boundary": own.boundary.model_copy(update={"filter_key": self.filter_key})})
        if not await self._store(copy, whole):
            return self.told("overtaken", OVERTAKEN)
        return replace(self.told("updated", f"a copy of that of '{branch}'"), summary=copy)

    async def _made(self, session: Session) -> Attempt:
        previous = session.summaries.get(self.filter_key)
        events = uncovered(session, self.filter_key)
        summarizer = self._owner.summarizer
        if summarizer is None:
            return self.told("refused", "there is no summariser")
        if not events and not self._force:
            return self.told("nothing_new", "no event since the last summary")
        given = SummaryInput(self.key, self.filter_key, previous, events, bound(self._context, events), self._force)
        self._trigger = FORCED if self._force else await summarizer.due(given)
        if not self._trigger.fired:
            return self.told("refused", f"'{self._trigger.name}' is not met")
        made = await summarizer.summarize(given)
        self._spent = made.spent
        if not made.text.strip():
            return self.told("empty", made.note or "the summariser had nothing to say")
        summary = self._summary(made, events, previous)
        if not await self._store(summary, previous):
            return self.told("overtaken", OVERTAKEN)
        return replace(self.told("updated", made.note), summary=summary, mode=made.mode)

    def _summary(self, made: Made, events: Sequence[Event], previous: Summary | None) -> Summary:
        if tuple(events[: len(made.covered)]) != made.covered:
            raise SummaryError("the summariser says that it covers events that are not the first of those it was given")
        if made.covered:
            last = made.covered[-1]
            boundary = Boundary(
                filter_key=self.filter_key, seq=last.seq, cutoff_at=last.timestamp, last_event_id=last.id
            )
            return Summary(text=made.text, boundary=boundary, updated_at=last.timestamp, topics=made.topics)
        if previous is None:
            raise SummaryError("the summariser made a summary of nothing")
        return previous.model_copy(update={"text": made.text, "topics": made.topics})

    async def _store(self, summary: Summary, previous: Summary | None) -> bool:
        """Twice if need be: the text is paid for."""
        put = self._owner.sessions.put_summary
        try:
            try:
                return await put(self.key, self.filter_key, summary, after=previous)
            except SessionNotFound:
                raise
            except GraphAgentError:
                return await put(self.key, self.filter_key, summary, after=previous)
        except Exception:
            self._owner.stats.ahead += 1
            self._unstored = summary
            raise

    def told(self, outcome: str, reason: str) -> Attempt:
        """The attempt so far."""
        return Attempt(
            key=self.key,
            filter_key=self.filter_key,
            outcome=outcome,  # type: ignore[arg-type]
            reason=reason,
            trigger=self._trigger,
            spent=self._spent,
            seconds=time.monotonic() - self._began,
        )

    def failed(self, error: Exception) -> Attempt:
        """The attempt that ended in an error."""
        if isinstance(error, SummaryError) and isinstance(error.spent, Spent):
            self._spent = error.spent
        named = f"summing up session '{self.key.session}' for '{self.filter_key}' failed: {error}"
        _log.warning("%s", named)
        wrapped = SummaryError(named, spent=self._spent)
        wrapped.__cause__ = error
        return replace(self.told("failed", str(error)), error=wrapped, summary=self._unstored)
