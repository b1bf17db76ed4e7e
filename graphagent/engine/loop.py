"""The superstep engine: plan -> execute -> merge -> checkpoint -> event, until nothing is left to run."""

from __future__ import annotations

from graphagent.engine.endings import end, unstorable
from graphagent.engine.execute import execute
from graphagent.engine.frame import RECENT, Frame, Step
from graphagent.engine.lone import is_lone, run_lone
from graphagent.engine.outcome import Outcome
from graphagent.engine.persist import save_step
from graphagent.engine.plan import Stop, breaks_after, natural_end, plan
from graphagent.engine.step import Result, settle
from graphagent.engine.stream import places_of
from graphagent.errors import EncodeError, NodeTimeout


async def run_supersteps(frame: Frame) -> Stop:
    """Run a frame until it ends, for whatever reason; what it did is in the frame and in the store."""
    emitter, control = frame.tree.emitter, frame.tree.control
    while True:
        step = (await run_lone(frame) if control is None and is_lone(frame) else None) or plan(frame)
        if control is not None and isinstance(step, Step):
            step = await control.before(frame, step) or step
        if isinstance(step, Stop):
            return await end(frame, step)
        places = () if emitter is None else places_of(frame)
        if emitter is not None and frame.ran is None and (waits := emitter.step_begins(frame, step, places)):
            await waits

        try:
            await execute(frame, step.todo)
        except NodeTimeout as error:
            return await end(frame, Stop("failed", str(error), error=error))

        result = await settle(frame, step)
        if isinstance(result, Stop):
            return await end(frame, result)

        over = not result.marking.frontier and natural_end(frame.graph, result.marking).kind == "completed"
        breaks = breaks_after(frame, result.merged.state) if frame.graph.after else None
        if breaks is not None and breaks.kind == "failed":
            return await end(frame, breaks)
        try:
            last = over and breaks is None
            await save_step(frame, result.merged, result.marking, step.nodes, note=result.note, end=last)
        except EncodeError as error:
            return await end(frame, unstorable(frame, error))

        outcomes = advance(frame, result, step.nodes)
        if control is not None:
            control.after(frame, step.nodes, result.merged, outcomes)
        if emitter is not None and (waits := emitter.step_ended(frame, result.merged, outcomes, places)):
            await waits
        if breaks is not None:
            return await end(frame, breaks)


def advance(frame: Frame, result: Result, nodes: tuple[str, ...]) -> dict[int, Outcome]:
    """Make the result of a step the frame's own; returns the outcomes it was made of."""
    frame.values = result.merged.state
    frame.marking = result.marking
    frame.base = frame.seq
    frame.origins = None
    frame.step += 1
    frame.steps += 1
    frame.tree.meter.usage.steps += 1
    frame.recent.append(nodes)
    if len(frame.recent) > 4 * RECENT:
        del frame.recent[:-RECENT]
    frame.resuming, frame.ran = False, None
    if frame.passed:
        frame.passed = frozenset()
    outcomes, frame.held = frame.held, {}
    if frame.questions or frame.kept:
        frame.questions = ()
        frame.kept = set()
    return outcomes
