"""From the canonical JSON of a graph to a builder that can be validated: every function is a stand-in.

The document may come from `CompiledGraph.to_json()`, from a converter or from a person (`docs/document.md`).
What it leaves out is not there: a node without `reads` reads nothing, `null` stands for "not known".
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from graphagent.errors import UsageError
from graphagent.graph.builder import StateGraph
from graphagent.graph.definition import ErrorEdgeDef, Place, Problem, RouteDef
from graphagent.graph.names import START
from graphagent.graph.policies import RetryPolicy
from graphagent.validation.document_shape import misshapen
from graphagent.validation.facts import EngineName, Facts, Region

_KINDS = {"llm", "tool", "tools", "agent", "router", "join", "function"}


@dataclass(frozen=True, slots=True)
class Source:
    """A graph to validate: its builder, and what else is known about it."""

    builder: StateGraph
    facts: Facts


class _StandIns(Mapping[str, Any]):
    """A function for every node and router that is asked for."""

    def __getitem__(self, key: str) -> Any:
        return _router if key.endswith(":router") else _node

    def get(self, key: str, default: Any = None) -> Any:
        return self[key]

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _node(state: Any) -> None:
    """A stand-in that is never called."""


def _router(state: Any) -> Any:
    """A stand-in that is never called."""


def read_document(path: str | Path) -> Mapping[str, Any]:
    """The document in a file; one that wraps it in `graph` is unwrapped. Raises UsageError."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8-sig"), object_pairs_hook=_object)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' can't be read as the JSON of a graph: {error}") from error
    if isinstance(content, dict) and "nodes" not in content and isinstance(content.get("graph"), dict):
        content = {"name": Path(path).stem, **content["graph"]}
    if not isinstance(content, dict) or "nodes" not in content:
        raise UsageError(f"'{path}' is not the JSON of a graph: it has no 'nodes'")
    return {"name": Path(path).stem, **content}


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; one that names a member twice is refused, since one of the two would be lost."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the member '{twice}' is there twice; only one would count: rename or remove the other")
    return made


def load_document(doc: Mapping[str, Any], *, path: str = "") -> Source:
    """The builder that the document describes, with stand-in functions.

    `path`: the file it came from, which findings then name. Raises UsageError for a malformed document.
    """
    wrong = list(misshapen(doc))
    if wrong:
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        raise UsageError(f"the document of graph '{doc.get('name', '?')}' is malformed: {'; '.join(wrong[:3])}{more}")
    try:
        return _load(doc, Place(path, 1) if path else Place())
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        text = f"{type(error).__name__}: {error}"
        raise UsageError(f"the document of graph '{doc.get('name', '?')}' is malformed: {text}") from error


def _load(doc: Mapping[str, Any], place: Place) -> Source:
    nodes = {name: _node_spec(spec) for name, spec in doc["nodes"].items()}
    routes = [dict(route) for route in doc.get("routes", ())]
    own_maps = {name for name, spec in nodes.items() if spec["kind"] == "map" and "over" in spec}
    plain = {
        **doc,
        "entry": doc.get("entry", []),
        "nodes": nodes,
        "state": doc.get("state") if doc.get("state") is not None else _mentioned(nodes, doc),
        "routes": [route for route in routes if route["select"] == "map" and route["from"] in own_maps],
        "joins": [{**join, "mode": _mode(join)} for join in doc.get("joins", ())],
        "inputs": doc.get("inputs", [] if "fingerprint" not in doc else None),
        "outputs": doc.get("outputs", [] if "fingerprint" not in doc else None),
        "errors": (),
    }
    builder = StateGraph.from_json(plain, _StandIns())
    definition = builder.definition
    fans: dict[str, list[dict[str, Any]]] = {}
    for route in routes:
        if route["select"] == "map" and route["from"] not in own_maps:
            fans.setdefault(route["from"], []).append(route)
    definition.nodes = [_finished(node, nodes[node.id], fans.get(node.id, ()), place) for node in definition.nodes]
    definition.routes = [
        _route(route, place) for route in routes if route["select"] != "map" and route.get("on_error") is not True
    ]
    definition.edges = [edge for edge in definition.edges if edge.source != START]
    definition.error_edges = [ErrorEdgeDef(e[0], e[1], _errors(e[2:]), place) for e in doc.get("errors", ())]
    definition.error_edges += [
        ErrorEdgeDef(route["from"], target, (Exception,), place) for route in routes for target in _on_error(route)
    ]
    for kind in ("edges", "joins"):
        setattr(definition, kind, [_placed(item, place) for item in getattr(definition, kind)])
    definition.entries = [(name, place) for name, _ in definition.entries]
    definition.problems += _twins(routes, place)
    return Source(builder, _facts(doc))


def _node_spec(spec: Mapping[str, Any] | None) -> dict[str, Any]:
    made = dict(spec or {})
    kind = made.get("kind", "function")
    if kind == "interrupt" and not made.get("interrupts") and "answer" not in made:
        made["answer"] = None
    made["declared_kind"] = kind
    if kind == "subgraph" or kind in _KINDS or (kind == "map" and "over" not in made):
        made["kind"] = "function"
    effects = made.get("effects") or ()
    made["effects"] = ["effect"] if effects is True else list(effects)
    inner = made.get("child", made.get("graph"))  # a text is the fingerprint of one that isn't here
    made["child"] = inner if isinstance(inner, Mapping) else None
    left_out: list[str] | None = None if made["child"] else []
    for role in ("reads", "writes"):
        made[role] = made.get(role, left_out)
    return made


