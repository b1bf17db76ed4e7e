"""A node that runs another graph: the child's frame, its input, and what of its work reaches the parent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio.lowlevel

from graphagent.engine.context import NodeContext
from graphagent.engine.frame import Frame, Setup, child_namespace
from graphagent.engine.outcome import Outcome
from graphagent.engine.persist import save_migrated, save_state
from graphagent.engine.plan import Stop
from graphagent.engine.questions import pending
from graphagent.engine.restore import load_frame, load_row, new_frame, start_turn
from graphagent.engine.state_codec import contained
from graphagent.errors import InvalidUpdate, RunStalled
from graphagent.graph.definition import NodeDef
from graphagent.graph.marking import Activation
from graphagent.graph.reducers import same
from graphagent.graph.schema import StateSchema
from graphagent.graph.view import values_of
from graphagent.unset import UNSET

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def run_child(
    frame: Frame,
    position: int,
    activation: Activation,
    state: Any,
    ctx: NodeContext | None,
    *,
    node: NodeDef,
    setup: Setup,
    drive: Callable[[Frame], Awaitable[Stop]],
) -> Any:
    """Body of a subgraph node: run the child, or go on with it, until it ends; its result in the parent's terms."""
    namespace = child_namespace(frame, position)
    given = _child_input(setup.graph.schema, frame, state, node)
    child = await _frame(frame, position, ctx, setup, namespace, given)
    initial = await _initial(child, given)
    stop = Stop("completed") if child.ended else await drive(child)
    if stop.kind == "completed":
        return _update(frame, child, initial, node)
    if stop.kind == "asked":
        return _asked(child, position)
    if stop.kind == "cancelled":
        await anyio.lowlevel.checkpoint()
    if stop.kind == "failed" and stop.error is not None:
        raise stop.error
    if stop.kind == "stalled":
        raise RunStalled(f"the child graph '{setup.graph.name}' of node '{node.id}' stalled: {stop.reason}")
    outcome = Outcome()
    outcome.limit = stop.reason
    return outcome


async def _frame(
    frame: Frame, position: int, ctx: NodeContext | None, setup: Setup, namespace: str, given: Mapping[str, Any]
) -> Frame:
    """The child's frame: where it stopped, if it has run before under this activation, else a new one."""
    again = frame.resuming or (ctx is not None and ctx.activation.attempt > 1)
    if again and frame.store is not None:
        loaded = await load_row(frame.store, setup, frame.lineage, namespace)
        if loaded is not None:
            child = await load_frame(setup, frame.tree, namespace, loaded)
            await save_migrated(child, loaded.row.source)
            answered = {q.id: q for q in frame.questions if q.position == position and q.answered}
            child.questions = tuple(
                replace(q, answered=True, answer=answered[q.id].answer) if q.id in answered else q
                for q in child.questions
            )
            return child
    child = new_frame(setup, frame.tree, namespace, frame.store)
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


def _asked(child: Frame, position: int) -> Outcome:
    """The child's open questions as the parent's own; `frame` says where in the child they were asked."""
    outcome = Outcome()
    head = child.head if child.head is not None else -1
    waiting = pending(child.questions) or [q for q in child.questions if not q.answered]
    outcome.asked = tuple(replace(q, position=position, frame=(child.namespace, head)) for q in waiting)
    return outcome
