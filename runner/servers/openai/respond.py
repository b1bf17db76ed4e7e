"""A run as an answer of the API: whole, or in chunks."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from starlette.responses import JSONResponse, Response

from graphagent.ledger import Event
from runner.servers.app import ServerContext
from runner.servers.client_tools import offering
from runner.servers.openai.answer import Answer, call_data, usage_data
from runner.servers.openai.errors import ApiError, api_error
from runner.servers.openai.prepare import Prepared
from runner.servers.streaming import EventStream

DONE = "data: [DONE]\n\n"


async def completed(context: ServerContext, work: Prepared) -> Response:
    """The answer when the run has ended. Raises what keeps a run from beginning, and ApiError for one that failed."""
    answer = Answer(work.whole, work.schema)
    try:
        async with aclosing(_events(context, work)) as events:
            async for event in events:
                for _ in answer.take(event):
                    pass
    except Exception as error:  # an agent may let it out after its completion, which says more
        raise answer.error or error from error
    if answer.error is not None:
        raise answer.error
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.calls:
        message |= {"content": answer.text or None, "tool_calls": [call_data(call) for call in answer.calls]}
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason, "logprobs": None}
    data = {**_head(work, "chat.completion"), "choices": [choice], "usage": usage_data(answer.usage)}
    return JSONResponse({**data, **_questions(answer)}, headers=work.headers)


def streamed(context: ServerContext, work: Prepared) -> Response:
    """The answer in chunks, while the run goes on. What keeps the run from beginning is answered as an error."""
    return EventStream(lambda: _chunks(context, work), lambda error: api_error(error).response(), work.headers)


async def _chunks(context: ServerContext, work: Prepared) -> AsyncGenerator[str, None]:
    """The chunks of a stream. Its last is `[DONE]`, however the run ends."""
    answer = Answer(work.whole, work.schema)
    head = _head(work, "chat.completion.chunk")
    if work.include_usage:
        head["usage"] = None
    begun = False
    try:
        async with aclosing(_events(context, work)) as events:
            async for event in events:
                if not begun:
                    begun = True
                    yield _chunk(head, {"role": "assistant", "content": ""})
                for delta in answer.take(event):
                    yield _chunk(head, delta)
    except Exception as error:
        if not begun:
            raise
        answer.error = answer.error or api_error(error)
    if answer.changed and answer.error is None:
        answer.error = ApiError(
            "the answer was given a second time after a part of it had been sent; ask without 'stream'",
            status=502,
            code="answer_changed",
        )
    if answer.error is not None:
        yield _data(answer.error.body)
    else:
        yield _chunk({**head, **_questions(answer)}, {}, answer.finish_reason)
        if work.include_usage:
            yield _data({**head, "choices": [], "usage": usage_data(answer.usage)})
    yield DONE


async def _events(context: ServerContext, work: Prepared) -> AsyncGenerator[Event, None]:
    """The events of the run, which takes a place of the server's. Raises TooMany, and what the Runner raises."""
    with context.slots.hold(work.request_id, work.user_id), offering(work.tools):
        run = context.runner.run(work.user_id, work.session_id, work.said, work.options)
        async with aclosing(run) as events:
            async for event in events:
                yield event


def _head(work: Prepared, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{work.request_id}", "object": kind, "created": int(time.time()), "model": work.model}


def _questions(answer: Answer) -> dict[str, Any]:
    """What the agent asks before it goes on, as an addition to the API."""
    names = ("key", "prompt", "schema", "node", "kind")
    asked = [{name: one[name] for name in names if name in one} for one in answer.interrupts]
    return {"interrupts": asked} if asked else {}


def _chunk(head: Mapping[str, Any], delta: Mapping[str, Any], finish_reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
    return _data({**head, "choices": [choice]})


def _data(data: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"
