"""The step of a single activation, made cheap: no task, no list, no outcome object, one coroutine.

It goes through the same phases as `loop.py` and decides nothing of its own: whatever is unusual (a context, a retry, a
failure, a jump, a join, a breakpoint, the end) is handed back to the loop, which does it in general.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import anyio.lowlevel

from graphagent.checkpoint.record import ListDelta
from graphagent.engine.frame import RECENT, Frame, Ran, Setup, Step
from graphagent.engine.merge import Merged
from graphagent.engine.persist import save_step
from graphagent.engine.plan import natural_end
from graphagent.engine.stray import stray
from graphagent.engine.stream import LoneEnd
from graphagent.errors import EncodeError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.fields import Field
from graphagent.graph.marking import Completion, Marking
from graphagent.graph.names import END, END_INDEX
from graphagent.graph.reducers import append
from graphagent.graph.transitions import fire
from graphagent.unset import UNSET

BREATHE = 100
"""Steps after which other tasks get a turn, so that nodes that never wait can't keep a cancellation out."""
NO_LISTS: dict[str, ListDelta] = {}


class LoneNode(NamedTuple):
    """A node that a lone activation can run cheaply: a plain async function whose ways out are known beforehand.

    `after`: the marking it leads to; or `router` and `by_label`: who says so, and the markings.
    """

    fn: Callable[[Any], Any]
    step: Step
    after: Marking | None
    router: Callable[[Any], Any] | None
    by_label: Mapping[Any, Marking]


def lone_nodes(graph: CompiledGraph, setup: Setup) -> tuple[LoneNode | None, ...]:
    """Per node how a lone activation runs, None where it needs the loop."""
    watched = graph.before or graph.after or graph.schema.assign is not None
    return tuple(None if watched else _lone_node(graph, setup, i) for i in range(len(graph.names)))


def _lone_node(graph: CompiledGraph, setup: Setup, node: int) -> LoneNode | None:
    call, routers, step = setup.calls[node], graph.routers[node], setup.lone_steps[node]
    if not call.plain or call.fn is None or graph.arrivals[node] or len(routers) > 1:
        return None
    if not routers:
        after = _after(graph, node, ())
        return None if after is None else LoneNode(call.fn, step, after, None, {})
    route = routers[0]
    if route.is_async or route.many or route.any_node:
        return None
    ends = {END: END_INDEX, **route.labels}
    by_label = {label: _after(graph, node, (target,)) for label, target in ends.items()}
    known = {label: after for label, after in by_label.items() if after is not None}
    return LoneNode(call.fn, step, None, route.router, known)


def _after(graph: CompiledGraph, node: int, chosen: tuple[int, ...]) -> Marking | None:
    """Where the lone activation of a node leads that chose these targets; None if the run would not end well there."""
    after = fire(graph, graph.singles[node], (Completion(0, chosen),))
    if any(after.joins) or (not after.frontier and natural_end(graph, after).kind != "completed"):
        return None
    return after


def is_lone(frame: Frame) -> bool:
    """True if the frame stands at a single activation of a LoneNode with nothing else open."""
    frontier = frame.marking.frontier
    if len(frontier) != 1:
        return False
    node = frontier[0].node
    return (
        frame.setup.lone[node] is not None
        and frame.marking is frame.graph.singles[node]
        and frame.tree.meter.budget is None
        and not (frame.held or frame.questions or frame.origins)
    )


async def run_lone(frame: Frame) -> Step | None:
    """Run steps of the frame as long as each is a lone activation of a LoneNode; the loop goes on from there.

    A node that has run, and whose result needs the loop, leaves it in `frame.ran`; its step is returned.
    """
    setup, tree, graph = frame.setup, frame.tree, frame.graph
    lone, singles, view, fields = setup.lone, graph.singles, graph.schema.view, graph.schema.fields
    usage, recent, bound = tree.meter.usage, frame.recent, frame.step_bound
    writes = frame.store is not None and tree.durable
    marking, emitter = frame.marking, tree.emitter
    update: dict[str, Any] | None = None
    ended: LoneEnd | None = None  # the last step, told with the start of the next: nothing is awaited in between
    while True:
        # plan
        frontier = marking.frontier
        here = lone[frontier[0].node] if len(frontier) == 1 and marking is singles[frontier[0].node] else None
        if here is None or frame.steps >= bound or tree.stop is not None:
            if emitter is not None and (waits := emitter.lone_turn(frame, ended, None)):
                await waits
            return None
        if emitter is not None:
            update = {}
            if waits := emitter.lone_turn(frame, ended, here.step.nodes[0]):
                await waits
        if frame.steps % BREATHE == BREATHE - 1:
            del recent[:-RECENT]
            await anyio.lowlevel.checkpoint()
        # execute
        values = frame.values
        try:
            result = await here.fn(view(values))
        except (Exception, asyncio.CancelledError) as error:
            frame.ran = Ran(None, error if isinstance(error, Exception) else stray(error))
            return here.step
        # merge
        merged = _assigned(values, result, fields, update) if type(result) is dict else None
        if merged is None:
            frame.ran = Ran(result)
            return here.step
        label, after = (UNSET, here.after) if here.router is None else _routed(frame, here, result, view(merged.state))
        if after is None:
            return here.step
        # checkpoint
        if writes:
            try:
                await save_step(frame, merged, after, here.step.nodes, end=not after.frontier)
            except EncodeError:
                frame.ran = Ran(result, None, label)
                return here.step
        else:
            frame.seq += 1
        frame.values = merged.state
        frame.marking = marking = after
        frame.base, frame.resuming = frame.seq, False
        frame.step += 1
        frame.steps += 1
        usage.steps += 1
        if update is not None:
            ended = merged, update, here.step.nodes[0]
        recent.append(here.step.nodes)


def _routed(frame: Frame, here: LoneNode, result: Any, state: Any) -> tuple[Any, Marking | None]:
    """What the router says, and the marking it leads to. None where the loop has to go on: the router failed, or its
    label leads nowhere, or to a stop that wants an explanation."""
    assert here.router is not None
    label: Any = UNSET
    try:
        label = here.router(state)
        after = here.by_label.get(label)
    except Exception as error:
        frame.ran = Ran(result, None, UNSET, error)
        return label, None
    if after is None:
        frame.ran = Ran(result, None, label)
    return label, after


def _assigned(
    values: dict[str, Any], result: dict[str, Any], fields: Mapping[str, Field], update: dict[str, Any] | None
) -> Merged | None:
    """The result merged, if it is plain assignment, or appending, that validates; None leaves it to the loop. `update`
    gets what was validated, if somebody is to be told of it."""
    after = values.copy()
    changed = {}
    lists: dict[str, ListDelta] = NO_LISTS
    for name, value in result.items():
        field = fields.get(name)
        if field is None or field.transient:
            return None
        old = values.get(name, UNSET)
        try:
            if field.plain:
                if value is old:
                    continue
                checked = after[name] = changed[name] = field.validate(value)
            elif field.writers == "many" and field.form == "value" and old is not UNSET:
                checked = field.validate(value)
                after[name] = changed[name] = field.apply(old, checked)
            elif field.reducer is append and type(old) is list and value is not old:
                checked = field.validate(value)
                after[name] = old + checked
                if checked:
                    lists = {**lists, name: ListDelta(checked)}
            else:
                return None
            if update is not None:
                update[name] = checked
        except Exception:  # the loop meets it again and gives it a name
            return None
    return Merged(after, changed, {}, lists)
