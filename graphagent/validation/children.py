"""Whether a child graph and its parent fit: what passes between them by name or by mappers."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from typing_extensions import is_typeddict

from graphagent.errors import alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import NodeDef
from graphagent.graph.fields import Field, type_name
from graphagent.graph.schema import StateSchema
from graphagent.graph.signature import takes_arguments
from graphagent.unset import UNSET
from graphagent.validation.fits import fit
from graphagent.validation.report import Diagnostic
from graphagent.validation.subject import Subject


def misfits(subject: Subject) -> Iterator[Diagnostic]:
    """GA017 for every subgraph node."""
    for node in subject.graph.defs:
        if node.kind == "subgraph":
            yield from _input(subject, node, node.child)
            yield from _output(subject, node, node.child)


def _input(subject: Subject, node: NodeDef, child: CompiledGraph) -> Iterator[Diagnostic]:
    mapper = node.config.get("input_mapper")
    if mapper is not None:
        yield from _mapper(subject, node, mapper, "input_mapper", child.schema, f"the state of child '{child.name}'")
        return
    wanted = child.definition.inputs
    for name, inner in child.schema.fields.items():
        outer = subject.graph.schema.fields.get(name)
        if outer is None:
            if wanted is not None and name in wanted and inner.required:
                text = (
                    f"child '{child.name}' of node '{node.id}' takes '{name}' as input, which the parent's state "
                    f"doesn't declare: {alternatives(name, subject.graph.schema.names)}; declare it or give the node "
                    f"an input_mapper"
                )
                yield subject.finding("GA017", text, (node.id, name), severity="warning")
        elif wanted is None or name in wanted:
            yield from _types(subject, node, outer, inner, f"into child '{child.name}'", "an input_mapper")


def _output(subject: Subject, node: NodeDef, child: CompiledGraph) -> Iterator[Diagnostic]:
    mapper, parent = node.config.get("output_mapper"), subject.graph.schema
    if mapper is not None:
        yield from _mapper(subject, node, mapper, "output_mapper", parent, f"the state of graph '{subject.graph.name}'")
        return
    outputs = child.definition.outputs
    if outputs and not any(name in parent.fields for name in outputs):
        text = (
            f"node '{node.id}' gives nothing back: the parent's state declares none of the outputs "
            f"{', '.join(map(repr, outputs))} of child '{child.name}'; declare one or give the node an output_mapper"
        )
        yield subject.finding("GA017", text, (node.id,), severity="warning")
    for name in child.schema.names if outputs is None else outputs:
        if name in parent.fields and (written := _written(child, name)) is not False:
            yield from _merged(subject, node, parent.fields[name], child.schema.fields[name], child, written)


def _merged(
    subject: Subject, node: NodeDef, outer: Field, inner: Field, child: CompiledGraph, written: bool | None
) -> Iterator[Diagnostic]:
    """What the child changed comes back through the merge rule of the parent's field."""
    at = (node.id, outer.name)
    if not _says_change(outer):
        text = (
            f"child '{child.name}' of node '{node.id}' may change '{outer.name}', and merge rule "
            f"'{outer.reducer.name}' of the parent can't say what to add; give the node an output_mapper"
        )
        yield subject.finding("GA017", text, at, severity=None if written else "warning")
    elif fit(outer.declared, inner.declared) != "no" and fit(inner.declared, outer.declared) == "no":
        way = f"back from child '{child.name}'"
        yield from _types(subject, node, inner, outer, way, "an output_mapper", certain=bool(written))


def _written(child: CompiledGraph, name: str) -> bool | None:
    """Whether a node of the child declares that it writes the field; None: some node doesn't say what it writes."""
    declared = [node.writes for node in child.defs]
    if any(name in (writes or ()) for writes in declared):
        return True
    return None if any(writes is None for writes in declared) else False


def _says_change(field: Field) -> bool:
    """Whether the merge rule can tell an update from two values, tried on empty ones where the type has them."""
    origin = typing.get_origin(field.declared) or field.declared
    sample: Any = origin() if origin in (str, int, float, list, tuple, dict, set, frozenset) else UNSET
    try:
        field.reducer.between(sample, sample)
    except TypeError:
        return False
    return True


def _types(
    subject: Subject, node: NodeDef, source: Field, target: Field, way: str, mapper: str, *, certain: bool = True
) -> Iterator[Diagnostic]:
    found = fit(source.declared, target.declared)
    if found not in ("no", "sometimes"):
        return
    which = "the values don't fit" if found == "no" else "not all values fit"
    text = (
        f"field '{source.name}' of node '{node.id}' goes {way} as '{type_name(source.declared)}', which is declared "
        f"'{type_name(target.declared)}' there: {which}; give the node {mapper} or make the types alike"
    )
    severe = found == "no" and certain
    yield subject.finding("GA017", text, (node.id, source.name), severity=None if severe else "warning")


def _mapper(
    subject: Subject, node: NodeDef, mapper: Callable[..., Any], role: str, schema: StateSchema, whose: str
) -> Iterator[Diagnostic]:
    if not callable(mapper) or not takes_arguments(mapper, 1):
        text = f"{role} of node '{node.id}' is {mapper!r:.80}; it needs a function of the state"
        yield subject.finding("GA017", text, (node.id,))
        return
    for name in _promised(mapper):
        if name not in schema.fields:
            known = alternatives(name, schema.names)
            text = f"{role} of node '{node.id}' returns '{name}', which {whose} doesn't declare: {known}"
            yield subject.finding("GA017", text, (node.id, name))


def _promised(mapper: Callable[..., Any]) -> Iterable[str]:
    """The fields that a mapper's return annotation names, where it is a TypedDict."""
    try:
        returned = typing.get_type_hints(mapper).get("return")
    except Exception:  # an annotation that can't be looked up says nothing
        return ()
    return tuple(typing.get_type_hints(returned)) if is_typeddict(returned) else ()
