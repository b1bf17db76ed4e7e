"""Two runs side by side: where they part, and in what."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from graphagent.checkpoint.fold import merge_mapping
from graphagent.checkpoint.record import ListDelta
from graphagent.checkpoint.sql.plain import merge_plain
from graphagent.debug.rows import Rows, Written
from graphagent.engine.executor import Executor
from graphagent.engine.frame import is_root
from graphagent.engine.timetravel import Change, changes_between, place_of
from graphagent.errors import CheckpointNotFound, alternatives
from graphagent.graph.reducers import same
from graphagent.ids import checkpoint_id
from graphagent.unset import UNSET
from graphagent.validation.coverage import label_text

Why = Literal["nodes", "state", "route", "length"]
_CHANGING = ("input", "step", "edit")


@dataclass(frozen=True, slots=True)
class AlignedStep:
    """A row of each run: its id, and the nodes that ran (none in the row of an input or an edit). The id is None where
    that run has no row any more. `alike`: the same nodes ran, and made the same change and went on the same way."""

    a: str | None
    b: str | None
    nodes_a: tuple[str, ...]
    nodes_b: tuple[str, ...]
    alike: bool


@dataclass(frozen=True, slots=True)
class Parting:
    """The first step in which two runs differ; `index`: its place in the steps of the comparison.

    `why`: other `nodes` ran, or the same made another `state` of it, or went another `route` from the same state, or
    one of the runs has ended before (`length`). `changes`: all fields that differ after it; `before` is the first run's
    value and `after` the second's. `labels`: per node that went another way what its router says in each, or where it
    jumped.
    """

    index: int
    why: Why
    changes: Mapping[str, Change]
    labels: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, each named by its last checkpoint. `shared`: how many rows they have in common, since one was forked
    from the other; `steps` begin behind them. `parting`: None if they are alike to the end."""

    a: str
    b: str
    shared: int
    steps: tuple[AlignedStep, ...]
    parting: Parting | None


async def compare_runs(executor: Executor, a: str, b: str) -> Comparison:
    """Align two runs of the executor's graph row by row, from the beginning or behind the fork.

    `a`, `b`: a lineage, or a checkpoint's id, whose history is then meant. Behind the parting rows are aligned by their
    order. Raises CheckpointNotFound.
    """
    one, other = [await _side(executor, text) for text in (a, b)]
    left, right = await one.next(), await other.next()
    shared = 0
    while left is not None and right is not None and left.place == right.place:
        shared += 1
        left, right = await one.next(), await other.next()
    steps: list[AlignedStep] = []
    parting = None
    while True:
        left, right = await one.changing(left), await other.changing(right)
        if left is None and right is None:
            break
        why = await _why(one, left, other, right)
        if why is not None and parting is None:
            parting = await _parting(len(steps), why, (one, left), (other, right))
        steps.append(AlignedStep(_id(left), _id(right), _nodes(left), _nodes(right), why is None))
        left, right = left and await one.next(), right and await other.next()
    return Comparison(one.newest, other.newest, shared, tuple(steps), parting)


class _At(NamedTuple):
    """A row, and the fields without the list-like ones as they are there, as they are stored."""

    written: Written
    values: Mapping[str, Any]

    @property
    def place(self) -> tuple[str, str, int]:
        return self.written.lineage, self.written.namespace, self.written.row.seq

    def ahead(self) -> Any:
        """What comes next, and what waits at joins."""
        plain = self.written.row.marking
        if isinstance(plain, dict) and "m" in plain:
            plain = plain["m"]
        if isinstance(plain, str):
            plain = {"f": [[plain]]}
        due = [[name, [segment for segment, _ in more[0]] if more else []] for name, *more in plain["f"]]
        joins = {
            join: [sorted((source, len(queue)) for source, queue in arrived), fired]
            for join, (arrived, fired) in plain.get("j", {}).items()
        }
        return due, joins, {int(place): dict(overlay) for place, overlay in self.written.row.overlays.items()}


