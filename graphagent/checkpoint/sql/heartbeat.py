"""One thread per store that keeps leases alive and hears of requests, also while the event loop is busy."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import anyio.to_thread

from graphagent.checkpoint.sql.operations import Dialect, Operation
from graphagent.checkpoint.store import Lease, Signal

_LOG = logging.getLogger("graphagent.checkpoint")
_CHUNK = 200  # leases in one statement
_PATIENCE = 5.0  # seconds


class Runner(Protocol):
    """A connection of the thread's own."""

    def run(self, operation: Operation[Any], *, writes: bool) -> Any:
        """Run an operation in one transaction; `writes` is False if it only reads."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


Held = tuple[int, int]
"""A lease as the database knows it: lineage key and token."""


def renew(leases: Sequence[Held], ttl: float, dialect: Dialect) -> Operation[dict[Held, bool]]:
    """Renew leases; returns those that are still held, and whether their owner was asked to cancel."""
    sql = (
        f"UPDATE ga_lineages SET expires = {dialect.now} + {ttl!r} WHERE expires >= 0 AND (id, token) IN "
        "(VALUES {}) RETURNING id, token, cancel"
    )
    return (yield from _in_chunks(leases, sql))


def look(leases: Sequence[Held]) -> Operation[dict[Held, bool]]:
    """As `renew`, without renewing."""
    sql = "SELECT id, token, cancel FROM ga_lineages WHERE expires >= 0 AND (id, token) IN (VALUES {})"
    return (yield from _in_chunks(leases, sql))


def _in_chunks(leases: Sequence[Held], sql: str) -> Operation[dict[Held, bool]]:
    found: dict[Held, bool] = {}
    for start in range(0, len(leases), _CHUNK):
        chunk = leases[start : start + _CHUNK]
        rows = yield sql.format(", ".join(["(?, ?)"] * len(chunk))), [number for held in chunk for number in held]
        found.update(((key, token), bool(cancel)) for key, token, cancel in rows)
    return found


class Heartbeat:
    """Renews held leases each third of `ttl` (seconds), and looks for lost ones and requests to cancel each second.

    The thread is a daemon, starts with the first lease and connects when it first has something to do, so that short
    runs cost nothing. A database that can't be reached is tried again at the next beat: whether a lease is lost is for
    its token to say, at the next write. Without `connect` there is no thread: nobody else can get at the database.
    """

    def __init__(self, connect: Callable[[], Runner] | None, ttl: float, dialect: Dialect) -> None:
        self._connect = connect
        self._ttl = ttl
        self._dialect = dialect
        self._interval = min(1.0, ttl / 3)
        self._held: dict[Held, Lease] = {}
        self._cancelled: set[Held] = set()
        self._change = threading.Condition()
        self._closed = False
        self._idle = False  # the thread has nothing to do and sleeps until it is woken
        self._thread: threading.Thread | None = None
        self._runner: Runner | None = None

    def add(self, key: int, lease: Lease) -> None:
        """Keep a lease alive from now on."""
        with self._change:
            self._held[key, lease.token] = lease
            if self._connect is None:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="graphagent-heartbeat", daemon=True)
                self._thread.start()
            elif self._idle:  # else it looks by itself; waking it for nothing would cost a switch of threads a run
                self._change.notify()

    def remove(self, key: int, lease: Lease) -> None:
        """Forget a lease."""
        with self._change:
            self._held.pop((key, lease.token), None)
            self._cancelled.discard((key, lease.token))

    def held(self) -> list[Lease]:
        """The leases that are kept alive."""
        with self._change:
            return list(self._held.values())

    def signal(self, lineage: str, signal: Signal) -> None:
        """Tell the owner at once if it is here, not at the next beat."""
        with self._change:
            here = [held for held, lease in self._held.items() if lease.lineage == lineage]
        for held in here:
            self._signal(held, signal)

    async def close(self) -> None:
        """End the thread and its connection; harmless twice. A beat that hangs isn't waited for longer than a while."""
        with self._change:
            self._closed = True
            self._change.notify()
        if self._thread is not None:
            await anyio.to_thread.run_sync(self._thread.join, _PATIENCE)

    def _run(self) -> None:
        renewed = time.monotonic()
        while self._wait():
            due = time.monotonic() - renewed >= self._ttl / 3
            try:
                self._beat(due)
                renewed = time.monotonic() if due else renewed
            except Exception as error:
                _LOG.warning("leases could not be %s, trying again: %s", "renewed" if due else "looked at", error)
                self._disconnect()
        self._disconnect()

    def _wait(self) -> bool:
        """Wait for the next beat; False when closed."""
        with self._change:
            if not self._held and not self._closed:
                self._disconnect()
            self._idle = True
            self._change.wait_for(lambda: self._held or self._closed)
            self._idle = False
            return not self._change.wait_for(lambda: self._closed, self._interval)

    def _beat(self, due: bool) -> None:
        with self._change:
            held = list(self._held)
        if not held:
            return
        if self._runner is None:
            assert self._connect is not None
            self._runner = self._connect()
        found = self._runner.run(renew(held, self._ttl, self._dialect) if due else look(held), writes=due)
        for lease in held:
            if lease not in found:
                self._signal(lease, "lost")
            elif found[lease]:
                self._signal(lease, "cancel")

    def _signal(self, held: Held, signal: Signal) -> None:
        with self._change:
            lease = self._held.get(held)
            if lease is None or (signal == "cancel" and held in self._cancelled):
                return
            if signal == "lost":
                del self._held[held]
                lease.lost = True
            else:
                self._cancelled.add(held)
        if lease.on_signal is not None:
            try:
                lease.on_signal(signal)
            except Exception:
                _LOG.exception("the owner of lineage '%s' could not be told '%s'", lease.lineage, signal)

    def _disconnect(self) -> None:
        if self._runner is not None:
            with suppress(Exception):
                self._runner.close()
            self._runner = None
