"""What a model was asked by a stored activation: the request made again, by the very code that made it.

What is stored is the state before a step, the answers in the ledger of effects, and what the step wrote. The rest is
made again, and each part says which of these it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from graphagent.agents.invocation import Invocation
from graphagent.agents.llm_node import LLMNode, asked_again
from graphagent.agents.looking import Activity, Looking, activity_at
from graphagent.agents.model import ModelRequest
from graphagent.agents.model_call import Turn, kept_turn
from graphagent.agents.placeholders import placeholders
from graphagent.agents.requests import asked_of, field
from graphagent.agents.secrets_in import secrets_of
from graphagent.agents.stored_calls import StoredCall, calls_after
from graphagent.agents.stored_frames import Frames, frames_of
from graphagent.agents.stored_request import GUARD, PARTS, Part, StoredRequest
from graphagent.agents.tool import Tool
from graphagent.checkpoint.record import Header
from graphagent.engine.executor import Executor
from graphagent.engine.questions import InterruptSignal
from graphagent.errors import UsageError
from graphagent.messages import Message


async def request_of(
    executor: Executor,
    lineage: str,
    checkpoint: str | int | None,
    node: str,
    *,
    namespace: str = "",
    branch: str = "",
    invocation: Invocation | None = None,
) -> StoredRequest:
    """The request of a model node, made again from what is stored. Nothing is run, asked or written.

    `checkpoint`, `node`, `branch`: see `activity_at`. `invocation`: that of the run, where it is at hand; what it says
    is taken for what the run had. Tools are listed anew, and an instruction that is a function is called, with effects
    and answers as they are recorded. Raises CheckpointNotFound, and UsageError for a node that asks no model.
    """
    frames = await frames_of(executor, lineage, namespace)
    return await request_in(frames, checkpoint, node, branch=branch, invocation=invocation)


async def request_in(
    frames: Frames,
    checkpoint: str | int | None,
    node: str,
    *,
    branch: str = "",
    invocation: Invocation | None = None,
    partial: bool = False,
) -> StoredRequest:
    """See `request_of`; of rows that are at hand. `partial`: the invocation was made up afterwards, without the options
    that the run had."""
    activity = await activity_at(frames, checkpoint, node, branch=branch)
    function = activity.node.fn
    if not isinstance(function, LLMNode):
        raise UsageError(f"node '{activity.node.id}' asks no model: it is of kind '{activity.node.kind}'")
    ctx = await activity.context(invocation)
    again = _Again(function, activity, ctx, invocation, remote=frames.of_a_runner and (partial or invocation is None))
    turns = await _turns(again.ctx)
    wrote = await _wrote(frames, again)
    again.take_up(wrote, turns)
    first = await again.request()
    calls: tuple[StoredCall, ...] = ()
    if wrote is not None and wrote.answer is not None:
        calls = await calls_after(frames, wrote.header, wrote.answer)
    again.judge_answer(wrote, turns)
    return StoredRequest(
        lineage=frames.lineage,
        namespace=frames.namespace,
        checkpoint=activity.header.id,
        ended="" if wrote is None else wrote.header.id,
        activation=activity.id,
        node=activity.node.id,
        model=function.model_for(invocation).name,
        requests=_sent(function, first, turns),
        asked=again.asked,
        instruction=again.instruction,
        parts=again.parts,
        turns=turns,
        answer=None if wrote is None else wrote.answer,
        answer_id=again.answer_id,
        secrets=secrets_of(activity.frame.graph.schema, activity.values),
        calls=calls,
    )


class _Wrote(NamedTuple):
    """The row of an activation's end. `before`: the messages before its answer, None where others may have written
    beside it; `answer`: the message, None if it isn't there."""

    header: Header
    before: tuple[Message, ...] | None = None
    answer: Message | None = None


