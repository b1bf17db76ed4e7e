"""Opens the store that a command names, and an executor on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from graphagent import Executor, SqlCheckpoints
from graphagent.checkpoint import CheckpointStore
from graphagent.checkpoint.record import Loaded
from graphagent.engine.timetravel import place_of
from graphagent.errors import CheckpointNotFound, UsageError, alternatives
from graphagent.ids import parse_checkpoint_id
from runner.cli.options import DB_VARIABLE, Stored, Typed
from runner.cli.target import load_graph


@asynccontextmanager
async def stored_runs(options: Stored) -> AsyncIterator[SqlCheckpoints]:
    """The store with the runs. Raises UsageError if none is named, or a SQLite file that isn't there."""
    async with SqlCheckpoints(existing_store(options.db)) as store:
        yield store


@asynccontextmanager
async def stored_graph(options: Typed) -> AsyncIterator[Executor]:
    """An executor on the store, of the graph that wrote the run. Raises UsageError if either is not named."""
    if options.graph is None:
        raise UsageError("this needs the graph that wrote the run: give --graph module:name")
    graph = load_graph(options.graph)
    async with stored_runs(options) as store:
        yield Executor(graph, store)


def existing_store(db: str | None) -> str:
    """The url itself. Raises UsageError if none is named, or a SQLite file that isn't there."""
    if not db:
        raise UsageError(f"no store is named: give --db URL (such as --db sqlite:///runs.db) or set {DB_VARIABLE}")
    path = _sqlite_path(db)
    if path is not None and not Path(path).exists():
        raise UsageError(f"no database '{path}' in '{Path.cwd()}': correct --db; 'graphagent run' makes a new one")
    return db


def _sqlite_path(url: str) -> str | None:
    """The path of the file that a url of SQLite names; None for other databases and for one in memory."""
    scheme, mark, rest = url.partition("://")
    path = rest[1:] if mark else url
    return path if path not in ("", ":memory:") and (not mark or scheme == "sqlite") else None


async def known_lineage(store: CheckpointStore, lineage: str) -> str:
    """The lineage itself. Raises CheckpointNotFound, with the nearest or the known ones, if nothing is stored of it."""
    known = await store.lineages()
    if lineage not in known:
        raise CheckpointNotFound(f"no lineage '{lineage}' in this store: {alternatives(lineage, known)}")
    return lineage


async def load_plain(
    store: CheckpointStore, lineage: str, checkpoint: str | None = None, namespace: str = ""
) -> Loaded:
    """A stored row with its state as plain data, by id or number, or the newest. Raises CheckpointNotFound."""
    seq = None
    if checkpoint is not None:
        place = parse_checkpoint_id(checkpoint, lineage)
        if place is None:
            raise CheckpointNotFound(f"'{checkpoint}' is not a checkpoint of '{lineage}'; ids look like '{lineage}:3'")
        namespace, seq = (namespace if checkpoint.isdigit() else place[0]), place[1]
    loaded = await store.load(lineage, namespace, seq)
    if loaded is None:
        await known_lineage(store, lineage)
        if not await store.history(lineage, namespace, limit=1):
            known = alternatives(namespace, await store.namespaces(lineage))
            raise CheckpointNotFound(f"lineage '{lineage}' has no child graph '{namespace}': {known}")
        heads = [header.id for header in await store.history(lineage, namespace)]
        raise CheckpointNotFound(f"lineage '{lineage}' has no checkpoint {seq}: {alternatives(str(checkpoint), heads)}")
    return loaded


async def load_plain_id(store: CheckpointStore, checkpoint: str) -> Loaded:
    """The stored row with this full id, its state as plain data. Raises CheckpointNotFound."""
    lineage, namespace, seq = await place_of(store, checkpoint)
    return await load_plain(store, lineage, str(seq), namespace)
