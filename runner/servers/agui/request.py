"""A request of the protocol: what is taken, and what is refused with which words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ag_ui.core import ResumeEntry, RunAgentInput, Tool, ToolMessage, UserMessage
from pydantic import ValidationError

from graphagent.agents.external import NO_PARAMETERS, ExternalTool, external_tool
from graphagent.errors import alternatives
from graphagent.messages import Message
from runner.servers.agui.content import tool_message, user_message
from runner.servers.agui.errors import Refused
from runner.servers.limits import ServerLimits

MOST_TOOLS = 128
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for. `said`: the user's message, or the results of client's tools at the end, whose own ids
    are `result_ids`; empty for one that answers questions with `resume`. `tools`: of the client."""

    thread_id: str
    run_id: str
    parent_run_id: str | None
    said: tuple[Message, ...]
    result_ids: tuple[str, ...]
    resume: tuple[ResumeEntry, ...]
    tools: tuple[ExternalTool, ...]
    state: Any


def parsed(body: Any, limits: ServerLimits) -> Asked:
    """The body as what it asks for. Raises Refused that names the first field that doesn't fit."""
    if not isinstance(body, dict):
        raise Refused("the body is no JSON object; send a RunAgentInput")
    messages = body.get("messages")
    if isinstance(messages, list) and len(messages) > limits.messages:
        told = f"{len(messages)} messages; the limit of this server is {limits.messages}"
        raise Refused(told, status=413, param="messages")
    try:
        given = RunAgentInput.model_validate(body)
    except ValidationError as error:
        raise _refusal(error) from error
    resume = tuple(given.resume or ())
    said, ids = ((), ()) if resume else _said(given)
    return Asked(
        thread_id=checked_id(given.thread_id, "threadId", limits.session_id),
        run_id=checked_id(given.run_id, "runId", limits.session_id),
        parent_run_id=given.parent_run_id,
        said=said,
        result_ids=ids,
        resume=resume,
        tools=_tools(given.tools or ()),
        state=given.state,
    )


def checked_id(given: str, param: str, most: int) -> str:
    """An id of a client. Raises Refused for one that could not stand in an address."""
    fits = 0 < len(given) <= most and given.isascii() and given.isprintable() and "/" not in given
    if not fits or given in (".", ".."):
        raise Refused(f"{param} is 1 to {most} printable ASCII characters without '/'", param=param, code="bad_id")
    return given


