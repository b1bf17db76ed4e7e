"""A node that runs another graph: the child's frame, its input, and what of its work reaches the parent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import anyio.lowlevel

from graphagent.checkpoint.record import Question
from graphagent.engine.context import NodeContext
from graphagent.engine.frame import Frame, Setup, child_namespace
from graphagent.engine.outcome import Outcome
from graphagent.engine.persist import save_migrated, save_state
from graphagent.engine.plan import Stop
from graphagent.engine.questions import pending
from graphagent.engine.restore import load_frame, load_row, new_frame, start_turn
from graphagent.engine.state_codec import contained
from graphagent.errors import InvalidUpdate, RunStalled
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import NodeDef
from graphagent.graph.marking import Activation
from graphagent.graph.reducers import same
from graphagent.graph.schema import StateSchema
from graphagent.graph.view import values_of
from graphagent.unset import UNSET


class ChildEnd(NamedTuple):
    """How a child graph ended: `stop.kind` is `completed`, `failed`, `stalled` or `limit`. `state`: its state then."""

    stop: Stop
    state: Any


def space_within(ctx: NodeContext, scope: str = "") -> str:
    """The namespace for the next child graph that a node runs. `scope` tells several of one node apart; the n-th call
    with a scope is its n-th child, so the calls must come in the same order every time the node runs."""
    return child_namespace(*ctx.place, scope and ctx.nested(scope))


async def run_within(
    ctx: NodeContext,
    graph: CompiledGraph,
    namespace: str,
    given: Callable[[], Awaitable[Mapping[str, Any]]],
    *,
    context: Any = UNSET,
) -> ChildEnd:
    """Run a graph as part of the node that calls this: in its lineage, under its budget, cancelled with it.

    `namespace`: from `space_within`. If the node has been here before (an answered question, another attempt, a
    crash), the child goes on where it stopped, and one that has ended is not run again. `given()` makes the input of a
    new run. `context`: what the child's nodes see as `ctx.context` (default: that of the calling node). Questions of
    the child are the node's own, and unwind it.
    """
    frame, position = ctx.place
    setup = frame.setup.setup_of(graph)
    child = await _known(frame, position, ctx, setup, namespace)
    if child is None:
        child = await _begun(frame, setup, namespace, await given())
    child.context = frame.context if context is UNSET else context
    stop = Stop("completed") if child.ended else await setup.drive(child)
    if stop.kind == "asked":
        ctx.take(_questions(child, position))
    if stop.kind == "cancelled":
        await anyio.lowlevel.checkpoint()
    return ChildEnd(stop, graph.schema.view(child.values))


async def run_child(
    frame: Frame,
    position: int,
    activation: Activation,
    state: Any,
    ctx: NodeContext | None,
    *,
    node: NodeDef,
    setup: Setup,
) -> Any:
    """Body of a subgraph node: run the child, or go on with it, until it ends; its result in the parent's terms."""
    namespace = child_namespace(frame, position)
    given = _child_input(setup.graph.schema, frame, state, node)
    child = await _known(frame, position, ctx, setup, namespace) or await _begun(frame, setup, namespace, given)
    child.context = frame.context
    initial = await _initial(child, given)
    stop = Stop("completed") if child.ended else await setup.drive(child)
    if stop.kind == "completed":
        return _update(frame, child, initial, node)
    if stop.kind == "asked":
        outcome = Outcome()
        outcome.asked = _questions(child, position)
        return outcome
    if stop.kind == "cancelled":
        await anyio.lowlevel.checkpoint()
    return not_completed(stop, f"the child graph '{setup.graph.name}' of node '{node.id}'")


def not_completed(stop: Stop, who: str) -> Outcome:
    """What a child that did not complete means for the node that ran it: raises its failure, or is cut off too."""
    if stop.kind == "failed" and stop.error is not None:
        raise stop.error
    if stop.kind == "stalled":
        raise RunStalled(f"{who} stalled: {stop.reason}")
    outcome = Outcome()
    outcome.limit = stop.reason
    return outcome


async def _known(frame: Frame, position: int, ctx: NodeContext | None, setup: Setup, namespace: str) -> Frame | None:
    """The child's frame where it stopped, if it has run before under this activation."""
    again = frame.resuming or (ctx is not None and ctx.activation.attempt > 1)
    if not again or frame.store is None:
        return None
    loaded = await load_row(frame.store, setup, frame.lineage, namespace)
    if loaded is None:
        return None
    child = await load_frame(setup, frame.tree, namespace, loaded)
    await save_migrated(child, loaded.row.source)
    answered = {q.id: q for q in frame.questions if q.position == position and q.answered}
    child.questions = tuple(
        replace(q, answered=True, answer=answered[q.id].answer) if q.id in answered else q for q in child.questions
    )
    return child


async def _begun(frame: Frame, setup: Setup, namespace: str, given: Mapping[str, Any]) -> Frame:
    """A new frame for the child, its input written."""
    tree = frame.tree
    child = new_frame(setup, tree, namespace, frame.store)
    child.unmet = frame.unmet and namespace not in tree.begun
    tree.begun |= {namespace}
    merged = start_turn(child, given, f"the input of child graph '{setup.graph.name}'")
    await save_state(child, "input", merged)
    return child


def _child_input(schema: StateSchema, frame: Frame, state: Any, node: NodeDef) -> Mapping[str, Any]:
    mapper = node.config.get("input_mapper")
    if mapper is not None:
        mapped: Mapping[str, Any] = mapper(state)
        return mapped
    wanted = node.child.definition.inputs
    return {
        name: value
        for name, value in values_of(state).items()
        if name in schema.fields and (wanted is None or name in wanted)
    }


async def _initial(child: Frame, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values a child began with. One that goes on has them in its first row: its parent's state may have moved on
    since, by siblings that ended or by an edit."""
    schema = child.graph.schema
    values = {**schema.start_values(), **given}
    if child.resuming and child.store is not None:
        first = await load_row(child.store, child.setup, child.lineage, child.namespace, 0)
        if first is not None and first.row.source == "input":
            values |= contained(schema, first.values)
    return values


def _update(frame: Frame, child: Frame, initial: Mapping[str, Any], node: NodeDef) -> Mapping[str, Any]:
    """What the child changed, as an update of the parent."""
    mapper = node.config.get("output_mapper")
    if mapper is not None:
        mapped: Mapping[str, Any] = mapper(child.graph.schema.view(child.values))
        return mapped or {}
    outputs = child.graph.definition.outputs
    update: dict[str, Any] = {}
    for name, value in child.values.items():
        field = frame.graph.schema.fields.get(name)
        if field is None or (outputs is not None and name not in outputs):
            continue
        start = initial.get(name, UNSET)
        if same(value, start):
            continue
        try:
            update[name] = field.reducer.between(start, value)
        except TypeError as error:
            raise InvalidUpdate(
                f"the child graph of node '{node.id}' changed '{name}', and {error}; give the node an output_mapper",
                field=name,
                node=node.id,
            ) from error
    return update


def _questions(child: Frame, position: int) -> tuple[Question, ...]:
    """The child's open questions as those of its parent; `frame` says where in the child they were asked."""
    head = child.head if child.head is not None else -1
    waiting = pending(child.questions) or [q for q in child.questions if not q.answered]
    return tuple(replace(q, position=position, frame=(child.namespace, head)) for q in waiting)
