"""Edits of a stored state: plain assignment, or acting as a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from graphagent.checkpoint.record import Loaded
from graphagent.engine.frame import Frame, Setup, Tree
from graphagent.engine.merge import delta_between
from graphagent.engine.outcome import Outcome, checked_overlay, outcome_of
from graphagent.engine.persist import save_state
from graphagent.engine.plan import Stop
from graphagent.engine.restore import fresh_origins, load_frame
from graphagent.engine.step import settle_one
from graphagent.errors import UsageError, alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Activation


def patched(graph: CompiledGraph, values: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The patch as values of the declared types, the class's own validators applied. Raises StateError."""
    schema = graph.schema
    checked = {name: checked_overlay(schema, "the edit", name, value) for name, value in patch.items()}
    if schema.assign is None:
        return checked
    try:
        after = schema.assign({**schema.start_values(), **values}, checked)
    except ValidationError as error:
        name = next(iter(checked))
        raise schema.invalid(schema.fields[name], error, "the edit", update=False) from error
    return {name: value for name, value in after.items() if name in checked or value is not values.get(name)}


async def edited(
    setup: Setup, tree: Tree, namespace: str, loaded: Loaded, patch: Mapping[str, Any], as_node: str
) -> Frame:
    """The edit row in which `patch` is the result of node `as_node`."""
    graph = setup.graph
    if as_node not in graph.index:
        raise UsageError(f"as_node='{as_node}' is not a node: {alternatives(as_node, graph.names)}")
    frame = await load_frame(setup, tree, namespace, loaded)
    node = graph.index[as_node]
    place = next((i for i, a in enumerate(frame.marking.frontier) if a.node == node), None)
    if place is None:
        place = len(frame.marking.frontier)
        frame.marking = frame.marking._replace(frontier=(*frame.marking.frontier, Activation(node)))
        if frame.origins is not None:
            frame.origins = fresh_origins(frame, frame.base)
    before = frame.values
    outcome: Outcome = outcome_of(graph, node, {}, patch)
    result = await settle_one(frame, place, outcome)
    if isinstance(result, Stop):
        raise result.error or UsageError(result.reason)
    stays = {id(a): i for i, a in enumerate(result.marking.frontier)}
    moved = {i: stays.get(id(a)) for i, a in enumerate(frame.marking.frontier)}
    questions = [(moved.get(q.position), q) for q in frame.questions if q.position != place]
    frame.questions = tuple(replace(q, position=at, frame=None) for at, q in questions if at is not None)
    frame.values, frame.marking = result.merged.state, result.marking
    frame.held, frame.kept, frame.fresh = {}, set(), True
    headers = await tree.store.history(tree.lineage, namespace, limit=1) if tree.store is not None else []
    frame.seq = headers[0].seq if headers else -1
    frame.head = loaded.row.seq
    if frame.origins is not None:
        frame.origins = fresh_origins(frame, frame.seq + 1)
    changed = delta_between(graph.schema, before, frame.values)
    note = {"edited": sorted(outcome.update), "as_node": as_node}
    await save_state(frame, "edit", changed, note=note, questions=frame.questions, pointer=loaded.row.seq)
    return frame
