"""Which skills an agent has loaded: state of its session, read from it and written with the results of tools.

Source: spec/services, 2.5 and 2.11. The keys have no `temp:` before them, since a session doesn't store those: what was
loaded has to be there when a run goes on that was killed. What a turn loaded has the turn's request id in it, which is
the same after the kill, so that nothing has to be cleared for the next turn to begin without. Each skill has keys of
its own, so that two calls of one round don't undo each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from graphagent.agents.invocation import Invocation
from graphagent.ledger import Event, Session
from graphagent.services import read_again

Mode = Literal["once", "turn", "session"]
"""How long a loaded skill is in view: in one request, to the end of the turn, or of the session."""
Docs = tuple[str, ...] | Literal["*"]
"""The documents of a skill that are in view; `*`: all."""

LOADED, DOCS = "skill:loaded_by_agent:", "skill:docs_by_agent:"


class Loaded(NamedTuple):
    """A skill that is loaded. `order`: higher was touched later; of one round they have the same. `call`: the id of
    the tool call that loaded it."""

    order: int
    name: str
    docs: Docs = ()
    call: str = ""


def loaded_key(agent: str, skill: str) -> str:
    """The state key of a skill that is loaded."""
    return f"{LOADED}{_escaped(agent)}/{skill}"


def docs_key(agent: str, skill: str) -> str:
    """The state key of the documents that are selected of a skill."""
    return f"{DOCS}{_escaped(agent)}/{skill}"


async def session_now(invocation: Invocation) -> Session | None:
    """The session as it is stored now: what the tools of this turn have put into its state is in it."""
    session, service = invocation.session, invocation.services.sessions
    if session is None or service is None:
        return session
    return await read_again(service, session) or session


def loaded_in(session: Session, invocation: Invocation, mode: Mode) -> list[Loaded]:
    """What the agent has loaded and counts now, the last touched last."""
    agent, turn = invocation.agent.name, invocation.request_id
    prefix = loaded_key(agent, "")
    found = []
    for key, value in session.state.items():
        if not key.startswith(prefix) or not isinstance(value, Mapping) or not _counts(value, turn, mode):
            continue
        name = key.removeprefix(prefix)
        found.append(
            Loaded(int(value.get("order", 0)), name, selected(session, invocation, name, mode), str(value.get("call")))
        )
    return sorted(found)


def selected(session: Session, invocation: Invocation, skill: str, mode: Mode) -> Docs:
    """The documents of a skill that are selected now."""
    value = session.state.get(docs_key(invocation.agent.name, skill))
    if not isinstance(value, Mapping) or not _counts(value, invocation.request_id, mode):
        return ()
    docs = value.get("docs")
    return "*" if docs == "*" else tuple(map(str, docs or ()))


def loading(session: Session, invocation: Invocation, skill: str, call: str, mode: Mode) -> dict[str, Any]:
    """The change of state that makes a skill the last that was loaded."""
    newest = max((one.order for one in loaded_in(session, invocation, mode)), default=0)
    value = {"order": newest + 1, "turn": invocation.request_id, "call": call}
    return {loaded_key(invocation.agent.name, skill): value}


def selecting(invocation: Invocation, skill: str, docs: Docs) -> dict[str, Any]:
    """The change of state that selects documents."""
    value = {"docs": docs if docs == "*" else list(docs), "turn": invocation.request_id}
    return {docs_key(invocation.agent.name, skill): value}


def just_loaded(events: Iterable[Event], invocation: Invocation) -> frozenset[str]:
    """The ids of the calls whose results the agent's model has not seen yet: those after its last answer."""
    calls: set[str] = set()
    for event in reversed(list(events)):
        if event.request_id != invocation.request_id or event.author != invocation.agent.name:
            continue
        if any(message.role == "assistant" for message in event.messages):
            break
        calls |= {message.tool_call_id for message in event.messages if message.tool_call_id is not None}
    return frozenset(calls)


def _counts(value: Mapping[str, Any], turn: str, mode: Mode) -> bool:
    return mode == "session" or value.get("turn") == turn


def _escaped(agent: str) -> str:
    return agent.replace("%", "%25").replace("/", "%2F")
