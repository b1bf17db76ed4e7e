"""What the SQL stores do, as generators of statements, free of any connection.

An operation yields `(sql, parameters)` and is sent the rows; of a statement that has none, as many empty ones as it has
changed (RETURNING would cost SQLite as much as the statement). Its return value is the result. A driver runs it inside
one transaction: SQLite inline or on a thread, PostgreSQL by awaiting. Nothing here knows which. SQL is written with `?`
for parameters; what differs between the databases is in `Dialect`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from graphagent.checkpoint.lease import lease_lost, lineage_busy, no_such_row, row_exists
from graphagent.checkpoint.record import EffectRow
from graphagent.checkpoint.sql.owner import describe, is_dead
from graphagent.checkpoint.sql.rows import COLUMNS, SOURCES, row_id

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
Operation = Generator[tuple[str, Sequence[Any]], Rows, T]


@dataclass(frozen=True)
class Dialect:
    """How the databases differ. `now` is the database's time in seconds since the epoch."""

    now: str
    greatest: str
    share: str  # keeps others from changing a row until this transaction ends
    exclusive: str  # keeps others from changing or share-locking it
    lossy: bool  # a reply can get lost, so that a repeated write finds its own rows
    holds: str  # whether bytes `{whole}` have bytes `{part}` in them
    bytewise: str  # behind a text: it is compared by its bytes, which is by code points

    @cached_property
    def take(self) -> str:
        """The statement that takes a lineage which is free, or new; it returns key and token."""
        return TAKE.format(now=self.now, greatest=self.greatest)

    @cached_property
    def put_effect(self) -> str:
        """The statement that writes an effect; it changes nothing if the lease isn't the current one."""
        return _PUT_EFFECT.format(share=self.share)

    @cached_property
    def put_activation(self) -> str:
        """The statement that keeps an activation; it changes nothing if the lease isn't the current one."""
        return _PUT_ACTIVATION.format(share=self.share)


@dataclass(slots=True)
class Keys:
    """Integer keys of a lineage, as a lease remembers them: valid as long as its token is the current one."""

    lineage: int
    frames: dict[str, int] = field(default_factory=dict)
    runs: dict[tuple[str, str], int] = field(default_factory=dict)


class Claim(NamedTuple):
    """An application for a lease. `since` also tells this application from any other one."""

    lineage: str
    run_id: str
    owner: str
    ttl: float
    since: float

    @property
    def parameters(self) -> tuple[Any, ...]:
        """Those of `Dialect.take`."""
        return self.lineage, int(self.since * 1e6), self.run_id, self.owner, self.since, self.ttl


@dataclass(slots=True)
class Grip:
    """What a write checks: the lease's token, and whose it is."""

    lineage: str
    run_id: str
    token: int
    keys: Keys


HELD = "SELECT 1 FROM ga_lineages WHERE id = ? AND token = ? AND expires >= 0"
INSERT_ROW = (
    f"INSERT INTO ga_rows (id, run, {', '.join(COLUMNS)}) SELECT {', '.join('?' * (len(COLUMNS) + 2))} "
    f"WHERE EXISTS ({HELD})"
)
TAKE = (
    "INSERT INTO ga_lineages (name, token, run_id, owner, since, expires, cancel) "
    "VALUES (?, ?, ?, ?, ?, {now} + ?, 0) ON CONFLICT (name) DO UPDATE SET "
    "token = {greatest}(ga_lineages.token + 1, excluded.token), run_id = excluded.run_id, "
    "owner = excluded.owner, since = excluded.since, expires = excluded.expires, cancel = 0 "
    "WHERE ga_lineages.owner IS NULL OR ga_lineages.expires < {now} RETURNING id, token"
)
RELEASE = "UPDATE ga_lineages SET expires = -1 WHERE id = ? AND token = ?"  # the owner stays: who held it last
# of a key that isn't remembered; an earlier run, or another task of this one, may have made it
MAKE_FRAME = (
    "INSERT INTO ga_frames (lineage, namespace) {} "
    "ON CONFLICT (lineage, namespace) DO UPDATE SET namespace = excluded.namespace RETURNING id"
)
MAKE_RUN = (
    "INSERT INTO ga_runs (lineage, run_id, fingerprint) {} "
    "ON CONFLICT (lineage, run_id, fingerprint) DO UPDATE SET run_id = excluded.run_id RETURNING id"
)
_MAKE_FRAME, _MAKE_RUN = MAKE_FRAME.format("VALUES (?, ?)"), MAKE_RUN.format("VALUES (?, ?, ?)")
_PUT_EFFECT = (
    "INSERT INTO ga_effects (base, position, name, ordinal, committed, result) "
    f"SELECT ?, ?, ?, ?, ?, ? FROM ({HELD}{{share}}) held WHERE true "
    "ON CONFLICT (base, position, name, ordinal) DO UPDATE SET "
    "committed = excluded.committed, result = excluded.result"
)
_PUT_ACTIVATION = (
    f"INSERT INTO ga_activations (base, position, body) SELECT ?, ?, ? FROM ({HELD}{{share}}) held WHERE true "
    "ON CONFLICT (base, position) DO UPDATE SET body = excluded.body"
)
FRAME = "SELECT f.id FROM ga_frames f JOIN ga_lineages l ON l.id = f.lineage WHERE l.name = ? AND f.namespace = ?"
CLOSE_STEP = (
    "DELETE FROM ga_activations WHERE base = ? AND NOT EXISTS ("
    f"SELECT 1 FROM ga_rows WHERE id > ? AND id <= ? AND source = {SOURCES.index('interrupt')} AND base = ?)"
)


