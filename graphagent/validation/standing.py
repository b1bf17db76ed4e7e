"""Where an unfinished run stands, by name: what compatibility asks another version of the graph about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphagent.errors import UsageError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import ALL_EDGES, Marking
from graphagent.unset import UNSET


class Token(NamedTuple):
    """An activation of the frontier: its node, and the Send group it belongs to (0: none)."""

    node: str
    group: int = 0


class Waiting(NamedTuple):
    """Progress of a join: arrivals by source; `fired`: this lap of an `any` or `n` join has."""

    arrived: Mapping[str, int]
    fired: bool = False


class OpenGroup(NamedTuple):
    """A Send group: members that have not ended, and (node, target) pairs due then; target None: all edges."""

    id: int
    open: int
    exits: tuple[tuple[str, str | None], ...] = ()


class Pending(NamedTuple):
    """An open question; `schema` of its answer, UNSET where it isn't known."""

    node: str
    key: str
    schema: Any = UNSET


@dataclass(frozen=True)
class Standing:
    """Where a run stands.

    `fields`: what is stored, by field, with plain data or UNSET where the value isn't known; None: whatever such a
    run has. `decoded`: they have been read in the new version's names and types, and fit. `decided`: targets that
    finished activations chose and that were not followed yet, as (node, target). `frames`: child graphs in flight.
    """

    frontier: tuple[Token, ...]
    joins: Mapping[str, Waiting] = field(default_factory=dict)
    groups: tuple[OpenGroup, ...] = ()
    ended: bool = False
    pending: tuple[Pending, ...] = ()
    fields: Mapping[str, Any] | None = None
    decided: tuple[tuple[str, str], ...] = ()
    decoded: bool = False
    steps: int | None = None
    laps: Mapping[str, int] = field(default_factory=dict)
    frames: tuple[tuple[str, Standing], ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the frontier, each once."""
        return tuple(dict.fromkeys(token.node for token in self.frontier))


def standing_of(graph: CompiledGraph, marking: Marking) -> Standing:
    """Where a marking of a graph is, by name; nothing is said of state and questions."""
    names = graph.names
    joins = {
        table.id: Waiting({names[table.sources[slot]]: len(queue) for slot, queue in state.arrived}, state.fired)
        for table, state in zip(graph.join_tables, marking.joins, strict=True)
        if state is not None
    }
    groups = tuple(
        OpenGroup(g.id, g.open, tuple((names[n], None if t == ALL_EDGES else graph.name_of(t)) for n, t in g.exits))
        for g in marking.groups
    )
    frontier = tuple(Token(names[activation.node], activation.group) for activation in marking.frontier)
    return Standing(frontier, joins, groups, marking.ended)


def read_standing(doc: Mapping[str, Any]) -> Standing:
    """The standing that a checkpoint file describes. Raises UsageError.

    `frontier`: node ids, or objects with `node` (and `group`); `joins`: arrived sources by join id; `interrupts`:
    objects with `node`, `key` and maybe `schema`; `state`: values by field, or names of fields; `steps`, `laps`;
    `decisions`: objects with `node` and `target` or `targets`; `frames`: objects with `node` and the same again.
    """
    try:
        return _read(doc)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"the checkpoint is malformed: {type(error).__name__}: {error}; it is an object with 'frontier' "
            f"(node ids), and maybe 'joins', 'interrupts', 'state', 'steps', 'laps', 'frames'"
        ) from error


def _read(doc: Mapping[str, Any]) -> Standing:
    if "frontier" not in doc and isinstance(doc.get("checkpoint"), Mapping):
        doc = doc["checkpoint"]
    state: Any = doc.get("state")
    if isinstance(state, Sequence) and not isinstance(state, str):
        state = dict.fromkeys(map(_text, state), UNSET)
    if not isinstance(state, Mapping | None):
        raise TypeError(f"'state' is {state!r:.60}, not values by field or names of fields")
    tokens = tuple(_tokens(doc["frontier"]))
    grouped = Counter(token.group for token in tokens if token.group)
    exits = {group: tuple((t.node, None) for t in tokens if t.group == group) for group in grouped}
    return Standing(
        tokens,
        dict(_joins(doc.get("joins") or {})),
        tuple(OpenGroup(group, count, tuple(dict.fromkeys(exits[group]))) for group, count in grouped.items()),
        bool(doc.get("ended", False)),
        tuple(_pending(doc.get("interrupts") or doc.get("pending") or ())),
        state,
        tuple(_decided(doc.get("decisions") or ())),
        steps=None if doc.get("steps") is None else int(doc["steps"]),
        laps={_text(name): int(count) for name, count in dict(doc.get("laps") or {}).items()},
        frames=tuple((_text(item["node"]), _read(item)) for item in doc.get("frames") or () if "frontier" in item),
    )


def _tokens(items: Any) -> Iterable[Token]:
    if isinstance(items, Mapping):  # node -> how often it is due
        items = [name for name, count in items.items() for _ in range(int(count))]
    for item in items:
        if isinstance(item, str):
            yield Token(item)
        else:
            yield Token(_text(item["node"]), int(item.get("group") or 0))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.60} is not a name")
    return value


def _joins(items: Any) -> Iterable[tuple[str, Waiting]]:
    if not isinstance(items, Mapping):
        items = {item["id"]: item for item in items}
    for name, progress in items.items():
        said = isinstance(progress, Mapping) and ("arrived" in progress or "fired" in progress)
        arrived = (progress.get("arrived") or ()) if said else progress
        counts = {k: int(v) for k, v in arrived.items()} if isinstance(arrived, Mapping) else Counter(arrived)
        if counts:
            yield name, Waiting(counts, bool(progress.get("fired")) if said else False)


def _pending(items: Any) -> Iterable[Pending]:
    for item in items:
        yield Pending(_text(item["node"]), _text(item.get("key", item["node"])), item.get("schema", UNSET))


def _decided(items: Any) -> Iterable[tuple[str, str]]:
    pairs = items.items() if isinstance(items, Mapping) else map(_decision, items)
    for node, targets in pairs:
        for target in [targets] if isinstance(targets, str) else targets:
            yield _text(node), _text(target)


def _decision(item: Mapping[str, Any]) -> tuple[str, Any]:
    return item["node"], item.get("targets", item.get("target", item.get("label")))
