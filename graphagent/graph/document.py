"""A graph as data: the canonical JSON document (out and in), which is also what the fingerprint is made of."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import datetime
import decimal
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, get_origin

from pydantic import SecretBytes, SecretStr, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from graphagent.graph.definition import GraphDef, NodeDef, RouteDef
from graphagent.graph.fields import TRANSIENT
from graphagent.graph.jumps import jump_kinds, visible_jumps
from graphagent.graph.names import END
from graphagent.graph.reducers import BUILTIN, add, last, same
from graphagent.graph.schema import StateSchema
from graphagent.graph.syntax import expression
from graphagent.messages import Message

if TYPE_CHECKING:
    from graphagent.graph.builder import StateGraph

_TYPES: dict[str, Any] = {
    **{t.__name__: t for t in (str, int, float, bool, bytes, list, dict, set, tuple, frozenset)},
    **{t.__name__: t for t in (datetime.datetime, datetime.date, decimal.Decimal, uuid.UUID, Message, SecretStr)},
    "SecretBytes": SecretBytes,
    "Any": Any,
    "None": None,
}
_RULES = {**BUILTIN, "replace": last, "sum": add}
_WITH_EMPTY = (list, dict, set, tuple, frozenset, str, int, float, bool, bytes)
_STAND_INS: tuple[Any, ...] = (
    None, "", datetime.datetime.min, datetime.date.min, decimal.Decimal(0), uuid.UUID(int=0), {"role": "user"}
)  # fmt: skip


def topology(graph: GraphDef, schema: StateSchema) -> dict[str, Any]:
    """What decides where control and data can go; nothing of order, source text, descriptions or policies."""
    return {
        "entry": sorted({name for name, _ in graph.entries}),
        "nodes": {node.id: _node(node) for node in sorted(graph.nodes, key=lambda node: node.id)},
        "edges": sorted({(edge.source, edge.target) for edge in graph.edges}),
        "routes": sorted((_route(route) for route in _all_routes(graph)), key=lambda r: json.dumps(r, default=str)),
        "joins": sorted(
            ({"id": j.id, "to": j.target, "from": sorted(j.sources), "mode": j.mode} for j in graph.joins),
            key=lambda j: str(j["id"]),
        ),
        "errors": sorted((e.source, e.target, sorted(k.__name__ for k in e.errors)) for e in graph.error_edges),
        "state": schema.describe(),
    }


def write_document(graph: GraphDef, schema: StateSchema, fingerprint: str) -> dict[str, Any]:
    """The canonical document: the topology, and what else the validator and readers want to know."""
    doc = topology(graph, schema)
    ids = {node.id for node in graph.nodes}
    fixed = {(edge.source, edge.target) for edge in graph.edges}
    fixed |= {(source, join.target) for join in graph.joins for source in join.sources}
    for node in graph.nodes:
        doc["nodes"][node.id] |= {
            "reads": None if node.reads is None else list(node.reads),
            "writes": None if node.writes is None else list(node.writes),
            "effects": list(node.effects),
            "idempotent": node.idempotent,
            "formerly": list(node.formerly),
            "allow": list(node.allow),
            "description": node.description,
        }
        if node.destinations is None and (kinds := jump_kinds(node.fn)):
            seen = [name for name in visible_jumps(node.fn, ids)[1] if (node.id, name) not in fixed]
            doc["nodes"][node.id] |= {"jumps": list(kinds), "seen": seen}
    for name, default in _defaults(schema):
        doc["state"][name]["default"] = default
    doc |= {
        "schema": 1,
        "name": graph.name,
        "version": graph.version,
        "fingerprint": fingerprint,
        "order": [node.id for node in graph.nodes],
        "inputs": None if graph.inputs is None else list(graph.inputs),
        "outputs": None if graph.outputs is None else list(graph.outputs),
        "limits": dict(graph.limits),
        "interrupt_before": _listed(graph, graph.before, "interrupt_before"),
        "interrupt_after": _listed(graph, graph.after, "interrupt_after"),
        "must_pass": [{"node": node, "through": list(guards)} for node, guards in graph.must_pass],
        "assume": [dict(choice) for choice in graph.assumptions],
    }
    result: dict[str, Any] = json.loads(json.dumps(doc, default=str))
    return result


def _defaults(schema: StateSchema) -> Iterator[tuple[str, Any]]:
    """The defaults that JSON can hold; not secret ones, nor those that are made anew each time (ids, times)."""
    for field in schema:
        if field.required or field.secret or field.transient:
            continue
        value = field.initial()
        if field.default_factory is None or same(value, field.initial()):
            with suppress(PydanticSerializationError):
                yield field.name, to_jsonable_python(value)


def _listed(graph: GraphDef, named: list[Any], attribute: str) -> list[str]:
    return sorted({name for name, _ in named} | {node.id for node in graph.nodes if getattr(node, attribute)})


def _node(node: NodeDef) -> dict[str, Any]:
    shape: dict[str, Any] = {"kind": node.kind}
    if node.kind == "interrupt":
        shape["interrupts"] = [{"key": node.config["key"]}]
        shape["answer"] = node.config["writes"]
    if node.kind == "map":
        shape |= {"over": node.config["over"], "item_key": node.config["item_key"]}
    if node.kind == "subgraph" or node.child is not None:
        shape["graph"] = node.child.fingerprint
    if node.destinations is not None:
        shape["destinations"] = {str(label): target for label, target in sorted(node.destinations.items())}
    return shape


def _all_routes(graph: GraphDef) -> list[RouteDef | NodeDef]:
    return [*graph.routes, *(node for node in graph.nodes if node.kind == "map")]


def _route(route: RouteDef | NodeDef) -> dict[str, Any]:
    if isinstance(route, NodeDef):
        config = route.config
        return {"from": route.id, "select": "map", "targets": [config["worker"]], "collector": config["collect"]}
    shape: dict[str, Any] = {"from": route.source, "select": "many" if route.many else "one"}
    if route.labels is not None:
        shape["targets"] = sorted(set(route.labels.values()))
        shape["labels"] = {str(getattr(k, "value", k)): v for k, v in route.labels.items()}
    return shape | {"default": route.default, "with_edges": route.with_edges, "same_as": route.same_as}


def parse_document(doc: Mapping[str, Any] | str) -> dict[str, Any]:
    """The document as a mapping. Raises ValueError naming what is missing."""
    content = json.loads(doc) if isinstance(doc, str) else dict(doc)
    if not isinstance(content, dict):
        raise ValueError(f"a graph document is an object, not a {type(content).__name__}")
    missing = [key for key in ("entry", "nodes") if key not in content]
    if missing:
        raise ValueError(f"the graph document has no {' and no '.join(map(repr, missing))}")
    return content


def state_class(content: Mapping[str, Any]) -> type:
    """A dataclass made from the document's `state`, whose fields may have any name, as the keys of a TypedDict may; a
    type that isn't built in becomes `Any`."""
    annotations: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for name, spec in content.get("state", {}).items():
        rule = _RULES.get(spec.get("reducer", "last"), last)
        declared = _type(spec.get("type", "Any"))
        if not spec.get("required", "default" not in spec):
            defaults[name] = dataclasses.field(default_factory=_maker(declared, spec))
        metadata = (rule,) if spec.get("persistent", True) else (rule, TRANSIENT)
        annotations[name] = Annotated[(declared, *metadata)]
    made = type("State", (), {"__annotations__": annotations, **defaults})
    return dataclasses.dataclass(init=False, repr=False, eq=False)(made)  # their text would need names of Python


