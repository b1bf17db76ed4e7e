"""From a request to a run that may begin: everything that can be refused is refused here."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphagent.agents.agent import Agent
from graphagent.agents.external import NO_PARAMETERS, ExternalTool, external_tool
from graphagent.agents.invocation import RunOptions
from graphagent.ids import fresh_id
from graphagent.ledger import SessionKey
from graphagent.messages import Message
from runner.servers.access import Identity
from runner.servers.app import ServerContext
from runner.servers.client_tools import own_names, takes_client_tools
from runner.servers.openai.conversation import check_results, conversation, open_in_history, open_in_session
from runner.servers.openai.errors import ApiError
from runner.servers.openai.parameters import AsAsked, GenerationLimits, generation, has_schema, output_schema
from runner.servers.openai.request import ChatRequest, parsed

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that may begin. `said` None answers an agent's questions; `tools`: of the client; `whole`, `schema`: of
    the answer, as in `Answer`."""

    model: str
    user_id: str
    session_id: str
    said: Sequence[Message] | None
    options: RunOptions
    tools: tuple[ExternalTool, ...]
    whole: bool
    schema: Mapping[str, Any] | None
    stream: bool
    include_usage: bool

    @property
    def request_id(self) -> str:
        """Of the run."""
        return str(self.options.request_id)

    @property
    def headers(self) -> dict[str, str]:
        """What the client is told of the run beside the answer."""
        return {"x-session-id": self.session_id, "x-request-id": self.request_id}


async def prepared(
    context: ServerContext,
    body: Any,
    model: str,
    user: Identity,
    session: str | None,
    limits: GenerationLimits,
    *,
    detached: bool,
) -> Prepared:
    """The run that a request asks for. Raises ApiError, and what the session service raises."""
    messages = body.get("messages") if isinstance(body, dict) else None
    if isinstance(messages, list) and len(messages) > context.limits.messages:
        most = context.limits.messages
        raise ApiError(f"{len(messages)} messages; the limit of this server is {most}", status=413, param="messages")
    request = parsed(body)
    check_model(request.model, model)
    if session is not None:
        _check_session(session, context.limits.session_id)
    talk = conversation(request.messages)
    if request.answers is None:
        await _check_results(context, user, session, talk.said, talk.history)
    elif session is None:
        raise ApiError("'answers' go to a session: name it with X-Session-Id", param="answers")
    agent = context.runner.agent
    schema = output_schema(request, agent)
    options = RunOptions(
        request_id=fresh_id(),
        history=talk.history if request.answers is None else (),
        answers=request.answers,
        plugins=(AsAsked(generation(request, limits), talk.instruction, schema),),
        detached=detached,
    )
    return Prepared(
        model=model,
        user_id=user.user_id,
        session_id=session or fresh_id(),
        said=talk.said if request.answers is None else None,
        options=options,
        tools=await _client_tools(request, agent),
        whole=schema is not None or has_schema(agent),
        schema=schema,
        stream=bool(request.stream),
        include_usage=bool(request.stream_options and request.stream_options.include_usage),
    )


def check_model(given: str, known: str) -> None:
    """Raises ApiError for the name of another model than the agent's."""
    if given != known:
        raise ApiError(
            f"there is no model '{given[:80]}': the agent here is '{known}'",
            status=404,
            param="model",
            code="model_not_found",
        )


def _check_session(session: str, most: int) -> None:
    if not session or len(session) > most or not session.isascii() or not session.isprintable():
        raise ApiError(f"X-Session-Id is 1 to {most} printable ASCII characters", code="bad_session_id")


async def _check_results(
    context: ServerContext, user: Identity, session: str | None, said: Sequence[Message], history: Sequence[Message]
) -> None:
    """Results of tools answer what the session waits for; where there is none yet, what the history ends with."""
    if said[0].role != "tool":
        return
    stored = None
    if session is not None:
        stored = await context.runner.sessions.get(SessionKey(context.runner.app_name, user.user_id, session))
    if stored is not None and stored.events:
        check_results(said, open_in_session(stored.events))
    else:
        check_results(said, open_in_history(history))


async def _client_tools(request: ChatRequest, agent: Agent | str) -> tuple[ExternalTool, ...]:
    if not request.tools or request.tool_choice == "none":
        return ()
    if isinstance(agent, str) or not takes_client_tools(agent):
        raise ApiError(
            "this agent takes no tools of its clients; its author allows them with ClientTools() among its tools",
            param="tools",
            code="unsupported_parameter",
        )
    taken = await _taken(agent)
    for place, one in enumerate(request.tools):
        if one.function.name in taken:
            raise ApiError(
                f"the agent has a tool '{one.function.name}' of its own; give yours another name",
                param=f"tools.{place}.function.name",
            )
    return tuple(
        external_tool(one.function.name, one.function.description or "", one.function.parameters or NO_PARAMETERS)
        for one in request.tools
    )


async def _taken(agent: Agent) -> frozenset[str]:
    try:
        return await own_names(agent)
    except Exception:  # the run lists them again, and says so
        _log.warning("the tools of agent '%s' could not be listed", agent.name, exc_info=True)
        return frozenset()
