"""Whether a document has the shape of a graph: the right kind of value at every place that is looked at.

Members that aren't known are left alone. What the values mean, and whether the graph is any good, is for others to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from graphagent.validation.facts import EngineName

Check = Callable[[Any], bool]
_ENGINES = EngineName.__args__  # type: ignore[attr-defined]


class Kind(NamedTuple):
    """What may stand at a place, in words, and how to tell; `item`: what the items of it are, or its values by name."""

    text: str
    fits: Check
    item: Kind | None = None


def _is_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


def _is_label(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _is_named(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for pair in value.items() for name in pair)


def _is_counted(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_count, value.values()))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_edge(value: Any) -> bool:
    return _is_names(value) and len(value) == 2


def _is_failure(value: Any) -> bool:
    return (
        isinstance(value, list | tuple) and len(value) >= 2 and _is_edge(value[:2]) and all(map(_is_names, value[2:]))
    )


def _is_targets(value: Any) -> bool:
    listed = isinstance(value, list | tuple) and all(isinstance(v, str) or _is_names(v) for v in value)
    return listed or _is_named(value)


def _is_labels(value: Any) -> bool:
    return (isinstance(value, list | tuple) and all(map(_is_label, value))) or _is_named(value)


def _or_null(kind: Kind) -> Kind:
    return Kind(f"{kind.text} or null", lambda value: value is None or kind.fits(value), kind.item)


def _list_of(kind: Kind, text: str) -> Kind:
    return Kind(text, lambda value: isinstance(value, list | tuple), kind)


TEXT = Kind("a text", lambda value: isinstance(value, str))
NAMES = Kind("a list of names", _is_names)
FLAG = Kind("true or false", lambda value: value is None or isinstance(value, bool))
OBJECT = Kind("an object", lambda value: isinstance(value, Mapping))
OBJECTS = _list_of(OBJECT, "a list of objects")
BY_NAME = Kind("an object with one object for each name", OBJECT.fits, _or_null(OBJECT))

GRAPH = {
    "name": TEXT,
    "version": _or_null(TEXT),
    "entry": NAMES,
    "nodes": BY_NAME,
    "order": NAMES,
    "edges": _list_of(Kind("a pair of ids", _is_edge), "a list of pairs of ids"),
    "routes": OBJECTS,
    "joins": OBJECTS,
    "errors": _list_of(Kind("two ids and maybe names of exceptions", _is_failure), "a list of lists"),
    "state": _or_null(BY_NAME),
    "inputs": _or_null(NAMES),
    "outputs": _or_null(NAMES),
    "limits": OBJECT,
    "interrupt_before": NAMES,
    "interrupt_after": NAMES,
    "must_pass": OBJECTS,
    "assume": _list_of(Kind("labels by node", _is_named), "a list of objects"),
    "regions": OBJECTS,
    "engine": Kind(f"one of {', '.join(map(repr, _ENGINES))}", lambda value: value in _ENGINES),
}
NODE = {
    "kind": TEXT,
    "reads": _or_null(NAMES),
    "writes": _or_null(NAMES),
    "effects": Kind("a list of names, or true", lambda v: v is None or isinstance(v, bool) or _is_names(v)),
    "formerly": NAMES,
    "allow": NAMES,
    "interrupts": _or_null(OBJECTS),
    "destinations": _or_null(Kind("ids by label, or a list of ids", lambda v: _is_named(v) or _is_names(v))),
    "jumps": NAMES,
    "seen": NAMES,
    "over": TEXT,
    "item_key": TEXT,
    "answer": _or_null(TEXT),
    "child": _or_null(OBJECT),
    "description": TEXT,
}
ROUTE = {
    "from": TEXT,
    "select": Kind("'one', 'many', 'sets' or 'map'", lambda v: v in ("one", "many", "sets", "map")),
    "targets": _or_null(Kind("a list of ids, or ids by label", _is_targets)),
    "labels": _or_null(Kind("a list of labels, or ids by label", _is_labels)),
    "sets": _list_of(NAMES, "a list of lists of ids"),
    "default": _or_null(TEXT),
    "collector": _or_null(TEXT),
    "same_as": _or_null(TEXT),
    "with_edges": FLAG,
    "empty_ok": FLAG,
    "on_error": Kind(
        "a node, a list of nodes, or true", lambda v: v is None or isinstance(v, str | bool) or _is_names(v)
    ),
}
JOIN = {
    "from": NAMES,
    "to": TEXT,
    "id": _or_null(TEXT),
    "mode": Kind("'all', 'active', 'any' or a number", lambda v: isinstance(v, str) or _is_count(v)),
}
FIELD = {"type": TEXT, "reducer": TEXT, "required": FLAG, "persistent": FLAG}
QUESTION = {"key": TEXT}
POLICY = {"node": TEXT, "through": NAMES}
REGION = {"id": TEXT, "kind": TEXT, "nodes": NAMES, "entry": TEXT, "exit": TEXT}
LIMITS = {
    "steps": _or_null(Kind("a number", _is_count)),
    "laps": Kind("numbers by node", _is_counted),
    "fanout": Kind("numbers by node", _is_counted),
}


def misshapen(doc: Mapping[str, Any]) -> Iterator[str]:
    """Where a document is no graph, each a sentence that names the place, what is there and what belongs there."""
    yield from _members("", doc, GRAPH, ("nodes",))
    for name, spec in _pairs(doc.get("nodes")):
        yield from _members(f"nodes.{name}.", spec, NODE)
        for i, item in enumerate(_objects(spec.get("interrupts"))):
            yield from _members(f"nodes.{name}.interrupts[{i}].", item, QUESTION, ("key",))
    for name, spec in _pairs(doc.get("state")):
        yield from _members(f"state.{name}.", spec, FIELD)
    yield from _members("limits.", doc.get("limits"), LIMITS)
    lists = (("joins", JOIN, ("from", "to")), ("must_pass", POLICY, ("node", "through")))
    regions = ("regions", REGION, ("id", "nodes", "entry", "exit"))
    for member, kinds, needed in (("routes", ROUTE, ("from", "select")), *lists, regions):
        for i, item in enumerate(_objects(doc.get(member))):
            yield from _members(f"{member}[{i}].", item, kinds, needed)
    for i, route in enumerate(_objects(doc.get("routes"))):
        if route.get("select") == "map" and not _is_names(route.get("targets")):
            yield f"'routes[{i}].targets' of a fan-out is {_shown(route.get('targets'))}, not a list of ids"


def _members(place: str, spec: Any, kinds: Mapping[str, Kind], needed: tuple[str, ...] = ()) -> Iterator[str]:
    if not isinstance(spec, Mapping):
        return
    for name in needed:
        if name not in spec:
            yield f"'{place}{name}' is missing: {kinds[name].text}"
    for name, kind in kinds.items():
        if name in spec:
            yield from _misfit(f"{place}{name}", spec[name], kind)


def _misfit(place: str, value: Any, kind: Kind) -> Iterator[str]:
    if not kind.fits(value):
        yield f"'{place}' is {_shown(value)}, not {kind.text}"
    elif kind.item is not None and value is not None:
        named = [(f".{key}", item) for key, item in value.items()] if isinstance(value, Mapping) else None
        for key, item in named or [(f"[{i}]", item) for i, item in enumerate(value)]:
            yield from _misfit(f"{place}{key}", item, kind.item)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _pairs(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(value, Mapping):
        yield from ((name, spec) for name, spec in value.items() if isinstance(spec, Mapping))


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list | tuple):
        yield from (item for item in value if isinstance(item, Mapping))