def _maker(declared: Any, spec: Mapping[str, Any]) -> Callable[[], Any]:
    """What makes the default of a field: that of the document, or else an empty value or a stand-in."""
    if "default" in spec:
        return partial(deepcopy, _default(declared, spec["default"]))
    empty = get_origin(declared) or declared
    return empty if empty in _WITH_EMPTY else partial(_stand_in, declared)


def _stand_in(declared: Any) -> Any:
    """Some value of a type, for a default that the document doesn't hold."""
    for value in _STAND_INS:
        with suppress(ValidationError):
            return TypeAdapter(declared).validate_python(value)
    return None


def _default(declared: Any, plain: Any) -> Any:
    try:
        return TypeAdapter(declared).validate_python(plain)
    except ValidationError:  # compile() says so
        return plain


def _type(text: str) -> Any:
    try:
        return _built(expression(text))
    except (SyntaxError, TypeError):
        return Any


def _built(node: ast.expr) -> Any:
    """The type that an expression of names, subscripts and unions means. Nothing of the text is executed."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _TYPES.get(name, Any)  # a class of the user; a list of it is still a list
        case ast.Constant(value=None | builtins.Ellipsis):
            return node.value
        case ast.Subscript(value=generic, slice=ast.Tuple(elts=arguments)):
            return _built(generic)[tuple(_built(argument) for argument in arguments)]
        case ast.Subscript(value=generic, slice=argument):
            return _built(generic)[_built(argument)]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _built(left) | _built(right)
    raise TypeError(ast.dump(node))


def fill_builder(builder: StateGraph, content: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> None:
    """Declare on `builder` all that the document says."""
    nodes = content["nodes"]
    maps = {route["from"]: route for route in content.get("routes", ()) if route["select"] == "map"}
    for name in content.get("order", nodes):
        _fill_node(builder, name, nodes[name], maps, functions)
    made = {(route["targets"][0], route.get("collector", END)) for route in maps.values()}  # by add_map_node
    for source, target in content.get("edges", ()):
        if (source, target) not in made:
            builder.add_edge(source, target)
    for join in content.get("joins", ()):
        builder.add_join_edge(join["from"], join["to"], mode=join.get("mode", "all"), id=join.get("id"))
    for route in content.get("routes", ()):
        if route["select"] == "map":
            continue
        add = builder.add_conditional_edges if route["select"] == "one" else builder.add_multi_conditional_edges
        options = {"default": route.get("default")}
        if route["select"] == "one":
            options |= {"same_as": route.get("same_as"), "with_edges": route.get("with_edges", False)}
        router = functions.get(f"{route['from']}:router")
        add(route["from"], router, route.get("labels") or route.get("targets"), **options)  # type: ignore[arg-type]
    for source, target, names in content.get("errors", ()):
        builder.add_error_edge(source, target, errors=[_error_class(name, source, functions) for name in names])
    builder.set_entry_point(*content["entry"])
    builder.interrupt_before_nodes(*content.get("interrupt_before", ()))
    builder.interrupt_after_nodes(*content.get("interrupt_after", ()))
    for policy in content.get("must_pass", ()):
        builder.must_pass(policy["node"], through=policy["through"])
    for choice in content.get("assume", ()):
        builder.assume(**choice)
    builder.limits(**content.get("limits", {}))
    if content.get("version"):
        builder.with_version(content["version"])


def _error_class(name: str, source: str, functions: Mapping[str, Callable[..., Any]]) -> type[Exception]:
    found: Any = functions.get(name, getattr(builtins, name, None))
    if isinstance(found, type) and issubclass(found, Exception):
        return found
    raise ValueError(
        f"the error edge of '{source}' names '{name}', which isn't built in; pass the class as functions['{name}']"
    )


def _fill_node(
    builder: StateGraph,
    name: str,
    spec: Mapping[str, Any],
    maps: Mapping[str, Mapping[str, Any]],
    functions: Mapping[str, Callable[..., Any]],
) -> None:
    kind = spec.get("kind", "function")
    description = spec.get("description", "")
    if kind == "interrupt":
        key = (spec.get("interrupts") or [{"key": name}])[0]["key"]
        prompt = functions.get(name, f"answer '{key}'")
        builder.add_interrupt_node(name, prompt=prompt, key=key, writes=spec.get("answer"), description=description)
    elif kind == "map":
        route = maps[name]
        options = {"over": spec["over"], "item_key": spec["item_key"], "collect": route.get("collector", END)}
        builder.add_map_node(name, route["targets"][0], description=description, **options)
    elif kind == "subgraph":
        builder.add_subgraph_node(name, functions.get(name), description=description)  # type: ignore[arg-type]
    else:
        names = ("reads", "writes", "effects", "idempotent", "formerly", "allow", "destinations")
        options = {key: spec[key] for key in names if spec.get(key) is not None}
        if kind == "agent":
            builder.add_agent_node(name, functions.get(name), description=description, **options)
        elif kind in ("llm", "tools", "code", "skill"):
            builder._special(name, kind, {}, fn=functions.get(name), description=description, **options)
        else:
            builder.add_node(name, functions.get(name), description=description, **options)
