"""One version of a graph, as compatibility looks at it: the graph, and its document where that says more.

A graph that was read from its document has stand-ins for functions and `Any` for types of the user, so names of types,
schemas of answers and child graphs are taken from the document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from graphagent.errors import GraphDefinitionError, UsageError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import NodeDef
from graphagent.unset import UNSET
from graphagent.validation.access import Access, accesses
from graphagent.validation.bodies import read_body
from graphagent.validation.document import load_document
from graphagent.validation.outcomes import Choices, choices

_RULES = {"replace": "last", "sum": "add"}
_INSIDE = {"subgraph", "agent", "map"}


class FieldShape(NamedTuple):
    """A field: type and merge rule as text; `default` is plain data, or UNSET where there is none or it isn't known."""

    name: str
    type: str
    reducer: str
    required: bool
    persistent: bool
    default: Any


class RouteShape(NamedTuple):
    """What a route may answer: label -> target (None: not declared), and where it goes else."""

    labels: Mapping[str, str] | None
    default: str | None


class MapShape(NamedTuple):
    """What a fan-out runs once an item, and what runs then."""

    workers: tuple[str, ...]
    collector: str | None


class Asked(NamedTuple):
    """A question that a node is known to ask; `schema` of its answer, UNSET where it isn't known."""

    key: str
    schema: Any


@dataclass(frozen=True, eq=False)
class Version:
    """A graph and its document. `declared` False: written by a person, what it leaves out is not there."""

    graph: CompiledGraph
    doc: Mapping[str, Any]

    @classmethod
    def of(cls, graph: CompiledGraph) -> Version:
        """The version that a compiled graph is."""
        return cls(graph, document_of(graph))

    @classmethod
    def read(cls, doc: Mapping[str, Any], *, path: str = "") -> Version:
        """The version that a document describes. Raises UsageError for one that is malformed or can't be compiled."""
        try:
            return cls(load_document(doc, path=path).builder.compile(strict=False), doc)
        except GraphDefinitionError as error:
            raise UsageError(f"the document of graph '{doc.get('name', '?')}' can't be compiled: {error}") from error

    @property
    def name(self) -> str:
        """The graph's name."""
        return self.graph.name

    @property
    def label(self) -> str:
        """How the version is named in messages: what the user calls it, and the fingerprint."""
        text = str(self.doc.get("version") or "")
        return f"version '{text}' ({self.fingerprint})" if text else f"'{self.fingerprint}'"

    @property
    def fingerprint(self) -> str:
        """The fingerprint that its rows have."""
        return str(self.doc.get("fingerprint") or self.graph.fingerprint)

    @cached_property
    def choices(self) -> Choices:
        """The declared alternatives of every node."""
        return choices(self.graph)

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """What each node reads and writes, in order of declaration."""
        return accesses(self.graph)

    @cached_property
    def fields(self) -> Mapping[str, FieldShape]:
        """The fields of the state."""
        given = self.doc.get("state") or {}
        own = self.graph.schema.describe()
        return {name: _field(name, {**own[name], **given.get(name, {})}, name in given) for name in own}

    @cached_property
    def maps(self) -> Mapping[str, MapShape]:
        """The fan-outs, by the node that makes them."""
        return {
            route["from"]: MapShape(tuple(route.get("targets") or ()), route.get("collector"))
            for route in self.doc.get("routes") or ()
            if route.get("select") == "map"
        }

    @cached_property
    def routes(self) -> Mapping[str, list[RouteShape]]:
        """The routes of each node."""
        found: dict[str, list[RouteShape]] = {}
        for route in self.graph.routes:
            labels = None
            if route.labels is not None:
                labels = {str(getattr(label, "value", label)): target for label, target in route.labels.items()}
            found.setdefault(route.source, []).append(RouteShape(labels, route.default))
        return found

    def node(self, name: str) -> Mapping[str, Any]:
        """What the document says of a node; empty for one that it doesn't have."""
        return self.doc["nodes"].get(name) or {}

    def kind(self, name: str) -> str:
        """What a node is while it runs: `subgraph`, `agent`, `map`, or `plain` for all that has nothing inside."""
        kind = str(self.node(name).get("kind", "function"))
        return kind if kind in _INSIDE else "plain"

    def asks(self, name: str) -> list[Asked] | None:
        """The questions of a node; None if it may ask what isn't known."""
        listed = self.node(name).get("interrupts")
        if listed is not None:
            return [Asked(item["key"], item.get("schema", UNSET)) for item in listed]
        if self.kind(name) != "plain":
            return None
        if "fingerprint" not in self.doc:
            return []
        keys = read_body(self.graph.nodes[name].fn).asks if "asks" not in self.node(name) else self.node(name)["asks"]
        return None if None in keys else [Asked(str(key), UNSET) for key in keys]

    def child(self, name: str) -> Version | None:
        """The child graph of a node; None if there is none or it isn't known."""
        return self._children.get(name)

    @cached_property
    def _children(self) -> Mapping[str, Version]:
        found = {}
        for node in self.graph.defs:
            inside = self.node(node.id).get("child")
            if isinstance(node.child, CompiledGraph):
                found[node.id] = Version.of(node.child)
            elif isinstance(inside, Mapping):
                found[node.id] = Version.read(inside)
        return found


def _field(name: str, spec: Mapping[str, Any], given: bool) -> FieldShape:
    reducer = str(spec.get("reducer", "last"))
    default = spec.get("default", UNSET) if given else UNSET
    required = bool(spec.get("required", "default" not in spec))
    return FieldShape(
        name,
        str(spec.get("type", "Any")),
        _RULES.get(reducer, reducer),
        required,
        bool(spec.get("persistent", True)),
        default,
    )


def document_of(graph: CompiledGraph) -> dict[str, Any]:
    """The canonical document, and in it what only the code knows: schemas of answers, keys that function nodes ask by,
    child graphs, migrations; `null` stands for reads and writes that aren't declared."""
    doc = graph.to_json()
    for node in graph.defs:
        spec = doc["nodes"][node.id]
        spec |= {role: None if names is None else list(names) for role, names in _uses(node)}
        if node.kind == "interrupt":
            spec["interrupts"] = [{"key": node.config["key"], "schema": answer_schema(node.config["answer_type"])}]
        elif node.kind == "function" and (asks := read_body(node.fn).asks):
            spec["asks"] = list(asks)
        if isinstance(node.child, CompiledGraph):
            spec["child"] = document_of(node.child)
    if graph.definition.migrations:
        doc["migrations"] = _migrations(graph)
    result: dict[str, Any] = json.loads(json.dumps(doc, default=str))
    return result


def _migrations(graph: CompiledGraph) -> dict[str, Any]:
    """What `migrates` was told; of functions only for which fields there is one."""
    made = graph.definition.migrations
    return {
        "fields": {old: new for one in made for old, new in one.fields.items()},
        "values": sorted({name for one in made for name in one.values}),
        "new": sorted({name for one in made for name in one.new}),
        "drop": sorted({name for one in made for name in one.drop}),
    }


def _uses(node: NodeDef) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    yield "reads", node.reads
    yield "writes", node.writes


def answer_schema(answer_type: Any) -> Any:
    """The JSON schema of an answer type; None for one that takes anything or has no schema."""
    if answer_type is Any or answer_type is None:
        return None
    try:
        return TypeAdapter(answer_type).json_schema()
    except Exception:
        return None