def answers_of(entries: Sequence[ResumeEntry], pending: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """The answers to all open questions, by their ids; None in a payload is an answer as any other. `pending`: the
    questions, None if they are not known beforehand. Raises Refused that lists them unless each is answered, once."""
    waiting = [{"id": one["id"], "key": one["key"]} for one in pending or ()]
    more = {"pending": waiting}

    def refused(message: str, place: int | None = None) -> Refused:
        keys = ", ".join(f"'{one['key']}' ({one['id']})" for one in waiting)
        param = "resume" if place is None else f"resume.{place}"
        told = f"{message}; open: {keys}" if keys else f"{message}; no question is open"
        return Refused(told, code="answers_do_not_fit", param=param, more=more)

    known = [str(one["id"]) for one in waiting]
    answers: dict[str, Any] = {}
    for place, entry in enumerate(entries):
        if pending is not None and entry.interrupt_id not in known:
            hint = f": {alternatives(entry.interrupt_id, known)}" if known else ""
            raise refused(f"no question '{entry.interrupt_id}' is open{hint}", place)
        if entry.interrupt_id in answers:
            raise refused(f"the question '{entry.interrupt_id}' is answered twice", place)
        if entry.status == "cancelled":
            raise refused(f"the question '{entry.interrupt_id}' can't be given up; answer it", place)
        answers[entry.interrupt_id] = entry.payload
    if missing := [one for one in known if one not in answers]:
        raise refused(f"there is no answer to {', '.join(repr(one) for one in missing)}; answer all at once")
    return answers


def results_of(asked: Asked, open_calls: Sequence[str], answered: set[str]) -> tuple[Asked, list[str]]:
    """The request with those results alone that the thread waits for, and the ids of their calls; the others at the
    end are of calls which the agent's own tools have answered. Raises Refused for a result of no call, for two that
    differ, and for one too few."""
    kept: dict[str, tuple[Message, str]] = {}
    for message, own in zip(asked.said, asked.result_ids, strict=True):
        call = str(message.tool_call_id)
        if call in open_calls:
            if call in kept and kept[call][0].text != message.text:
                raise Refused(f"two messages answer the call '{call}'", param="messages")
            kept.setdefault(call, (message, own))
        elif call not in answered:
            hint = alternatives(call, open_calls) if open_calls else "none does"
            raise Refused(f"no call '{call}' waits for a result: {hint}", param="messages", code="unknown_tool_call")
    if not open_calls:
        raise Refused("no call waits for a result; say something", param="messages", code="unknown_tool_call")
    if missing := [one for one in open_calls if one not in kept]:
        names = ", ".join(f"'{one}'" for one in missing)
        raise Refused(f"there is no result of {names}", param="messages", code="missing_tool_result")
    return _with(asked, list(kept.values())), list(kept)


def _with(asked: Asked, kept: Sequence[tuple[Message, str]]) -> Asked:
    return Asked(
        asked.thread_id,
        asked.run_id,
        asked.parent_run_id,
        tuple(message for message, _ in kept),
        tuple(own for _, own in kept),
        asked.resume,
        asked.tools,
        asked.state,
    )


def _said(given: RunAgentInput) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """The input of the run: the last message, or all results of tools at the end."""
    if not given.messages:
        raise Refused("there are no messages; say something, or answer with 'resume'", param="messages")
    last = len(given.messages) - 1
    found = given.messages[last]
    if isinstance(found, UserMessage):
        return (user_message(found, f"messages.{last}"),), ()
    if not isinstance(found, ToolMessage):
        told = f"the last message is of role '{found.role}'; it has to be of 'user' or 'tool'"
        raise Refused(told, param=f"messages.{last}.role")
    first = last
    while first > 0 and isinstance(given.messages[first - 1], ToolMessage):
        first -= 1
    results = [one for one in given.messages[first:] if isinstance(one, ToolMessage)]
    said = tuple(tool_message(one, f"messages.{first + place}") for place, one in enumerate(results))
    return said, tuple(one.id for one in results)


def _tools(given: Sequence[Tool]) -> tuple[ExternalTool, ...]:
    if len(given) > MOST_TOOLS:
        raise Refused(f"{len(given)} tools; the limit is {MOST_TOOLS}", param="tools")
    seen: set[str] = set()
    for place, one in enumerate(given):
        if not _TOOL_NAME.fullmatch(one.name):
            raise Refused(f"tool {place} is called {one.name[:80]!r}; a name is 1 to 64 letters, digits, '_' and '-'",
                          param=f"tools.{place}.name")  # fmt: skip
        if one.name in seen:
            raise Refused(f"two tools are called '{one.name}'", param=f"tools.{place}.name")
        seen.add(one.name)
        shape = one.parameters
        if shape is not None and not (isinstance(shape, dict) and shape.get("type", "object") == "object"):
            raise Refused(f"the parameters of tool '{one.name}' are no JSON schema of an object",
                          param=f"tools.{place}.parameters")  # fmt: skip
    return tuple(external_tool(one.name, one.description, one.parameters or NO_PARAMETERS) for one in given)


def _refusal(error: ValidationError) -> Refused:
    found = error.errors(include_url=False, include_context=False, include_input=False)[0]
    param = ".".join(str(part)[:40] for part in found["loc"][:8])
    return Refused(f"{param}: {found['msg']}", param=param)
