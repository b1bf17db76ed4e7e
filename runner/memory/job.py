"""One extraction: reads what is new in a session, and remembers what is worth it.

The cursor is in the session's state and is moved by the session service. What an extractor has found is stored there
before it is made, so that a process that dies in between costs no second call and leaves nothing twice: the next
extraction makes the same changes again, which changes nothing where they were made already.

Source: spec/context, 17.5.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from graphagent.clock import Clock, SystemClock
from graphagent.ledger import Session, SessionKey, TokenUsage
from graphagent.services import Memory, MemoryFilter, MemoryService, SessionService, read_again
from runner.held import HELD, HeldSessions
from runner.memory.checks import Check, Waiting, always
from runner.memory.delta import MODE, POLLUTED, Cursor, Portion, is_polluted, new_events, portions
from runner.memory.extraction import ExtractionInput, Extractor
from runner.memory.operations import ALL, Done, Operation, OperationKind, apply, settled
from runner.memory.policies import UpdatePolicy, merge_similar

_log = logging.getLogger(__name__)

Outcome = Literal["extracted", "nothing_new", "not_due", "polluted", "not_allowed", "gone", "elsewhere", "failed"]
EXISTING = 10
"""Memories that the extractor is shown."""
TRIES = 3
"""How often changes are tried that the memory service fails to make."""
_ANY = MemoryFilter(min_score=0.05)
_LIKE = MemoryFilter(min_score=0.30)


class Report(NamedTuple):
    """What came of an extraction. `outcome`: `extracted`, also if there was nothing to remember; `nothing_new`;
    `not_due` by the check; `polluted`; `not_allowed`, no operation is; `gone`, there is no such session; `elsewhere`,
    another process works on it; `failed`. `messages`: how many were looked at; `done`: what became of each change;
    `usage`: tokens of each portion that was asked about."""

    key: SessionKey
    outcome: Outcome
    reason: str = ""
    messages: int = 0
    done: tuple[Done, ...] = ()
    usage: tuple[TokenUsage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryExtraction:
    """How a Runner takes memories from what was said.

    `extractor`: decides what, such as a ModelExtractor. `check`: when it is worth looking. `policy`: what becomes of a
    memory that is like one that is there. `operations`: the kinds that are made (None: all). `skip_polluted`: nothing
    is taken from a session in which `external_tools` (patterns of names) have brought documents, or that is marked so.
    `portion`: tokens that are read at once. `workers`, `queue`, `timeout` (seconds): of the work in the background.
    `listener`: is told of every extraction.
    """

    extractor: Extractor
    check: Check = always
    policy: UpdatePolicy = merge_similar
    operations: Collection[OperationKind] | None = None
    skip_polluted: bool = False
    external_tools: Sequence[str] = ("knowledge_search*",)
    portion: int = 16_000
    workers: int = 1
    queue: int = 10
    timeout: float | None = 30.0
    listener: Callable[[Report], None] | None = None

    @property
    def allowed(self) -> frozenset[str]:
        """The kinds of operations that are made."""
        return ALL if self.operations is None else frozenset(self.operations)


class Extraction:
    """Extracts from sessions of a service into a memory. Not twice at once for one session."""

    def __init__(
        self, sessions: SessionService, memory: MemoryService, options: MemoryExtraction, *, clock: Clock | None = None
    ) -> None:
        self._sessions = sessions
        self._memory = memory
        self._options = options
        self._clock = clock or SystemClock()
        self._held = HeldSessions(sessions, HELD)

    async def run(self, key: SessionKey, request_id: str = "") -> Report:
        """Extract from what is new in a session, up to the end of a run (empty: all). Raises what services and
        extractor raise; the cursor then stands before the portion that failed."""
        options = self._options
        session = await self._session(key)
        if session is None:
            return Report(key, "gone")
        if not options.allowed:
            return Report(key, "not_allowed")
        if options.skip_polluted and is_polluted(session, options.external_tools):
            if session.state.get(MODE) != POLLUTED:
                await self._sessions.update_state(key, {MODE: POLLUTED})
            return Report(key, "polluted")
        cursor = Cursor.of(session.state)
        done: list[Done] = []
        if cursor.operations:
            cursor = await self._apply(key, cursor, done)
        return await self._read(session, cursor, done, request_id)

    async def _session(self, key: SessionKey) -> Session | None:
        """The session as it is now; what was read last time isn't read again."""
        copy = self._held.take(key)
        session = await (self._sessions.get(key) if copy is None else read_again(self._sessions, copy))
        if session is not None:
            self._held.put(session)
        return session

    async def _read(self, session: Session, cursor: Cursor, done: list[Done], request_id: str) -> Report:
        key, options = session.key, self._options
        outcome: Outcome = "extracted" if done else "nothing_new"
        found = portions(new_events(session, cursor.seq, request_id), options.portion)
        if not found:
            return Report(key, outcome, done=tuple(done))
        messages = tuple(said for portion in found for said in portion.messages)
        if not options.check(Waiting(messages, cursor.at, self._clock.now())):
            return Report(key, "extracted" if done else "not_due", done=tuple(done))
        usage = []
        for portion in found:
            operations, spent = await self._found(key, portion)
            usage += [spent] if spent is not None else []
            cursor = await self._remember(key, cursor, portion, operations, done)
        return Report(key, "extracted", messages=len(messages), done=tuple(done), usage=tuple(usage))

    async def _found(self, key: SessionKey, portion: Portion) -> tuple[list[Operation], TokenUsage | None]:
        """What the extractor finds, after the policy."""
        options = self._options
        existing = await self._existing(key, portion)
        given = ExtractionInput(key, portion.messages, tuple(existing), options.allowed, self._clock.now())
        extracted = await options.extractor.extract(given)
        planned = []
        for operation in extracted.operations:
            if operation.kind == "add":
                instead = await options.policy(operation, lambda text: self._like(key, text), options.allowed)
                planned += [] if instead is None else [instead]
            else:
                planned.append(operation)
        if any(operation.kind == "update" for operation in planned):
            known = {memory.id: memory for memory in await self._memory.load(key.app, key.user)}
            planned = [settled(operation, known) for operation in planned]
        return planned, extracted.usage

    async def _existing(self, key: SessionKey, portion: Portion) -> list[Memory]:
        """What the messages may be about; the newest memories if that can't be searched."""
        asked = " ".join(said.text for said in portion.messages if said.role == "user")
        try:
            return await self._memory.search(key.app, key.user, asked, limit=EXISTING, only=_ANY)
        except Exception:
            _log.warning("memories of user '%s' could not be searched", key.user, exc_info=True)
            return await self._memory.load(key.app, key.user, limit=EXISTING)

    async def _like(self, key: SessionKey, text: str) -> list[Memory]:
        try:
            return await self._memory.search(key.app, key.user, text, limit=3, only=_LIKE)
        except Exception:
            _log.warning("a memory of user '%s' is added without looking for the like of it", key.user, exc_info=True)
            return []

    async def _remember(
        self, key: SessionKey, cursor: Cursor, portion: Portion, operations: Sequence[Operation], done: list[Done]
    ) -> Cursor:
        """Store what is to be done, do it, and move the cursor. Changes of before that failed come first."""
        now = self._clock.now()
        waiting = (*cursor.operations, *operations)
        planned = Cursor(cursor.seq, now, portion.until, waiting, cursor.tries if cursor.operations else 0)
        if not waiting:
            planned = Cursor(portion.until, now)
        await self._sessions.update_state(key, planned.delta())
        return await self._apply(key, planned, done) if waiting else planned

    async def _apply(self, key: SessionKey, cursor: Cursor, done: list[Done]) -> Cursor:
        """Make the changes that are stored. Those that the service fails to make are kept for the next time."""
        made = await apply(self._memory, key.app, key.user, cursor.operations, self._options.allowed)
        done += made
        failed = tuple(one.operation for one in made if one.result == "failed")
        tries = cursor.tries + 1
        if failed and tries >= TRIES:
            _log.error("user '%s': %s changes of memories are given up after %s tries", key.user, len(failed), tries)
            failed = ()
        after = Cursor(max(cursor.seq, cursor.until), cursor.at, 0, failed, tries if failed else 0)
        await self._sessions.update_state(key, after.delta())
        return after
