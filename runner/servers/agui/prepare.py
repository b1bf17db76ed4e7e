"""From a request to a run that may begin: everything that can be refused is refused here."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphagent.agents.agent import Agent
from graphagent.agents.graph_agent import GraphAgent, session_lineage, shown
from graphagent.agents.invocation import RunOptions
from graphagent.ledger import Session, SessionKey
from runner.runner import Runner
from runner.servers.access import Identity
from runner.servers.agui.errors import Refused
from runner.servers.agui.files import newest
from runner.servers.agui.history import announced_calls, answered_calls, open_calls
from runner.servers.agui.marks import Marks
from runner.servers.agui.request import Asked, answers_of, results_of
from runner.servers.agui.translator import RunNames
from runner.servers.agui.work import Work, request_id_of
from runner.servers.app import ServerContext
from runner.servers.client_tools import own_names, takes_client_tools

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Shared:
    """What clients have to do with the state. `shown`: keys of the session's state that they see; `taken`: keys of the
    state that they send which a run begins with. `seconds`: of a run; None: no limit."""

    shown: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    seconds: float | None = None


async def prepared(context: ServerContext, asked: Asked, user: Identity, shared: Shared) -> Work:
    """The run that a request asks for. Raises Refused, and what the services raise."""
    runner = context.runner
    key = SessionKey(runner.app_name, user.user_id, asked.thread_id)
    request_id = request_id_of(key, asked.run_id)
    goes_on = bool(asked.resume) or asked.said[0].role == "tool"
    session = await runner.sessions.get(key, last=None if goes_on else 1)
    events = [] if session is None else session.events
    if any(event.request_id == request_id for event in events if event.is_user or event.is_tool_result):
        raise Refused(f"the thread has had a run '{asked.run_id}'; give the new one its own id", status=409,
                      code="run_exists", param="runId")  # fmt: skip
    answers: dict[str, Any] | None = None
    if asked.resume:
        answers = answers_of(asked.resume, await questions(runner, key))
    elif goes_on:
        asked, _ = results_of(asked, open_calls(events), answered_calls(events))
    marks = Marks()
    return Work(
        key=key,
        names=RunNames(asked.thread_id, asked.run_id, asked.parent_run_id),
        said=asked.said if answers is None else None,
        options=RunOptions(
            request_id=request_id,
            answers=answers,
            state=_state(asked.state, shared.taken),
            max_seconds=shared.seconds,
            plugins=(marks,),
        ),
        marks=marks,
        tools=() if not asked.tools else await _client_tools(asked, runner.agent),
        results=tuple(zip(asked.result_ids, asked.said, strict=True)) if goes_on and answers is None else (),
        announced=frozenset(announced_calls(events)) if goes_on else frozenset(),
        state=_of(session, shared.shown),
        files=await newest(runner.services.artifacts, key),
    )


async def questions(runner: Runner, key: SessionKey) -> Sequence[Mapping[str, Any]] | None:
    """The questions that a thread waits for, from the stores; None for an agent that keeps none there."""
    agent, store = runner.agent, runner.services.checkpoints
    if not isinstance(agent, GraphAgent) or store is None:
        return None
    asked = await agent.executor(store).interrupts(session_lineage(key), namespace=agent.name)
    return [shown(one) for one in asked if one.kind == "ask"]


def _state(given: Any, taken: tuple[str, ...]) -> dict[str, Any]:
    """What a run begins with of a client's state: the keys that the server takes, and no other."""
    if not taken or given is None:
        return {}
    if not isinstance(given, dict):
        raise Refused("the state is no JSON object", param="state")
    return {key: given[key] for key in taken if key in given}


def _of(session: Session | None, keys: tuple[str, ...]) -> dict[str, Any]:
    return {} if session is None else {key: session.state[key] for key in keys if key in session.state}


async def _client_tools(asked: Asked, agent: Agent | str) -> Any:
    if isinstance(agent, str) or not takes_client_tools(agent):
        raise Refused(
            "this agent takes no tools of its clients; its author allows them with ClientTools() among its tools",
            param="tools",
            code="unsupported",
        )
    try:
        taken = await own_names(agent)
    except Exception:  # the run lists them again, and says so
        _log.warning("the tools of agent '%s' could not be listed", agent.name, exc_info=True)
        taken = frozenset()
    for place, one in enumerate(asked.tools):
        if one.spec.name in taken:
            raise Refused(f"the agent has a tool '{one.spec.name}' of its own; give yours another name",
                          param=f"tools.{place}.name")  # fmt: skip
    return asked.tools
