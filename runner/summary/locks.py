"""Who makes a summary: one at a time for each session and filter key, in this process and across processes."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from graphagent.errors import ServiceError
from graphagent.ids import fresh_id
from graphagent.ledger import SessionKey
from graphagent.services import SessionService, SummaryLeases

LEASE = 30.0
"""Seconds that another process waits for one that has died."""
POLL = 0.1


@dataclass(slots=True)
class _Turn:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    users: int = 0


class SummaryLocks:
    """Locks by session and filter key; keys don't hold each other up.

    Across processes it is a lease of the session service, renewed while the holder works, where the service has such;
    without it `put_summary` still keeps one process from overwriting the other, and only the work is done twice.
    `lease`: seconds that it lasts without being renewed. `wait`: seconds to wait for another process.
    """

    def __init__(self, sessions: SessionService, *, lease: float = LEASE, wait: float = math.inf) -> None:
        self._leases = sessions if isinstance(sessions, SummaryLeases) else None
        self._lease = lease
        self._wait = wait
        self._owner = fresh_id()
        self._turns: dict[tuple[SessionKey, str], _Turn] = {}

    @property
    def users(self) -> int:
        """How many hold or wait for a lock in this process."""
        return sum(turn.users for turn in self._turns.values())

    @asynccontextmanager
    async def hold(self, key: SessionKey, filter_key: str) -> AsyncGenerator[bool]:
        """The block in which a summary is made; False if another process had it for longer than `wait`. Waiting can be
        cancelled. Raises ServiceError."""
        turn = self._turns.setdefault((key, filter_key), _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                if self._leases is None:
                    yield True
                    return
                if not await self._taken(self._leases, key, filter_key):
                    yield False
                    return
                failed: Exception | None = None
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._renew, self._leases, key, filter_key)
                    try:
                        yield True
                    except Exception as error:  # raised behind the group, which would wrap it
                        failed = error
                    finally:
                        tasks.cancel_scope.cancel()
                        with anyio.CancelScope(shield=True), anyio.move_on_after(self._lease):
                            await self._given_back(self._leases, key, filter_key)
                if failed is not None:
                    raise failed
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[key, filter_key]

    async def _taken(self, leases: SummaryLeases, key: SessionKey, filter_key: str) -> bool:
        until = anyio.current_time() + self._wait
        while not await leases.lease_summary(key, filter_key, owner=self._owner, seconds=self._lease):
            if anyio.current_time() >= until:
                return False
            await anyio.sleep(POLL)
        return True

    async def _renew(self, leases: SummaryLeases, key: SessionKey, filter_key: str) -> None:
        while True:
            await anyio.sleep(self._lease / 3)
            try:
                await leases.lease_summary(key, filter_key, owner=self._owner, seconds=self._lease)
            except ServiceError:  # at worst another process makes the summary too, and one of the two is not stored
                continue

    async def _given_back(self, leases: SummaryLeases, key: SessionKey, filter_key: str) -> None:
        try:
            await leases.release_summary(key, filter_key, owner=self._owner)
        except ServiceError:
            return  # it ends by itself
