"""What each node reads and writes: as declared, from its source, from its annotations, or not known.

A declaration counts first. Else the source is followed (`graphagent.validation.inference`), since it is what runs;
where it can't be, the annotations of a function may say what it takes and gives; else it is not known, and nothing is
concluded from it.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import NodeDef
from graphagent.graph.jumps import jump_kinds
from graphagent.graph.schema import StateSchema
from graphagent.validation.flow import needed, surely_written
from graphagent.validation.inference import Inferred, infer

Origin = Literal["declared", "inferred", "unknown"]
Names = frozenset[str]
NONE: Names = frozenset()


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read. `fields` as far as known; `needs`: those that must be set, or the reader fails. With the origin
    `unknown` there may be more."""

    fields: Names = NONE
    needs: Names = NONE
    origin: Origin = "declared"


@dataclass(frozen=True, slots=True)
class Writing:
    """What is written. `fields` as far as known; `surely`: those that are written on every return. With the origin
    `unknown` there may be more of both."""

    fields: Names = NONE
    surely: Names = NONE
    origin: Origin = "declared"


@dataclass(frozen=True, slots=True)
class Access:
    """What a node does with the state. `routing`: what its routers read, after its own writes. `overlays`: per node
    that it sends items to, the fields that each item surely brings along; None for any other that it may send to, whose
    overlay is not known. `undeclared`: names that its source takes from the state or writes, and that are no fields.
    """

    node: str
    reads: Reading = Reading()
    writes: Writing = Writing()
    routing: Reading = Reading()
    overlays: Mapping[str | None, Names | None] = field(default_factory=dict)
    undeclared: tuple[tuple[str, str], ...] = ()


def by_field(found: Iterable[Access], names: Callable[[Access], Iterable[str]]) -> dict[str, list[Access]]:
    """Accesses by the fields that `names` gives for each."""
    index: dict[str, list[Access]] = {}
    for access in found:
        for name in names(access):
            index.setdefault(name, []).append(access)
    return index


def accesses(graph: CompiledGraph) -> tuple[Access, ...]:
    """The access of every node, in order of declaration. Functions are looked at, not called."""
    routers: dict[str, list[Any]] = {}
    for route in graph.routes:
        routers.setdefault(route.source, []).append(route.router)
    hooked = _hooked(graph)
    return tuple(_access(graph, node, routers.get(node.id, ()), hooked) for node in graph.defs)


def _access(graph: CompiledGraph, node: NodeDef, routers: Iterable[Any], hooked: set[str | None]) -> Access:
    schema = graph.schema
    seen = _seen(node, schema)
    if node.kind == "map":
        over = frozenset({node.config["over"]})
        reads, writes = Reading(over, over), Writing()
    elif node.kind == "interrupt":
        prompt = node.config.get("prompt")
        reads = _read_by(infer(prompt, schema.state, schema.fields)) if callable(prompt) else Reading()
        answer = frozenset(name for name in (node.config["writes"],) if name is not None)
        writes = Writing(answer, answer)
    else:
        reads, writes = _of_child(node, schema) if node.kind == "subgraph" else _inferred(seen, node, schema)
        if node.reads is not None:
            reads = Reading(frozenset(node.reads), frozenset(node.reads))
        if node.writes is not None:
            writes = Writing(frozenset(node.writes), frozenset(node.writes))
    if hooked & {None, node.id}:
        reads, writes = replace(reads, origin="unknown"), replace(writes, origin="unknown")
    looks = [infer(look, schema.state, schema.fields) for look in _looks(node, routers)]
    routing = _both(*map(_read_by, looks))
    return Access(node.id, reads, writes, routing, _overlays(node, seen), _undeclared(node, seen, looks, schema))


def _hooked(graph: CompiledGraph) -> set[str | None]:
    """The nodes (None: all) with callbacks that may look at anything and put another result in place."""
    return {
        name
        for name, callbacks in graph.definition.callbacks
        if getattr(callbacks, "before", None) is not None or getattr(callbacks, "after", None) is not None
    }


def _looks(node: NodeDef, routers: Iterable[Any]) -> list[Callable[[Any], Any]]:
    """The functions beside its own that look at the state for a node: routers and conditions of breakpoints."""
    conditions = [c for c in (node.interrupt_before, node.interrupt_after) if callable(c)]
    return conditions if _from_document(node) else [*routers, *conditions]


def _from_document(node: NodeDef) -> bool:
    """True if the functions of the node are stand-ins: what the document doesn't say can't be looked up in them."""
    return "declared_kind" in node.metadata


def _seen(node: NodeDef, schema: StateSchema) -> Inferred:
    """What the source of a function node shows; nothing for other kinds, whose functions are not the user's."""
    if node.kind != "function" or node.fn is None or _from_document(node):
        return Inferred()
    return infer(node.fn, schema.state, schema.fields)


def _read_by(seen: Inferred) -> Reading:
    return Reading(seen.reads, seen.needs, "unknown" if seen.reads_open else "inferred")


def _both(*readings: Reading) -> Reading:
    """All that several readers read; not known if one is not, inferred if one is."""
    fields = frozenset[str]().union(*(reading.fields for reading in readings))
    needs = frozenset[str]().union(*(reading.needs for reading in readings))
    origins = {reading.origin for reading in readings}
    origin: Origin = "unknown" if "unknown" in origins else "inferred" if "inferred" in origins else "declared"
    return Reading(fields, needs, origin)


# -- annotations -------------------------------------------------------------------------------------