def take_free(claim: Claim, dialect: Dialect) -> Operation[tuple[int, int] | None]:
    """Take a lineage that is free, in one statement; its key and the token. None: `acquire` tells more."""
    taken = yield dialect.take, claim.parameters
    return taken[0][:2] if taken else None


def acquire(claim: Claim, dialect: Dialect) -> Operation[tuple[int, int]]:
    """Take a lineage; returns its key and the token. Raises LineageBusy.

    The token is the time in microseconds, or one more than the last: so it also grows over a deletion.
    """
    free = yield from take_free(claim, dialect)
    if free is not None:
        return free
    held = yield (
        f"SELECT id, token, run_id, owner, since, expires FROM ga_lineages WHERE name = ?{dialect.exclusive}",
        (claim.lineage,),
    )
    key, token, run_id, owner, since, expires = held[0]
    if (run_id, owner, since) == (claim.run_id, claim.owner, claim.since):
        return key, token  # this very claim got through, only the reply was lost
    if owner is not None and expires >= 0 and not is_dead(owner):
        raise lineage_busy(claim.lineage, run_id, since, describe(owner))
    taken = yield (
        f"UPDATE ga_lineages SET token = {dialect.greatest}(token + 1, ?), run_id = ?, owner = ?, since = ?, "
        f"expires = {dialect.now} + ?, cancel = 0 WHERE id = ? RETURNING id, token",
        (int(claim.since * 1e6), claim.run_id, claim.owner, claim.since, claim.ttl, key),
    )
    return taken[0][0], taken[0][1]


def abandon(claim: Claim) -> Operation[None]:
    """Give back what a claim took, if it did: its applicant has gone without waiting for the answer."""
    yield (
        "UPDATE ga_lineages SET expires = -1 WHERE name = ? AND run_id = ? AND owner = ? AND since = ?",
        (claim.lineage, claim.run_id, claim.owner, claim.since),
    )


def release(grip: Grip) -> Operation[None]:
    """Give a lineage back."""
    yield RELEASE, (grip.keys.lineage, grip.token)


def request_cancel(lineage: str, dialect: Dialect) -> Operation[bool]:
    """Leave a request for the owner; False if there is no live one."""
    held = yield (
        f"UPDATE ga_lineages SET cancel = 1 WHERE name = ? AND owner IS NOT NULL AND expires >= {dialect.now} "
        "RETURNING owner",
        (lineage,),
    )
    return bool(held) and not is_dead(held[0][0])


def require_held(grip: Grip, dialect: Dialect) -> Operation[None]:
    """Raise LeaseLost unless the lease is the current one; it stays so until the transaction ends."""
    held = yield HELD + dialect.share, (grip.keys.lineage, grip.token)
    if not held:
        raise lease_lost(grip.lineage, grip.run_id)


def frame_key(grip: Grip, namespace: str) -> Operation[int]:
    """The key of a frame that isn't remembered, made if need be."""
    found = yield _MAKE_FRAME, (grip.keys.lineage, namespace)
    return int(found[0][0])


def run_key(grip: Grip, run: tuple[str, str]) -> Operation[int]:
    """The key of a run id with a fingerprint that isn't remembered, made if need be."""
    found = yield _MAKE_RUN, (grip.keys.lineage, *run)
    return int(found[0][0])


class Batch(NamedTuple):
    """Encoded rows of one frame: `rows` are (seq, run, columns)."""

    namespace: str
    rows: Sequence[tuple[int, tuple[str, str], tuple[Any, ...]]]
    closes: int | None = None
    release: bool = False


def append(grip: Grip, batch: Batch, dialect: Dialect) -> Operation[tuple[int, dict[tuple[str, str], int]]]:
    """Write rows; returns the keys of frame and runs, to be remembered once the transaction is committed.

    A row that is there already with the same content is taken as written: that is how a retry after a lost reply
    looks. Raises LeaseLost, SaveError.
    """
    keys = grip.keys
    frame = keys.frames.get(batch.namespace)
    if frame is None:
        frame = yield from frame_key(grip, batch.namespace)
    if dialect.lossy and (yield from _is_written(frame, batch)):
        return frame, {}
    if dialect.share or not batch.rows:  # else it is enough that the rows are written only if it is held
        yield from require_held(grip, dialect)
    runs: dict[tuple[str, str], int] = {}
    for seq, run, columns in batch.rows:
        run_id = keys.runs.get(run) or runs.get(run)
        if run_id is None:
            run_id = runs[run] = yield from run_key(grip, run)
        key = row_id(frame, seq)
        if dialect.lossy and (yield "SELECT 1 FROM ga_rows WHERE id = ?", (key,)):
            raise row_exists(grip.lineage, batch.namespace, seq)
        if not (yield INSERT_ROW, (key, run_id, *columns, keys.lineage, grip.token)):
            raise lease_lost(grip.lineage, grip.run_id)
    if batch.closes is not None:
        yield CLOSE_STEP, close_parameters(frame, batch.closes)
    if batch.release:
        yield RELEASE, (keys.lineage, grip.token)
    return frame, runs


