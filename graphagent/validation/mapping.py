"""From names of one version of a graph to those of the next, and from where a run stands to a marking of the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphagent.errors import UsageError
from graphagent.graph.joins import JoinTable
from graphagent.graph.marking import ALL_EDGES, Activation, Arrival, Group, JoinState, Marking
from graphagent.graph.names import END
from graphagent.graph.transitions import settle
from graphagent.unset import UNSET
from graphagent.validation.standing import Standing
from graphagent.validation.version import Version

Name = str | None
"""A name in the new version; None: given up on purpose."""


@dataclass(frozen=True)
class Renames:
    """What became of names: old -> new, None where it was given up. `values`: fields (by their new name) that a
    migration brings into their new type; `new`: fields that it fills."""

    nodes: Mapping[str, Name] = field(default_factory=dict)
    fields: Mapping[str, Name] = field(default_factory=dict)
    joins: Mapping[str, Name] = field(default_factory=dict)
    values: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()


NO_RENAMES = Renames()


def read_renames(doc: Mapping[str, Any], old: Version) -> Renames:
    """The renames of a map file: `nodes`, `fields`, `joins` (old -> new, null: given up), `migrations` (fields that are
    migrated), `new` (fields that are filled), `drop` (fields); or flat, old -> new. Raises UsageError.
    """
    parts = ("nodes", "fields", "state", "joins", "migrations", "values", "new", "drop", "renames")
    if not isinstance(doc, Mapping):
        raise UsageError(f"a map of renames is an object such as {{'nodes': {{'old': 'new'}}}}, not {doc!r:.60}")
    if isinstance(doc.get("renames"), Mapping):
        doc = doc["renames"]
    if not all(key in parts and not isinstance(value, str) for key, value in doc.items()):
        doc = {
            "nodes": {name: to for name, to in doc.items() if name in old.graph.index},
            "fields": {name: to for name, to in doc.items() if name in old.fields},
            "joins": {name: to for name, to in doc.items() if any(name == join.id for join in old.graph.joins)},
        }
    for part in ("nodes", "fields", "state", "joins"):
        renamed = doc.get(part) or {}
        if not isinstance(renamed, Mapping) or not all(isinstance(to, str | None) for to in renamed.values()):
            raise UsageError(f"'{part}' of a map of renames is new names (or null) by old name, not {renamed!r:.60}")
    for part in ("migrations", "values", "new", "drop"):
        listed = doc.get(part) or ()
        if isinstance(listed, str) or not all(isinstance(name, str) for name in _each(listed)):
            raise UsageError(f"'{part}' of a map of renames is a list of names, not {listed!r:.60}")
    fields = {**(doc.get("fields") or doc.get("state") or {}), **dict.fromkeys(doc.get("drop") or ())}
    values = frozenset([*(doc.get("migrations") or ()), *(doc.get("values") or ())])
    return Renames(doc.get("nodes") or {}, fields, doc.get("joins") or {}, values, frozenset(doc.get("new") or ()))


def _each(listed: Any) -> list[Any]:
    return list(listed) if isinstance(listed, Iterable) else [None]


def declared(new: Version) -> Renames:
    """What a graph itself declares: `formerly` of its nodes, and `migrates`."""
    nodes = {former: name for name, spec in new.doc["nodes"].items() for former in (spec or {}).get("formerly") or ()}
    said = new.doc.get("migrations") or {}
    fields = {**(said.get("fields") or {}), **dict.fromkeys(said.get("drop") or ())}
    return Renames(nodes, fields, {}, frozenset(said.get("values") or ()), frozenset(said.get("new") or ()))


class Mapper:
    """Finds the new name of an old one; `used` collects what only a declaration made it find."""

    def __init__(self, old: Version | None, new: Version, renames: Renames = NO_RENAMES) -> None:
        own = declared(new)
        self.old = old
        self.new = new
        self.given = renames
        self.nodes = {**{k: v for k, v in own.nodes.items() if k not in new.graph.index}, **renames.nodes}
        self.fields = {**{k: v for k, v in own.fields.items() if k not in new.fields}, **renames.fields}
        self.values = own.values | renames.values
        self.filled = own.new | renames.new
        self.used: set[str] = set()

    def node(self, name: str) -> Any:
        """The new id of a node, None if it was given up, UNSET if there is none."""
        return self._found(name, self.nodes, (*self.new.graph.index, END), "node")

    def field(self, name: str) -> Any:
        """The new name of a field, None if it was given up, UNSET if there is none."""
        return self._found(name, self.fields, self.new.fields, "field")

    def _found(self, name: str, renamed: Mapping[str, Name], known: Any, kind: str) -> Any:
        if name in renamed:
            self.used.add(f"{kind} '{name}'")
            to = renamed[name]
            return to if to is None or to in known else UNSET
        return name if name in known else UNSET

    def join(self, name: str) -> Any:
        """The place of a join by its old id, UNSET if there is none.

        One whose id was its target's is found by what the target is called now.
        """
        tables = self.new.graph.join_tables
        by_id = {table.id: place for place, table in enumerate(tables)}
        if name in self.given.joins:
            self.used.add(f"join '{name}'")
            return by_id.get(str(self.given.joins[name]), UNSET)
        if name in by_id:
            return by_id[name]
        if name in self.nodes:
            target = self.node(name)
            place = by_id.get(str(target), UNSET)
            if place is not UNSET and self.new.graph.name_of(tables[place].target) == target:
                return place
        return UNSET


@dataclass
class Landing:
    """A marking of the new version, and what did not find a place in it; a marking with gaps is None.

    `gone`: nodes of the frontier (or of what is due behind a Send group) without a place; `homeless`: arrivals, by
    old join id, that have none, with the table of the join if it is there; `given_up`: nodes that were dropped.
    """

    marking: Marking | None = None
    gone: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    homeless: list[tuple[str, tuple[str, ...], JoinTable | None]] = field(default_factory=list)


def land(mapper: Mapper, standing: Standing) -> Landing:
    """Put a standing into the new version; joins that are complete by its rules fire."""
    graph = mapper.new.graph
    landing = Landing()
    frontier = []
    for token in standing.frontier:
        node = mapper.node(token.node)
        if node is None and not token.group:
            landing.given_up.append(token.node)
        elif node is None or node is UNSET or node == END:
            landing.gone.append(token.node)
        else:
            frontier.append(Activation(graph.index[node], overlay={} if token.group else None, group=token.group))
    joins = _joins(mapper, standing, landing)
    groups = _groups(mapper, standing, landing)
    landing.gone = list(dict.fromkeys(landing.gone))
    if not landing.gone and not landing.homeless:
        marking = Marking(tuple(frontier), tuple(joins) if any(joins) else graph.no_joins, groups, standing.ended)
        landing.marking = settle(graph, marking)
    return landing


def _joins(mapper: Mapper, standing: Standing, landing: Landing) -> list[JoinState | None]:
    graph = mapper.new.graph
    joins: list[JoinState | None] = list(graph.no_joins)
    for name, waiting in standing.joins.items():
        place = mapper.join(name)
        if place is UNSET:
            landing.homeless.append((name, tuple(waiting.arrived), None))
            continue
        table = graph.join_tables[place]
        slots: dict[Any, int] = {graph.names[source]: slot for slot, source in enumerate(table.sources)}
        found = {source: mapper.node(source) for source in waiting.arrived}
        lost = tuple(source for source, now in found.items() if now is not None and now not in slots)
        if lost:
            landing.homeless.append((name, lost, table))
            continue
        kept = [(slots[found[source]], count) for source, count in waiting.arrived.items() if found[source] is not None]
        if kept:
            joins[place] = JoinState(tuple((slot, (Arrival(),) * count) for slot, count in sorted(kept)), waiting.fired)
    return joins


def _groups(mapper: Mapper, standing: Standing, landing: Landing) -> tuple[Group, ...]:
    graph = mapper.new.graph
    groups = []
    for group in standing.groups:
        exits = []
        for node, target in group.exits:
            source, end = mapper.node(node), None if target is None else mapper.node(target)
            if source in (None, UNSET) or (target is not None and end in (None, UNSET)):
                landing.gone.append(node if source in (None, UNSET) else str(target))
                continue
            exits.append((graph.index[source], ALL_EDGES if target is None else _index(mapper, end)))
        groups.append(Group(group.id, group.open, tuple(exits)))
    return tuple(groups)


def _index(mapper: Mapper, name: Any) -> int:
    return -1 if name == END else mapper.new.graph.index[name]
