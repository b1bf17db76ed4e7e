"""One call of a model from inside a node: streamed, counted, and kept in the ledger, so that it is paid for once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio

from graphagent.agents.assembler import Assembler
from graphagent.agents.closing import closing
from graphagent.agents.invocation import Invocation
from graphagent.agents.model import Model, ModelRequest, Reply
from graphagent.agents.model_options import ModelCallbacks
from graphagent.agents.requests import call_ids
from graphagent.agents.scope import event_by, say, scope_note
from graphagent.engine.context import NodeContext
from graphagent.engine.effects import inside_step
from graphagent.engine.hooks import settled
from graphagent.errors import ModelError
from graphagent.ledger import ErrorInfo
from graphagent.messages import Message

GRACE = 5.0
"""Seconds that storing a piece of an answer may take when its call is cancelled."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the ledger keeps of a call. `queued`: what the person had said meanwhile, put before the request's end."""

    reply: Reply
    queued: tuple[Message, ...] = ()


async def call_model(
    model: Model,
    request: ModelRequest,
    ctx: NodeContext,
    invocation: Invocation | None,
    callbacks: Sequence[ModelCallbacks] = (),
) -> Turn:
    """The model's answer; after a crash or an answered question the one that was paid for already.

    `callbacks`: the node's; those of the run come before them. Raises ModelError, and what callbacks raise. When the
    call is cancelled, what had come of the answer is stored as an event of its own.
    """
    if invocation is not None and invocation.hooks.model:
        callbacks = (*invocation.hooks.model, *callbacks)
    for callback in callbacks:
        if callback.before is not None:
            changed = await settled(callback.before(request, ctx))
            if isinstance(changed, Reply):
                return await _after(Turn(changed), ctx, callbacks)
            if changed is not None:
                request = changed

    claim = await ctx.claim("model", kept_turn, False, True)
    if not claim.open:
        return await _after(claim.result, ctx, callbacks)
    try:
        with inside_step("model"):
            if invocation is None or invocation.queued is None:
                turn = Turn(await _streamed(model, request, ctx, invocation))
            else:
                turn = await _asked(model, request, ctx, invocation, await invocation.queued())
    except ModelError as error:
        turn = Turn(await _recovered(error, request, ctx, callbacks))
    else:
        await ctx.commit(claim, turn, final=True)
    return await _after(turn, ctx, callbacks) if callbacks else turn


def kept_turn() -> Turn:
    """What the ledger keeps of a call: its annotation says as what."""
    raise NotImplementedError


async def _asked(
    model: Model, request: ModelRequest, ctx: NodeContext, invocation: Invocation, queued: tuple[Message, ...]
) -> Turn:
    """The answer to the request with what the person has said meanwhile behind it."""
    wanted = replace(request, messages=(*request.messages, *queued)) if queued else request
    return Turn(await _streamed(model, wanted, ctx, invocation), queued)


async def _after(turn: Turn, ctx: NodeContext, callbacks: Sequence[ModelCallbacks]) -> Turn:
    for callback in callbacks:
        if callback.after is not None:
            changed = await settled(callback.after(turn.reply, ctx))
            if changed is not None:
                return replace(turn, reply=changed)
    return turn


async def _recovered(
    error: ModelError, request: ModelRequest, ctx: NodeContext, callbacks: Sequence[ModelCallbacks]
) -> Reply:
    for callback in callbacks:
        if callback.on_error is not None:
            reply: Any = await settled(callback.on_error(error, request, ctx))
            if isinstance(reply, Reply):
                return reply
    raise error


async def _streamed(model: Model, request: ModelRequest, ctx: NodeContext, invocation: Invocation | None) -> Reply:
    """The whole answer; its text goes out as it comes."""
    frame, position = ctx.place
    if frame.tree.control is not None:
        frame.tree.control.model_asked(frame, position, request)
    assembler = Assembler(lambda: call_ids(request.messages))
    try:
        async with closing(model.stream(request)) as deltas:
            async for delta in deltas:
                assembler.add(delta)
                if delta.text or delta.reasoning:
                    await say(ctx, text=delta.text, reasoning=delta.reasoning)
    except BaseException as error:
        _count(assembler.reply(), ctx)
        if isinstance(error, anyio.get_cancelled_exc_class()):
            await _keep_partial(assembler.reply(), ctx, invocation)
        raise
    reply = assembler.reply()
    _count(reply, ctx)
    if not (reply.message.content or reply.message.tool_calls):
        raise ModelError(
            f"model '{model.name}' gave an empty answer (finish reason '{reply.finish_reason}')", retryable=True
        )
    return reply


def _count(reply: Reply, ctx: NodeContext) -> None:
    usage = reply.usage
    ctx.usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost=usage.cost, calls=1)


async def _keep_partial(reply: Reply, ctx: NodeContext, invocation: Invocation | None) -> None:
    """Store what had come of an answer that was cut off. Calls of tools are left out: they were never whole."""
    if invocation is None or invocation.persist is None or not reply.message.content:
        return
    said = reply.message.model_copy(update={"tool_calls": (), "reasoning": None})
    event = event_by(
        invocation,
        ctx.activation.branch,
        id=ctx.idempotency_key(f"partial {ctx.run_id}"),
        messages=(said,),
        usage=reply.usage,
        finish_reason="cancelled",
        view=scope_note(ctx).view,
        error=ErrorInfo(type="cancelled", message="the run was cancelled while the model was answering"),
    )
    with anyio.move_on_after(GRACE, shield=True):
        await invocation.persist(event)
