"""How a frame stops: what is written so that it can go on later, and the landing node."""

from __future__ import annotations

import anyio

from graphagent.engine.execute import execute
from graphagent.engine.frame import Frame, Origin, is_root
from graphagent.engine.merge import merge_writes
from graphagent.engine.outcome import failed
from graphagent.engine.persist import named_encode_error, save_end, save_rest, save_step, save_stop
from graphagent.engine.plan import Stop
from graphagent.errors import EncodeError, GraphAgentError


async def end(frame: Frame, stop: Stop) -> Stop:
    """Write what a stop leaves behind. Writing is not cut short by a cancellation."""
    if stop.kind == "completed" and (frame.ended or not frame.tree.durable):
        pass
    elif frame.tree.instant and stop.kind != "limit":  # a landing node may wait
        stop = await _end(frame, stop)
    else:
        with anyio.CancelScope(shield=True):
            stop = await _end(frame, stop)
    if frame.tree.control is not None:
        await frame.tree.control.ended(frame, stop)
    return stop


async def _end(frame: Frame, stop: Stop) -> Stop:
    frame.ran = None
    if stop.kind == "asked":
        return await _interrupt(frame, stop)
    if stop.kind == "limit":
        return await _limit(frame, stop)
    frame.held = {position: outcome for position, outcome in frame.held.items() if outcome.done}
    if stop.kind == "failed":
        if frame.tree.durable:
            await save_stop(frame, "error", note={"error": stop.reason, "type": type(stop.error).__name__})
    elif stop.kind == "completed":
        await save_end(frame)
    else:
        await save_rest(frame)
    return stop


async def _interrupt(frame: Frame, stop: Stop) -> Stop:
    asked = {question.id: question for question in stop.questions}
    children = {question.position for question in stop.questions if question.frame is not None}
    frame.questions = tuple(
        asked.pop(question.id, question)
        for question in frame.questions
        if not (question.answered and question.frame is not None and question.position in children)  # the child has it
    ) + tuple(asked.values())
    frame.held = {position: outcome for position, outcome in frame.held.items() if outcome.done}
    await save_stop(frame, "interrupt", release=not frame.namespace)
    return stop


async def _limit(frame: Frame, stop: Stop) -> Stop:
    """Let the landing node have the last step, if there is one; the frontier stays for a resume."""
    name = frame.setup.limits.landing
    if frame.held or name is None or not is_root(frame.namespace) or frame.landed:
        frame.held = {position: outcome for position, outcome in frame.held.items() if outcome.done}
        if frame.tree.durable:
            await save_stop(frame, "error", note={"limit": stop.reason})
        return stop
    frame.landed = True
    frontier, origins = frame.marking, frame.origins
    frame.marking = frame.graph.singles[frame.graph.index[name]]
    frame.origins = [Origin(frame.base, -1, frame.step + 1, name)]
    try:
        await execute(frame, (0,))
        outcome = frame.held.pop(0)
    finally:
        frame.marking, frame.origins = frontier, origins
    if not outcome.done:
        reason = outcome.failure or "it asked a question"
        return _because(stop, f"{stop.reason}; the landing node '{name}' did not end well: {reason}")
    try:
        merged = merge_writes(frame.graph.schema, frame.values, ((name, outcome.update),))
        await save_step(frame, merged, frontier, (name,), note={"landing": True})
    except GraphAgentError as error:
        return _because(stop, f"{stop.reason}; the result of landing node '{name}' was refused: {error}")
    frame.values = merged.state
    frame.base = frame.seq
    frame.step += 1
    frame.steps += 1
    await save_rest(frame)
    return _because(stop._replace(landed=name), f"{stop.reason}; landed at '{name}'")


def _because(stop: Stop, reason: str) -> Stop:
    """The stop with another reason."""
    return stop._replace(reason=reason)


def unstorable(frame: Frame, error: EncodeError) -> Stop:
    """A result that can't be stored is a failure of the node that wrote it; the others keep theirs."""
    writers = [p for p, outcome in frame.held.items() if error.field is None or error.field in outcome.fields]
    named: EncodeError = error
    for position in writers:
        node = frame.graph.names[frame.marking.frontier[position].node]
        named = named_encode_error(error, node)
        frame.held[position] = failed(named)
    return Stop("failed", str(named), error=named)
