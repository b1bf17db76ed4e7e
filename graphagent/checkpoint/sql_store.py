"""The SQL checkpoint store: one front for SQLite and PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from graphagent.checkpoint.finding import RunInfo, RunQuery
from graphagent.checkpoint.lease import check_name
from graphagent.checkpoint.plain_json import dumps, loads
from graphagent.checkpoint.record import ActivationRow, EffectRow, Header, Loaded, PruneReport, Retention, Row
from graphagent.checkpoint.sql import operations, queries, runs
from graphagent.checkpoint.sql.driver import driver_for
from graphagent.checkpoint.sql.heartbeat import Heartbeat
from graphagent.checkpoint.sql.loading import Found, Place
from graphagent.checkpoint.sql.operations import Batch, Beside, Claim, Grip, Keys, Operation
from graphagent.checkpoint.sql.options import PoolOptions, Sync
from graphagent.checkpoint.sql.owner import owner_text
from graphagent.checkpoint.sql.prune import prune_lineage
from graphagent.checkpoint.sql.rows import (
    COLUMNS,
    decode_activation,
    decode_row,
    decoded_fields,
    encode_activation,
    encode_row,
)
from graphagent.checkpoint.store import Lease, PartCodec, Read, Signal
from graphagent.errors import LeaseLost

if TYPE_CHECKING:
    from graphagent.checkpoint.sql.schema import MigrationReport

_DELTA = COLUMNS.index("delta")
_FOR_EVER = 1e12  # seconds


class SqlCheckpoints:
    """Checkpoints in a SQLite file or a PostgreSQL database.

    `url` is `sqlite:///relative.db`, `sqlite:////absolute.db`, a plain path, `sqlite://` (in memory) or
    `postgresql://user@host:port/database`. `sync` says when a commit to SQLite is safe: `normal` survives a killed
    process, `full` also a loss of power, `group` likewise with the steps of concurrent runs in one commit.
    `cipher` encrypts secret values (see `graphagent.checkpoint.plans`). A lease that isn't renewed for `lease_ttl`
    seconds is free. `busy_timeout`: seconds to wait for other processes that write the same SQLite file. `pool`:
    connections to PostgreSQL. `auto_migrate`: bring older tables up to date when the store is opened.

    The store opens itself on first use and sets up what it needs: tables, and for SQLite write-ahead logging and a
    wait for busy writers. Raises UsageError for a url it can't read.
    """

    persistent = True

    def __init__(
        self,
        url: str,
        *,
        sync: Sync = "normal",
        cipher: Any = None,
        lease_ttl: float = 30.0,
        busy_timeout: float = 10.0,
        pool: PoolOptions | None = None,
        auto_migrate: bool = True,
    ) -> None:
        self.url = url
        self.cipher = cipher
        self._driver = driver_for(url, sync, busy_timeout, auto_migrate, pool or PoolOptions())
        self.remote = self._driver.remote  # writes are waited for, so a bound on the time of a save means something
        self.instant = not self.remote  # nothing is ever waited for, so there is nothing to shield from a cancellation
        self._dialect = self._driver.dialect
        self._ttl = lease_ttl if self._driver.shared else _FOR_EVER
        connect = self._driver.thread_runner if self._driver.shared else None
        self._heartbeat = Heartbeat(connect, self._ttl, self._dialect)

    async def migrate(self, *, dry_run: bool = False) -> MigrationReport:
        """Bring the tables of an older release up to date, in place and in one transaction.

        Opening the store does so by itself unless `auto_migrate` is False. A dry run does the same and rolls back;
        other writers wait meanwhile. Raises SchemaVersionError for tables of a newer release.
        """
        return await self._driver.migrate(dry_run)

    async def acquire(self, lineage: str, run_id: str, *, on_signal: Callable[[Signal], None] | None = None) -> Lease:
        """Take the lineage for one run. Raises LineageBusy while another live owner holds it."""
        return (await self._take(lineage, run_id, on_signal, None))[0]

    async def begin(
        self,
        lineage: str,
        run_id: str,
        namespace: str = "",
        seq: int | None = None,
        *,
        on_signal: Callable[[Signal], None] | None = None,
    ) -> tuple[Lease, Read]:
        """`acquire` and `load` in one go: the lease, and what `load` says with a given codec. Raises LineageBusy."""
        lease, found = await self._take(lineage, run_id, on_signal, Place(namespace, seq))
        if found is not None:
            lease.extra["grip"].keys.frames[namespace] = found.frame
        return lease, lambda codec: _loaded(lineage, namespace, found, codec)

    async def _take(
        self, lineage: str, run_id: str, on_signal: Callable[[Signal], None] | None, reads: Place | None
    ) -> tuple[Lease, Found | None]:
        check_name("lineage", lineage)
        claim = Claim(lineage, run_id, owner_text(), self._ttl, time.time())
        try:
            key, token, found = await self._driver.take(claim, reads)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._driver.write(lambda: operations.abandon(claim), alone=True)
            raise
        lease = Lease(lineage, token, run_id, on_signal)
        lease.extra["grip"] = Grip(lineage, run_id, token, Keys(key))
        self._heartbeat.add(key, lease)
        return lease, found

    async def release(self, lease: Lease) -> None:
        """Give the lineage back; harmless if it was lost."""
        grip: Grip = lease.extra["grip"]
        self._heartbeat.remove(grip.keys.lineage, lease)
        await self._driver.write(lambda: operations.release(grip), alone=True)

    async def request_cancel(self, lineage: str) -> bool:
        """Ask the owner, in whatever process, to cancel its run; False if nobody holds the lineage.

        An owner in another process hears of it within a second.
        """
        asked = await self._driver.write(lambda: operations.request_cancel(lineage, self._dialect), alone=True)
        if asked:
            self._heartbeat.signal(lineage, "cancel")
        return asked

    async def append(
        self,
        lease: Lease,
        namespace: str,
        rows: Sequence[Row],
        codec: PartCodec,
        *,
        closes: int | None = None,
        release: bool = False,
    ) -> int:
        """Write rows of one frame in one transaction; returns the encoded bytes of values and patches.

        That is what counts for the next snapshot; lists are never written again. Raises EncodeError, LeaseLost,
        SaveError.
        """
        encoded, size = [], 0
        for row in rows:
            columns = encode_row(row, codec)
            encoded.append((row.seq, (row.run_id, row.fingerprint), columns))
            size += 0 if columns[_DELTA] is None else len(columns[_DELTA])
        grip = self._grip(lease, namespace)
        if release:  # before the write: a heartbeat that looks right after it would take the lease for lost
            self._heartbeat.remove(grip.keys.lineage, lease)
        try:
            await self._driver.append(grip, Batch(namespace, encoded, closes, release))
        except LeaseLost:
            self._lose(lease)
            raise
        except BaseException:
            if release:
                self._heartbeat.add(grip.keys.lineage, lease)
            raise
        return size

    @staticmethod
    def _grip(lease: Lease, namespace: str) -> Grip:
        """What a write to a frame checks. Raises CheckpointError for a name that databases refuse."""
        grip: Grip = lease.extra["grip"]
        if namespace not in grip.keys.frames:
            check_name("namespace", namespace)
        return grip

    def _lose(self, lease: Lease) -> None:
        lease.lost = True
        self._heartbeat.remove(lease.extra["grip"].keys.lineage, lease)

    async def _write_beside(self, lease: Lease, beside: Beside) -> None:
        """Write to a frame what isn't a row."""
        grip, namespace = self._grip(lease, beside.namespace), beside.namespace
        alone = namespace in grip.keys.frames and len(beside.entries) == 1
        try:
            if alone and await self._driver.write(lambda: operations.put_alone(grip, beside), alone=True):
                return
            key = await self._driver.write(lambda: operations.put_beside(grip, beside, self._dialect))
            grip.keys.frames[namespace] = key
        except LeaseLost:
            self._lose(lease)
            raise

    async def put_activations(
        self, lease: Lease, namespace: str, base: int, done: Sequence[ActivationRow], codec: PartCodec
    ) -> None:
        """Keep finished activations of the open step that started from row `base`. Raises EncodeError, LeaseLost."""
        bodies = [(row.position, encode_activation(row, codec)) for row in done]
        await self._write_beside(lease, operations.kept_activations(namespace, base, bodies, self._dialect))

    async def activations(
        self, lineage: str, namespace: str, base: int, codec: PartCodec | None
    ) -> dict[int, ActivationRow]:
        """The kept activations of an open step, by position. Raises DecodeError."""
        found = await self._driver.read(lambda: queries.activations(lineage, namespace, base), alone=True)
        return _activations(found, codec)

    async def load(
        self, lineage: str, namespace: str = "", seq: int | None = None, codec: PartCodec | None = None
    ) -> Loaded | None:
        """The newest row (or the one with `seq`) with its state; None if there is none. Raises DecodeError."""
        return _loaded(lineage, namespace, await self._driver.load(lineage, namespace, seq), codec)

    async def history(
        self, lineage: str, namespace: str = "", *, limit: int | None = None, before: int | None = None
    ) -> list[Header]:
        """Headers, newest first; an unknown lineage has none. `before`: only rows with a smaller seq."""
        return await self._driver.read(lambda: queries.history(lineage, namespace, limit, before), alone=True)

    async def changes(self, lineage: str, namespace: str, first: int, last: int) -> list[Row]:
        """The rows from `first` to `last` that are there, each with what it changed as plain data. Raises LoadError."""
        return await self._driver.read(lambda: queries.changes(lineage, namespace, first, last), alone=True)

    async def namespaces(self, lineage: str) -> list[str]:
        """The frames of a lineage that have rows, sorted; `""` is the root."""
        return await self._driver.read(lambda: queries.namespaces(lineage), alone=True)

    async def lineages(self, *, prefix: str = "", limit: int | None = None) -> list[str]:
        """Lineages that have rows, sorted by code points."""
        return await self._driver.read(lambda: queries.lineages(prefix, limit), alone=True)

    async def find_runs(self, query: RunQuery) -> list[RunInfo]:
        """The runs that are wanted, the last written first. Raises LoadError."""
        return await self._driver.read(lambda: runs.find_runs(query, self._dialect))

    async def written_elsewhere(self) -> str | None:
        """The name of the last other machine that held a lineage of this database; None if none is known of."""
        return await self._driver.read(runs.written_elsewhere, alone=True)

    async def effects(self, lineage: str, namespace: str, base: int) -> list[EffectRow]:
        """The ledger of the activations that started from row `base`, by position, name and ordinal."""
        return await self._driver.read(lambda: queries.effects(lineage, namespace, base), alone=True)

    async def claim_effect(self, lease: Lease, namespace: str, effect: EffectRow) -> None:
        """Record that a side effect is about to begin.

        Durable on return as `sync` says: with `normal` against a killed process, not against a loss of power.
        """
        check_name("effect", effect.name)
        result = None if effect.result is None else dumps(effect.result)
        await self._write_beside(lease, operations.effect_entry(namespace, effect, result, self._dialect))

    async def commit_effect(self, lease: Lease, namespace: str, effect: EffectRow) -> None:
        """Record the result of a claimed effect."""
        await self.claim_effect(lease, namespace, effect)

    async def save_graph(self, fingerprint: str, document: Mapping[str, Any]) -> None:
        """Keep the canonical document of a graph; harmless if one is there already."""
        check_name("fingerprint", fingerprint)
        await self._driver.write(lambda: operations.save_graph(fingerprint, dumps(document)), alone=True)

    async def graph(self, fingerprint: str) -> Mapping[str, Any] | None:
        """The document that was kept of a graph, or None. Raises LoadError."""
        found = await self._driver.read(lambda: queries.graph(fingerprint), alone=True)
        return None if found is None else loads(found)

    async def pin(self, lineage: str, namespace: str, seq: int, pinned: bool = True) -> None:
        """Protect a row from `prune`, or no longer. Raises CheckpointNotFound."""
        await self._driver.write(lambda: operations.pin(lineage, namespace, seq, pinned))

    async def prune(self, policy: Retention, *, lineage: str | None = None, dry_run: bool = False) -> PruneReport:
        """Remove old rows of one or of all lineages, each in a transaction; every row that stays loads as before.

        The report's bytes are net: snapshots that had to be written are taken off. The freed pages are used for new
        rows; give them back to the file system with `VACUUM`.
        """
        rows = size = touched = 0
        for name in [lineage] if lineage is not None else await self.lineages():
            make = self._prune_maker(name, policy, dry_run)
            removed, freed = await (self._driver.read(make) if dry_run else self._driver.write(make))
            rows, size, touched = rows + removed, size + freed, touched + (removed > 0)
            await anyio.lowlevel.checkpoint()
        return PruneReport(rows=rows, bytes=size, lineages=touched)

    def _prune_maker(self, lineage: str, policy: Retention, dry_run: bool) -> Callable[[], Operation[tuple[int, int]]]:
        return lambda: prune_lineage(lineage, policy, dry_run, self._dialect)

    async def delete(self, lineage: str) -> int:
        """Remove all of a lineage: frames, activations, effects, lease. Returns the number of rows removed."""
        removed = await self._driver.write(lambda: operations.delete(lineage, self._dialect))
        self._heartbeat.signal(lineage, "lost")
        return removed

    async def aclose(self) -> None:
        """Give held leases back, close connections and end helper threads; harmless twice."""
        for lease in self._heartbeat.held():
            await self.release(lease)
        await self._heartbeat.close()
        await self._driver.aclose()

    async def __aenter__(self) -> SqlCheckpoints:
        await self._driver.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


def _loaded(lineage: str, namespace: str, found: Found | None, codec: PartCodec | None) -> Loaded | None:
    if found is None:
        return None
    finished = found.finished
    return Loaded(
        lineage=lineage,
        namespace=namespace,
        row=decode_row(found.seq, found.columns, codec),
        values=decoded_fields({**found.values, **found.lists}, codec),
        newest=found.newest,
        delta_rows=found.delta_rows,
        delta_size=found.delta_size,
        snap_size=found.snap_size,
        finished=None if finished is None else lambda codec: _activations(finished, codec),
    )


def _activations(found: Sequence[tuple[int, bytes]], codec: PartCodec | None) -> dict[int, ActivationRow]:
    return {position: decode_activation(position, body, codec) for position, body in found}
