"""A stored request, message by message, with the reason for each: what the debugger shows of a model's call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphagent.agents.asked_again import request_in
from graphagent.agents.invocation import Invocation, Services
from graphagent.agents.secrets_in import masked, masked_data
from graphagent.agents.stored_calls import StoredCall
from graphagent.agents.stored_frames import frames_of
from graphagent.agents.stored_request import GUARD, Part, StoredRequest
from graphagent.engine.executor import Executor
from graphagent.ledger import Event, TokenUsage
from runner.outcome import total
from runner.studio.requests_rows import RequestRow, Rows
from runner.studio.requests_session import Told, made_up, session_of


@dataclass(frozen=True, slots=True)
class Explained:
    """A stored request with all that is known of it. `stored` has its secrets in it, and so has `event`; the others are
    to be shown.

    `rows`: of its messages; `answer`: of what came, None as long as nothing did; `calls`: the tool calls that it asked
    for. `parts`: as in `StoredRequest`, checked against what is recorded. `event`: of the answer, in the session;
    `notes`: what the guard of the run did; `usage`: of all answers together.
    """

    stored: StoredRequest
    rows: tuple[RequestRow, ...]
    parts: Mapping[str, Part]
    answer: RequestRow | None = None
    calls: tuple[StoredCall, ...] = ()
    event: Event | None = None
    notes: tuple[Mapping[str, Any], ...] = ()
    usage: TokenUsage | None = None


async def explained_request(
    executor: Executor, lineage: str, checkpoint: str | int | None, node: str, **options: Any
) -> list[RequestRow]:
    """The messages that a model was asked, each with where it comes from and why; `options`: those of `explained`."""
    return list((await explained(executor, lineage, checkpoint, node, **options)).rows)


async def explained(
    executor: Executor,
    lineage: str,
    checkpoint: str | int | None,
    node: str,
    *,
    namespace: str = "",
    branch: str = "",
    around: Services | Invocation | None = None,
) -> Explained:
    """The request of a model node and the reason for each of its messages.

    `checkpoint`, `node`, `namespace`, `branch`: see `request_of`. `around`: what was around the run of a
    Runner: its services, of which the session of the lineage is asked for what is recorded there, or its invocation
    where that is at hand. Raises what `request_of` raises, and ServiceError.
    """
    services = around.services if isinstance(around, Invocation) else around or Services()
    session = None if services.sessions is None else await session_of(services.sessions, lineage)
    invocation = around if isinstance(around, Invocation) else None
    if session is not None and invocation is None:
        invocation = made_up(executor, session, namespace, services)
    frames = await frames_of(executor, lineage, namespace)
    stored = await request_in(
        frames, checkpoint, node, branch=branch, invocation=invocation, partial=invocation is not around
    )
    told = None if session is None else Told.of(session, stored.answer_id)
    rows = await Rows.made(frames, stored, told)
    event = None if told is None else told.answer
    used = list(stored.usage) or ([event.usage] if event is not None and event.usage is not None else [])
    return Explained(
        stored,
        () if stored.request is None else tuple(rows.of(stored.request.messages)),
        stored.parts if told is None else checked(stored, told),
        rows.answer(),
        tuple(_shown(call, stored.secrets) for call in stored.calls),
        event,
        () if told is None else told.notes,
        total(used),
    )


def _shown(call: StoredCall, secrets: frozenset[str]) -> StoredCall:
    """A call without secrets."""
    return replace(
        call,
        arguments=masked_data(call.arguments, secrets),
        used=masked_data(call.used, secrets),
        result=None if call.result is None else masked(call.result, secrets),
    )


def checked(stored: StoredRequest, told: Told) -> dict[str, Part]:
    """The parts of a request, compared with what is recorded: the number of its messages, and what a guard did."""
    parts, answer = dict(stored.parts), told.answer
    if answer is None:
        return parts
    if answer.usage is not None:
        parts["usage"] = Part("recorded")
    if answer.messages:
        parts["answer"] = Part("recorded")
    if answer.view is None or not stored.requests:
        return parts
    queued = len(stored.turns[0].queued) if stored.turns else 0
    made, messages = len(stored.requests[0].messages) - queued, parts["messages"].without(GUARD)
    if made != answer.view.messages:
        text = f"the request had {answer.view.messages} message(s), and {made} could be made again"
        messages = replace(messages, known="unknown").doubted(text)
    elif told.shortened:
        count = len(told.shortened)
        messages = messages.doubted(f"results of {count} event(s) were shortened in it, and may be whole here")
    parts["messages"] = messages
    return parts
