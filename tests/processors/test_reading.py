"""A run's session is read at the cost of what is new since the run began, and is the same as if all were read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphagent import LLMAgent
from graphagent.agents.invocation import Invocation, Services
from graphagent.ledger import Event, Session, SessionKey
from graphagent.messages import Message
from graphagent.models import ScriptedModel
from graphagent.services import read_again
from processors import HistoryLimit, SessionProjector, default_pipeline, explain_projection
from runner.sessions import InMemorySessions, SqlSessions

pytestmark = pytest.mark.anyio
KEY = SessionKey("app", "u", "s")
FRESH = 64


class Counting(SqlSessions):
    """Sessions that count the events they hand out; `wholly`: how often all of them."""

    read = 0
    wholly = 0

    async def get(self, key: SessionKey, **options: Any) -> Session | None:
        """The session."""
        found = await super().get(key, **options)
        self.read += 0 if found is None else len(found.events)
        self.wholly += not options
        return found


def said(role: str, text: str, request: str) -> Event:
    """Something that was said in a request."""
    message = Message.user(text) if role == "user" else Message.assistant(text)
    author = "user" if role == "user" else "bot"
    return Event(author=author, messages=(message,), request_id=request, invocation_id=request, filter_key="app")


class Bot:
    """An agent that is only asked for its name."""

    name, description, sub_agents, projector = "bot", "", (), None


async def begun(sessions: Any, turns: int) -> Invocation:
    """So many turns, and the invocation of one more, whose message is stored."""
    await sessions.create(*KEY)
    for turn in range(turns):
        await sessions.append(KEY, said("user", f"question {turn}", f"r{turn}"))
        await sessions.append(KEY, said("bot", f"answer {turn}", f"r{turn}"))
    copy = await sessions.get(KEY)
    copy.events.append(await sessions.append(KEY, said("user", "now", "r")))
    services = Services(sessions=sessions)
    return Invocation(Bot(), Message.user("now"), copy, id="r", request_id="r", filter_key="app", services=services)  # type: ignore[arg-type]


async def test_only_new_events_are_read(tmp_path: Path) -> None:
    """However long the session is, each projection reads the newest few; it has all that was appended since."""
    async with Counting(f"sqlite:///{tmp_path}/s.db") as sessions:
        invocation = await begun(sessions, 200)
        assert invocation.session is not None
        sessions.read = sessions.wholly = 0
        await sessions.append(KEY, said("bot", "by another", "r"))
        messages = await SessionProjector(default_pipeline(limit=HistoryLimit(4))).messages(invocation)
        assert [message.text for message in messages] == ["question 199", "answer 199", "now", "by another"]
        assert (sessions.read <= FRESH, sessions.wholly) == (True, 0)
        assert await read_again(sessions, invocation.session) == await sessions.get(KEY)


@pytest.mark.parametrize("turns", [0, 1, 15, 40])
@pytest.mark.parametrize("more", [0, 1, 30, FRESH - 1, FRESH, FRESH + 1, 200])
async def test_it_is_as_if_all_were_read(turns: int, more: int) -> None:
    """Short and long sessions, few and many new events, one of somebody else that came in between."""
    sessions = InMemorySessions()
    invocation = await begun(sessions, turns)
    assert invocation.session is not None
    for number in range(more):
        await sessions.append(KEY, said("bot", f"new {number}", "r"))
    assert await read_again(sessions, invocation.session) == await sessions.get(KEY)
    stranger = said("user", "I was quicker", "other")
    assert invocation.session is not None
    earlier = InMemorySessions()
    await earlier.create(*KEY)
    for event in [*invocation.session.events[:-1], stranger, invocation.session.events[-1]]:
        await earlier.append(KEY, event)
    for number in range(more):
        await earlier.append(KEY, said("bot", f"new {number}", "r"))
    now, whole = await read_again(earlier, invocation.session), await earlier.get(KEY)
    assert now is not None
    assert whole is not None
    assert [event.text for event in now.events] == [event.text for event in whole.events]


async def test_an_agent_is_explained_by_its_own_projector() -> None:
    """The public attribute of an agent says which policies hold for it."""
    sessions = InMemorySessions()
    await begun(sessions, 5)
    session = await sessions.get(KEY)
    assert session is not None
    own = SessionProjector(default_pipeline(limit=HistoryLimit(3)))
    agent = LLMAgent("bot", ScriptedModel([]), options={"projector": own})
    assert agent.projector is own
    verdicts = [entry.verdict for entry in explain_projection(session, agent).entries]
    assert verdicts == ["out"] * 8 + ["in"] * 3