def _inferred(seen: Inferred, node: NodeDef, schema: StateSchema) -> tuple[Reading, Writing]:
    """What the source shows; where that is not all, annotations fill in."""
    reads, writes = _read_by(seen), _written(seen, schema)
    if node.kind != "function" or _from_document(node):
        return reads, writes
    taken = _annotated(node.fn, schema, first=True) if reads.origin == "unknown" else None
    if taken is not None:
        reads = Reading(reads.fields | taken.keys(), reads.needs, "inferred")
    given = _annotated(node.fn, schema, first=False) if writes.origin == "unknown" else None
    if given is not None:
        surely = frozenset(name for name, must in given.items() if must)
        writes = Writing(writes.fields | given.keys(), writes.surely | surely, "inferred")
    return reads, writes


def _written(seen: Inferred, schema: StateSchema) -> Writing:
    known = seen.writes.known & schema.fields.keys()
    return Writing(known, seen.writes.surely & known, "unknown" if seen.writes.open else "inferred")


def _annotated(fn: Any, schema: StateSchema, *, first: bool) -> Mapping[str, bool] | None:
    """The fields, and whether each must be there, of the narrower class that the first parameter is annotated with, or
    the return value; None if there is none. The class of the state, or one it is built on, says nothing."""
    target = getattr(fn, "func", fn)
    target = target if hasattr(target, "__annotations__") else getattr(target, "__call__", target)  # noqa: B004
    try:
        hints = typing.get_type_hints(target)
    except Exception:  # an annotation that can't be evaluated here
        return None
    names = [name for name in hints if name != "return"]
    annotation = hints.get("return") if not first else hints[names[0]] if names else None
    fields = _fields_of(annotation, mapping_only=not first)
    if fields is None or annotation is schema.state:
        return None
    if isinstance(annotation, type) and not typing.is_typeddict(annotation) and issubclass(schema.state, annotation):
        return None
    shared = {name: must for name, must in fields.items() if name in schema.fields}
    return shared if shared and len(shared) < len(schema.fields) else None


def _fields_of(annotation: Any, *, mapping_only: bool) -> dict[str, bool] | None:
    if typing.is_typeddict(annotation):
        return {name: name in annotation.__required_keys__ for name in annotation.__annotations__}
    if mapping_only or not isinstance(annotation, type):
        return None
    if issubclass(annotation, BaseModel):
        return {name: info.is_required() for name, info in annotation.model_fields.items()}
    if dataclasses.is_dataclass(annotation):
        missing = dataclasses.MISSING
        return {f.name: f.default is missing and f.default_factory is missing for f in dataclasses.fields(annotation)}
    return None


# -- children, Sends, misspelt names -----------------------------------------------------------------


def _of_child(node: NodeDef, schema: StateSchema) -> tuple[Reading, Writing]:
    """A child takes the fields that both states declare, as far as they are set, and gives back those it changed."""
    child = node.child
    if not isinstance(child, CompiledGraph):
        return Reading(origin="unknown"), Writing(origin="unknown")
    shared = frozenset(schema.fields) & frozenset(child.schema.fields)
    inside = accesses(child)
    mapper = node.config.get("input_mapper")
    reads = _taken(child, inside, shared) if mapper is None else _read_by(infer(mapper, schema.state, schema.fields))
    mapper = node.config.get("output_mapper")
    if mapper is not None:
        return reads, _written(infer(mapper, child.schema.state, child.schema.fields), schema)
    outputs = child.definition.outputs
    given = shared if outputs is None else shared & frozenset(outputs)
    origins = {access.writes.origin for access in inside}
    origin: Origin = "unknown" if "unknown" in origins else "inferred" if "inferred" in origins else "declared"
    changed = frozenset[str]().union(*(access.writes.fields for access in inside))
    return reads, Writing(given & changed, given & changed & surely_written(child, inside), origin)


def _taken(child: CompiledGraph, inside: Iterable[Access], shared: Names) -> Reading:
    """What a child takes by name: its inputs, or, where it doesn't name them, any field. It must have the inputs
    without a default, or else what its nodes need and don't write themselves."""
    wanted = child.definition.inputs
    if wanted is not None:
        taken = shared & frozenset(wanted)
        return Reading(taken, frozenset(name for name in taken if child.schema.fields[name].required))
    must = needed(child, inside) & shared
    sure = all(must.isdisjoint(a.reads.needs | a.routing.needs) or a.reads.origin == "declared" for a in inside)
    return Reading(shared, must, "declared" if sure else "inferred")


def _overlays(node: NodeDef, seen: Inferred) -> Mapping[str | None, Names | None]:
    if node.kind == "map":
        return {node.config["worker"]: frozenset({node.config["item_key"]})}
    if "send" not in (node.metadata.get("jumps") or jump_kinds(node.fn)):
        return {}
    found: dict[str | None, Names | None] = {}
    for target, overlay in seen.overlays:
        before = found.get(target, overlay.surely)
        found[target] = None if overlay.open or before is None else before & overlay.surely
    if not seen.overlays or None in found:
        found[None] = None
    return found


def _undeclared(
    node: NodeDef, seen: Inferred, looks: Iterable[Inferred], schema: StateSchema
) -> tuple[tuple[str, str], ...]:
    """Names in the source that are no fields, each with what is done to it."""
    read = set() if node.reads is not None else set(seen.undeclared)
    written = set() if node.writes is not None else seen.writes.known - schema.fields.keys()
    sent = {name for _, overlay in seen.overlays for name in overlay.known - schema.fields.keys()}
    routed = {name for look in looks for name in look.undeclared}
    found = (("reads", read), ("writes", written), ("sends", sent), ("routes by", routed))
    return tuple((what, name) for what, names in found for name in sorted(names))