class _Side:
    """One of the runs, gone through from its beginning."""

    def __init__(self, rows: Rows, seq: int) -> None:
        self.rows = rows
        self.newest = checkpoint_id(rows.lineage, rows.namespace, seq)
        self._history: AsyncIterator[Written] = rows.history(seq)
        self._values: dict[str, Any] = {}
        self._merge = merge_plain if rows.store.persistent else merge_mapping

    async def next(self) -> _At | None:
        """The next row, None behind the last."""
        written = await anext(self._history, None)
        if written is None:
            return None
        row, values = written.row, self._values
        values.update(row.values)
        for name, patch in row.patches.items():
            values[name] = self._merge(values[name], patch) if name in values else patch
        return _At(written, values)

    async def changing(self, here: _At | None) -> _At | None:
        """The row, or the next one after it that may have changed the state."""
        while here is not None and here.written.row.source not in _CHANGING:
            here = await self.next()
        return here

    async def state(self, here: _At) -> Mapping[str, Any]:
        """The whole state at a row."""
        rows = Rows(self.rows.executor, self.rows.setup, here.written.lineage, here.written.namespace)
        return (await rows.frame(here.written.row.seq)).values

    async def ways(self, here: _At) -> dict[str, str]:
        """Where each node of a step that has a choice went: the labels of its routers, or its jumps."""
        graph, row = self.rows.setup.graph, here.written.row
        note = row.note or {}
        found = {
            row.nodes[place]: " ".join(targets) for place, targets, *_ in note.get("goto", ()) if place < len(row.nodes)
        }
        for place, targets in note.get("sends", ()):
            if place < len(row.nodes):
                found[row.nodes[place]] = ", ".join(
                    f"{targets.count(name)} x {name}" for name in dict.fromkeys(targets)
                )
        view = graph.schema.view(dict(await self.state(here)))
        for name in row.nodes:
            routes = graph.routers[graph.index[name]] if name in graph.index and name not in found else ()
            labels = []
            for route in routes:
                try:
                    labels.append(_text(await route.router(view) if route.is_async else route.router(view)))
                except Exception as error:
                    labels.append(f"{type(error).__name__}: {error}")
            if labels:
                found[name] = ", ".join(labels)
        return found


async def _side(executor: Executor, text: str) -> _Side:
    """The run that a lineage or a checkpoint's id means."""
    store = executor.store
    spaces = [space for space in await store.namespaces(text) if is_root(space)]
    if spaces:
        namespace = "" if "" in spaces else spaces[0]
        newest = (await store.history(text, namespace, limit=1))[0].seq
        return _Side(await Rows.within(executor, text, namespace), newest)
    try:
        lineage, namespace, seq = await place_of(store, text)
    except CheckpointNotFound as error:
        known = await store.lineages(limit=1000)
        raise CheckpointNotFound(
            f"no lineage or checkpoint '{text}' in this store: {alternatives(text, known)}"
        ) from error
    rows = await Rows.within(executor, lineage, namespace)
    await rows.written(seq)
    return _Side(rows, seq)


async def _why(one: _Side, left: _At | None, other: _Side, right: _At | None) -> Why | None:
    """In what two rows differ."""
    if left is None or right is None:
        return "length"
    if left.written.row.nodes != right.written.row.nodes:
        return "nodes"
    if await _other_state(one, left, other, right):
        return "state"
    return None if left.ahead() == right.ahead() else "route"


async def _other_state(one: _Side, left: _At, other: _Side, right: _At) -> bool:
    """Whether two rows that go on from the same state lead to different ones."""
    a, b = left.written.row, right.written.row
    touched = {*a.values, *a.patches, *b.values, *b.patches}
    if not all(same(left.values.get(name, UNSET), right.values.get(name, UNSET)) for name in touched):
        return True
    if left.written.begins == right.written.begins:
        return _lists(a.lists) != _lists(b.lists)
    names = one.rows.setup.graph.schema.names
    return bool(changes_between(names, await one.state(left), await other.state(right)))


def _lists(changes: Mapping[str, ListDelta]) -> dict[str, Any]:
    return {name: (list(change.items), tuple(change.put), tuple(change.drop)) for name, change in changes.items()}


async def _parting(index: int, why: Why, a: tuple[_Side, _At | None], b: tuple[_Side, _At | None]) -> Parting:
    """What there is to say of the step in which two runs part."""
    (one, left), (other, right) = a, b
    if left is None or right is None:
        return Parting(index, why, {}, {})
    names = one.rows.setup.graph.schema.names
    changes = changes_between(names, await one.state(left), await other.state(right))
    labels = {}
    if left.written.row.nodes == right.written.row.nodes and left.ahead() != right.ahead():
        mine, theirs = await one.ways(left), await other.ways(right)
        labels = {name: (way, theirs[name]) for name, way in mine.items() if name in theirs and theirs[name] != way}
    return Parting(index, why, changes, labels)


def _text(returned: Any) -> str:
    """What a router returned, for a person."""
    several = isinstance(returned, list | tuple | set | frozenset)
    return " ".join(map(label_text, returned)) if several else label_text(returned)


def _id(here: _At | None) -> str | None:
    return None if here is None else here.written.checkpoint


def _nodes(here: _At | None) -> tuple[str, ...]:
    return () if here is None else here.written.row.nodes