def _errors(names: Any) -> tuple[type[Exception], ...]:
    """Exception classes by name: those that are built in, and stand-ins for others; all where none is named."""
    found = [getattr(builtins, name, None) or type(name, (Exception,), {}) for listed in names for name in listed]
    return tuple(found) or (Exception,)


def _on_error(route: Mapping[str, Any]) -> list[str]:
    """Where a failure of the route's node leads: `on_error` names it, or (`true`) the route is taken then only."""
    named = route.get("on_error")
    if named is True:
        targets = route.get("targets") or ()
        return list(dict.fromkeys(targets.values() if isinstance(targets, Mapping) else _flat(targets)))
    return [named] if isinstance(named, str) else list(named or ())


def _mode(join: Mapping[str, Any]) -> Any:
    mode = join.get("mode", "all")
    return "any" if mode == "first" else int(mode[6:]) if str(mode).startswith("first-") else mode


def _mentioned(nodes: Mapping[str, Any], doc: Mapping[str, Any]) -> dict[str, Any]:
    """Without a declared state every field that a node names is there, and none has a default."""
    named = [field for spec in nodes.values() for role in ("reads", "writes") for field in spec[role] or ()]
    named += [*(doc.get("inputs") or ()), *(doc.get("outputs") or ())]
    return {field: {"type": "Any", "required": True} for field in dict.fromkeys(named)}


def _finished(node: Any, spec: Mapping[str, Any], fans: Sequence[Mapping[str, Any]], place: Place) -> Any:
    """The node with what the builder's methods don't take from a document; `fans`: its routes that fan out."""
    metadata = dict(node.metadata)
    destinations = node.destinations
    for route in fans:
        members = dict.fromkeys((*metadata.get("members", ()), *route["targets"]))
        metadata |= {"jumps": ("send",), "members": tuple(members), "collector": route.get("collector")}
        named = [*route["targets"], *([route["collector"]] if route.get("collector") else [])]
        destinations = {**(destinations or {}), **{target: target for target in named}}
    if spec.get("jumps") and "jumps" not in metadata:
        metadata["jumps"] = tuple(spec["jumps"])
    if spec.get("seen"):
        destinations = {**{target: target for target in spec["seen"]}, **(destinations or {})}
    metadata["declared_kind"] = spec["declared_kind"]
    if spec.get("interrupts") and node.kind != "interrupt":
        metadata["interrupts"] = tuple(item["key"] for item in spec["interrupts"])
    if spec["child"]:
        metadata["child"] = load_document({"name": node.id, **spec["child"]}, path=place.file).builder
    fields = {name: getattr(node, name) for name in node.__dataclass_fields__}
    fields |= {
        "metadata": metadata,
        "destinations": destinations,
        "place": place,
        "fn": None if spec.get("unbound") else node.fn,
        "allow": tuple(spec.get("allow", ())),
        "effects": tuple(spec["effects"]),
        "idempotent": bool(spec.get("idempotent", False)),
        "retry": (RetryPolicy(),) if spec.get("retry") else (),
    }
    if node.kind == "function" or spec["declared_kind"] != "map":
        fields |= {role: None if spec[role] is None else tuple(spec[role]) for role in ("reads", "writes")}
    return type(node)(**fields)


def _placed(item: Any, place: Place) -> Any:
    return type(item)(**{**{name: getattr(item, name) for name in item.__dataclass_fields__}, "place": place})


def _route(route: Mapping[str, Any], place: Place) -> RouteDef:
    targets = route.get("targets")
    labels: dict[str, str] | None
    if isinstance(route.get("labels"), Mapping):
        labels = dict(route["labels"])
    elif isinstance(targets, Mapping):
        labels = dict(targets)
    else:
        labels = None if targets is None else {target: target for target in _flat(targets)}
    sets = None
    if route["select"] == "sets":
        sets = tuple(tuple(item) for item in route.get("sets", targets))
        labels = {target: target for item in sets for target in item}
    loose = [label for label in route.get("labels") or () if labels is not None and label not in labels]
    router: Any = _declaring(loose) if loose else _router
    return RouteDef(
        route["from"],
        router,
        labels,
        many=route["select"] in ("many", "sets"),
        default=route.get("default"),
        same_as=route.get("same_as"),
        with_edges=bool(route.get("with_edges", False)),
        sets=sets,
        empty_ok=bool(route.get("empty_ok", False)),
        place=place,
    )


def _flat(targets: Any) -> list[str]:
    return [name for item in targets for name in (item if isinstance(item, list) else [item])]


def _declaring(labels: list[str]) -> Any:
    """A stand-in router whose return annotation declares these labels, so that those without a target are found."""

    def router(state: Any) -> Any:
        """A stand-in that is never called."""

    router.__annotations__ = {"return": Literal[tuple(labels)]}
    return router


def _twins(routes: list[dict[str, Any]], place: Place) -> list[Problem]:
    """GA012 as an error: a second route with the id of the first would replace it."""
    seen: set[tuple[str, str]] = set()
    found = []
    for route in routes:
        key = (route["from"], str(route.get("id")))
        if route.get("id") is not None and key in seen:
            text = (
                f"node '{route['from']}' has two routes with the id '{route['id']}'; the second would replace the first"
            )
            found.append(Problem("GA012", "error", text, (route["from"],), place))
        seen.add(key)
    return found


def _facts(doc: Mapping[str, Any]) -> Facts:
    regions = tuple(
        Region(r["id"], r.get("kind", "parallel"), tuple(r["nodes"]), r["entry"], r["exit"])
        for r in doc.get("regions", ())
    )
    store = doc.get("checkpointer")
    engine: EngineName = doc.get("engine", "superstep")
    unchecked = bool(doc.get("unchecked", False))
    return Facts(engine, store=None if store is None else bool(store), regions=regions, unchecked=unchecked)