def close_parameters(frame: int, base: int) -> tuple[int, int, int, int]:
    """Parameters of CLOSE_STEP."""
    return row_id(frame, base), row_id(frame, base), row_id(frame + 1, 0) - 1, base


def _is_written(frame: int, batch: Batch) -> Operation[bool]:
    for seq, run, columns in batch.rows:
        found = yield (
            f"SELECT s.run_id, s.fingerprint, {', '.join('r.' + name for name in COLUMNS)} FROM ga_rows r "
            "JOIN ga_runs s ON s.id = r.run WHERE r.id = ?",
            (row_id(frame, seq),),
        )
        if not found or tuple(found[0]) != (*run, *columns):
            return False
    return bool(batch.rows)


@dataclass(slots=True)
class Beside:
    """Entries of one kind to write beside the rows of a frame. Each is `statement` with the parameters: id of row
    `base`, `entry`, lease."""

    namespace: str
    base: int
    statement: str
    entries: Sequence[tuple[Any, ...]]

    def parameters(self, grip: Grip, frame: int, entry: tuple[Any, ...]) -> tuple[Any, ...]:
        """Those of one statement."""
        return row_id(frame, self.base), *entry, grip.keys.lineage, grip.token


def kept_activations(namespace: str, base: int, done: Sequence[tuple[int, bytes]], dialect: Dialect) -> Beside:
    """Finished activations to keep."""
    return Beside(namespace, base, dialect.put_activation, done)


def effect_entry(namespace: str, effect: EffectRow, result: bytes | None, dialect: Dialect) -> Beside:
    """An effect to claim, or to commit."""
    entry = (effect.position, effect.name, effect.ordinal, int(effect.committed), result)
    return Beside(namespace, effect.base, dialect.put_effect, [entry])


def put_alone(grip: Grip, beside: Beside) -> Operation[bool]:
    """Write the only entry to a frame whose key is remembered; False if the lease isn't the current one."""
    [entry] = beside.entries
    return bool((yield beside.statement, beside.parameters(grip, grip.keys.frames[beside.namespace], entry)))


def put_beside(grip: Grip, beside: Beside, dialect: Dialect) -> Operation[int]:
    """Write entries; returns the key of the frame. Raises LeaseLost."""
    yield from require_held(grip, dialect)
    frame = grip.keys.frames.get(beside.namespace)
    if frame is None:
        frame = yield from frame_key(grip, beside.namespace)
    for entry in beside.entries:
        yield beside.statement, beside.parameters(grip, frame, entry)
    return frame


def save_graph(fingerprint: str, document: bytes) -> Operation[None]:
    """Keep the document of a graph, unless one is there."""
    yield (
        "INSERT INTO ga_graphs (fingerprint, document) VALUES (?, ?) ON CONFLICT (fingerprint) DO NOTHING",
        (fingerprint, document),
    )


def pin(lineage: str, namespace: str, seq: int, pinned: bool) -> Operation[None]:
    """Protect a row from `prune`, or no longer. Raises CheckpointNotFound."""
    found = yield FRAME, (lineage, namespace)
    key = row_id(found[0][0], seq) if found else 0
    if not found or not (yield "SELECT 1 FROM ga_rows WHERE id = ?", (key,)):
        raise no_such_row(lineage, namespace, seq)
    if pinned:
        yield "INSERT INTO ga_pins (id) VALUES (?) ON CONFLICT (id) DO NOTHING", (key,)
    else:
        yield "DELETE FROM ga_pins WHERE id = ?", (key,)


def delete(lineage: str, dialect: Dialect) -> Operation[int]:
    """Remove all of a lineage; returns the number of rows."""
    found = yield f"SELECT id FROM ga_lineages WHERE name = ?{dialect.exclusive}", (lineage,)
    if not found:
        return 0
    key = found[0][0]
    rows = 0
    for (frame,) in (yield "SELECT id FROM ga_frames WHERE lineage = ?", (key,)):
        span = (row_id(frame, 0), row_id(frame + 1, 0) - 1)
        rows += (yield "SELECT count(*) FROM ga_rows WHERE id BETWEEN ? AND ?", span)[0][0]
        for table, column in (("rows", "id"), ("activations", "base"), ("effects", "base"), ("pins", "id")):
            yield f"DELETE FROM ga_{table} WHERE {column} BETWEEN ? AND ?", span
    for table in ("frames", "runs"):
        yield f"DELETE FROM ga_{table} WHERE lineage = ?", (key,)
    yield "DELETE FROM ga_lineages WHERE id = ?", (key,)
    return rows