class _Again:
    """Makes a request again, and notes how each part of it is known. `remote`: a Runner was around the run, and what it
    gave to the run isn't at hand."""

    def __init__(
        self, node: LLMNode, activity: Activity, ctx: Looking, invocation: Invocation | None, *, remote: bool
    ) -> None:
        self.node = node
        self.activity = activity
        self.ctx = ctx
        self.invocation = invocation
        self.state = activity.state
        self.asked = asked_of(node.id, self.state, node.user_input_key)
        self.instruction = ""
        self.answer_id = ctx.idempotency_key("message")
        self.parts: dict[str, Part] = {name: Part("rebuilt") for name in PARTS}
        self.remote = remote
        if activity.header.fingerprint != activity.frame.graph.fingerprint:
            self._doubt("graph", "the row was written by another version of the graph")

    def take_up(self, wrote: _Wrote | None, turns: Sequence[Turn]) -> None:
        """The history as the step left it counts, where a guard has put another one in its place."""
        if self.remote:
            self._doubt("messages", GUARD)
        if wrote is None or wrote.before is None or self.asked.once:
            return
        said = sum(len(turn.queued) for turn in turns)
        before = wrote.before[: len(wrote.before) - said]
        if [_said(message) for message in before] != [_said(message) for message in self.asked.messages]:
            self.asked = self.asked._replace(messages=before)
            self.parts["messages"] = replace(self.parts["messages"], known="recorded")

    async def request(self) -> ModelRequest | None:
        """The first request, with the parts that can be made."""
        tools, last = await self._tools(), self.node.is_last(self.state)
        offered = () if last else tools
        self.instruction = await self._instruction(offered)
        self._judge_hooks()
        try:
            request = self.node.request_for(self.asked, self.instruction, offered, last=last)
            return self._shortened(request, offered, last=last)
        except Exception as error:
            self.parts["messages"] = Part("unknown", (f"{type(error).__name__}: {error}",))
            return None

    async def _tools(self) -> tuple[Tool, ...]:
        try:
            tools = await self.node.tools_for(self.invocation)
        except Exception as error:
            self.parts["tools"] = Part("unknown", (f"they can't be listed now: {type(error).__name__}: {error}",))
            return ()
        if any(hasattr(item, "tools") for item in self.node.tools):
            self._doubt("tools", "sets of tools were asked again, and may have offered others")
        if self.remote:
            self._doubt("tools", "a tool filter of the run isn't stored")
        return tools

    async def _instruction(self, tools: Sequence[Tool]) -> str:
        try:
            text = await self.node.told(tools, self.state, self.ctx)
        except (Exception, InterruptSignal) as error:
            why = f"it can't be made again: {type(error).__name__}: {error}"
            self.parts["instruction"] = Part("unknown", (why,))
            return ""
        instruction = self.node.instruction_for(self.invocation)
        if callable(instruction):
            self._doubt("instruction", "a function made it, and was called again")
        elif (self.remote or self.invocation is not None) and (names := _outside(instruction, self.state)):
            self._doubt(
                "instruction", f"{', '.join(names)}: values of the run and its session, as far as they are known now"
            )
        if self.ctx.timed:
            self._doubt("instruction", "it asks for the time, which is that of the checkpoint here")
        if self.remote:
            self._doubt("instruction", "an instruction of the run, in place of the node's, isn't stored")
        return text

    def _judge_hooks(self) -> None:
        """Callbacks that may change a request are not called: they may do anything."""
        hooks = () if self.invocation is None else self.invocation.hooks.model
        if any(callback.before is not None for callback in (*hooks, *self.node.callbacks)):
            doubt = "callbacks before the call may have changed the request, or answered in its place"
            self.parts["hooks"] = Part("unknown", (doubt,))
        if self.remote:
            self._doubt("hooks", "plugins of the run may have changed the request")
            self._doubt("model", "a model of the run, in place of the node's, isn't stored")

    def _doubt(self, part: str, doubt: str) -> None:
        self.parts[part] = self.parts[part].doubted(doubt)

    def _shortened(self, request: ModelRequest, tools: Sequence[Tool], *, last: bool) -> ModelRequest:
        """The request as the run's guard cuts it."""
        invocation = self.invocation
        guard = None if invocation is None else invocation.services.guard
        if invocation is None or guard is None or self.asked.once:
            return request
        session = () if invocation.session is None else invocation.session.events
        own = [event for event in session if event.invocation_id == invocation.id]
        events = {message.tool_call_id: event.id for event in own for message in event.messages if message.tool_call_id}
        short = guard.shortened(self.asked.messages, events, {tool.spec.name for tool in tools})
        if short.messages is self.asked.messages:
            return request
        self.asked = self.asked._replace(messages=short.messages)
        return self.node.request_for(self.asked, self.instruction, tools, last=last)

    def judge_answer(self, wrote: _Wrote | None, turns: Sequence[Turn]) -> None:
        """Where the answer comes from. If the ledger has none, the model need not have been asked at all."""
        found = wrote is not None and wrote.answer is not None
        if turns or found:
            self.parts["answer"] = Part("recorded")
        else:
            why = "it has not answered yet" if wrote is None else "neither the ledger nor the history has it"
            self.parts["answer"] = Part("unknown", (why,))
        missing = "the ledger has no answer of this activation"
        self.parts["usage"] = Part("recorded") if turns else Part("unknown", (missing,))
        if wrote is not None and not turns:
            self._doubt("hooks", f"{missing}: its result is of a cache or a callback, or its effects were pruned")


def _said(message: Message) -> tuple[str, object, str | None]:
    return message.role, message.content, message.tool_call_id


async def _turns(ctx: Looking) -> tuple[Turn, ...]:
    """The answers that the ledger has."""
    found = []
    while (claim := await ctx.recorded("model", kept_turn)) is not None:
        found.append(claim.result)
    return tuple(found)


async def _wrote(frames: Frames, again: _Again) -> _Wrote | None:
    """What the step of the activation wrote; None if it has not ended."""
    activity = again.activity
    for header in activity.after:
        frame = await frames.load(header.seq)
        messages = () if frame is None else tuple(field(frame.graph.schema.view(frame.values), "messages", ()))
        place = next((at for at, message in enumerate(messages) if message.id == again.answer_id), None)
        if place is not None:
            alone = len(header.nodes) == 1 and header.step == activity.header.step + 1
            return _Wrote(header, messages[:place] if alone else None, messages[place])
    return _Wrote(activity.after[0]) if activity.after else None


def _sent(node: LLMNode, first: ModelRequest | None, turns: Sequence[Turn]) -> tuple[ModelRequest, ...]:
    """The requests, one for each answer, with what the person had said meanwhile."""
    if first is None:
        return ()
    if not turns:
        return (first,)
    sent: list[ModelRequest] = []
    request = first
    for number, turn in enumerate(turns, start=1):
        sent.append(replace(request, messages=(*request.messages, *turn.queued)) if turn.queued else request)
        if number < len(turns):
            try:
                node.value_of(turn.reply.message)
                problem = ""
            except ValueError as error:
                problem = str(error)
            request = asked_again(request, turn, problem)
    return tuple(sent)


def _outside(instruction: str, state: Any) -> list[str]:
    """The placeholders of an instruction for which the graph's state has no value."""
    found = (one for one in placeholders(instruction) if one.scope or field(state, one.key, None) is None)
    return [f"'{{{one.state_key}}}'" for one in found]
