"""The tool calls of a stored round: what was asked, what came of it, read from the ledger of effects and the results.

Nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graphagent.agents.looking import Activity, Looking, activity_at
from graphagent.agents.requests import field, open_round
from graphagent.agents.stored_frames import Frames, frames_of
from graphagent.agents.tool_outcome import ToolOutcome
from graphagent.checkpoint.record import EffectRow, Header, Question
from graphagent.engine.executor import Executor
from graphagent.engine.frame import Frame
from graphagent.errors import UsageError
from graphagent.messages import Message, ToolCall

CallStatus = Literal["done", "failed", "stopped", "refused", "unknown", "asked", "due", "elsewhere"]
"""What is known of a call. `done`, `failed`, `stopped`: it was run, and has a result, one that says what went wrong, or
ended the run. `refused`: it has a result, and was not run: an unknown tool, wrong arguments, a person or a policy that
said no. `unknown`: it was begun, and its end was never recorded. `asked`: a person is asked for approval. `due`: it has
not begun. `elsewhere`: the round is over without it: somebody else has to answer it."""


@dataclass(frozen=True, slots=True)
class StoredCall:
    """One call. `arguments`: as the model made them; `used`: as they were used instead, if a person changed them.
    `result`: what the model reads of it, None as long as there is none. `activation`, `checkpoint`: of the node that
    runs it, and the row in which it was due; empty while no such node is."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    status: CallStatus
    result: str | None = None
    used: Mapping[str, Any] | None = None
    activation: str = ""
    checkpoint: str = ""


async def calls_of(
    executor: Executor,
    lineage: str,
    checkpoint: str | int | None,
    node: str,
    *,
    namespace: str = "",
    branch: str = "",
) -> tuple[StoredCall, ...]:
    """The calls of the round that a tools node was to run, in call order; see `activity_at` for how it is named.

    Raises CheckpointNotFound, and UsageError for a node that is no tools node.
    """
    frames = await frames_of(executor, lineage, namespace)
    activity = await activity_at(frames, checkpoint, node, branch=branch)
    if activity.node.kind != "tools":
        raise UsageError(f"node '{activity.node.id}' runs no tools: it is of kind '{activity.node.kind}'")
    return await _round(frames, activity)


async def calls_after(frames: Frames, ended: Header, answer: Message) -> tuple[StoredCall, ...]:
    """What became of the calls of an answer that a step wrote, as far as the rows after it tell."""
    left = {call.id: StoredCall(call.id, call.name, call.arguments, "due") for call in answer.tool_calls}
    if not left:
        return ()
    for header in (ended, *frames.after(ended)):
        frame = await frames.load(header.seq)
        if frame is None:
            continue
        for position in _tools_due(frame, left):
            activity = Activity(frame, position, header, tuple(frames.ends_after(header, _name(frame, position))))
            left |= {call.id: call for call in await _round(frames, activity) if call.id in left}
        if not frame.marking.frontier or all(_is_over(call) for call in left.values()):
            break
    return tuple(left.values())


def _tools_due(frame: Frame, wanted: Iterable[str]) -> list[int]:
    """Places of tools nodes that are about to run calls of the answer."""
    found = open_round(field(frame.graph.schema.view(frame.values), "messages", ()))
    if found is None or not {call.id for call in found.message.tool_calls} & set(wanted):
        return []
    frontier = frame.marking.frontier
    return [place for place, one in enumerate(frontier) if frame.graph.defs[one.node].kind == "tools"]


def _name(frame: Frame, position: int) -> str:
    return frame.graph.names[frame.marking.frontier[position].node]


def _is_over(call: StoredCall) -> bool:
    return call.status not in ("due", "asked", "unknown")


async def _round(frames: Frames, activity: Activity) -> tuple[StoredCall, ...]:
    found = open_round(field(activity.state, "messages", ()))
    if found is None:
        return ()
    looking = await activity.context()
    ended = await _ended(frames, activity)
    told = {} if ended is None else _results(ended)
    calls = [call for call in found.message.tool_calls if call.id not in found.answered]
    asked = [question for question in activity.frame.questions if question.position == activity.position]
    return tuple(
        [
            await _call(call, _effect_of(call, number, looking), looking, told, asked, activity, ended is not None)
            for number, call in enumerate(calls)
        ]
    )


async def _ended(frames: Frames, activity: Activity) -> Frame | None:
    """The frame after the round, if it has ended."""
    return await frames.load(activity.after[0].seq) if activity.after else None


def _results(frame: Frame) -> dict[str, str]:
    messages = field(frame.graph.schema.view(frame.values), "messages", ())
    return {message.tool_call_id: message.text for message in messages if message.tool_call_id is not None}


def _effect_of(call: ToolCall, number: int, looking: Looking) -> EffectRow | None:
    """The ledger's entry of a call (see `PartContext`); a handover may be there under another tool's name."""
    head, tail = f"{number}:", f":{call.id}/call"
    rows = looking.effects.items()
    return next((row for (name, _), row in rows if name.startswith(head) and name.endswith(tail)), None)


async def _call(
    call: ToolCall,
    effect: EffectRow | None,
    looking: Looking,
    told: Mapping[str, str],
    asked: Sequence[Question],
    activity: Activity,
    ended: bool,
) -> StoredCall:
    result = told.get(call.id)
    status: CallStatus = "due"
    if effect is not None and (claim := await looking.recorded(effect.name, _kept_call)) is not None:
        outcome = ToolOutcome.of(claim.result)
        status = "stopped" if outcome.stop is not None else "failed" if outcome.error else "done"
        result = outcome.stop or (outcome.message(call).text if result is None else result)
    elif effect is not None:
        status = "unknown"
    elif result is not None:
        status = "refused"
    elif ended:
        status = "elsewhere"
    question = _question_of(call, asked)
    if question is not None and not question.answered and status == "due":
        status = "asked"
    used = None if question is None or not isinstance(question.answer, Mapping) else question.answer.get("arguments")
    row = activity.header.id
    return StoredCall(call.id, call.name, call.arguments, status, result, used, activity.id, row)


def _question_of(call: ToolCall, asked: Sequence[Question]) -> Question | None:
    """The question whether a call may be run."""
    for question in asked:
        if isinstance(question.prompt, Mapping) and question.prompt.get("call_id") == call.id:
            return question
    return None


def _kept_call() -> dict[str, Any]:
    """What the ledger keeps of a call: its annotation says as what."""
    raise NotImplementedError
