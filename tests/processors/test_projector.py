"""The projector that runs ask for their messages: it reads the session anew, and loads what the chain needs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.talks import short

from graphagent.agents.invocation import Invocation, RunOptions, Services
from graphagent.agents.projector import Projector
from graphagent.errors import AgentError, ServiceError
from graphagent.ledger import Event, Session, SessionKey
from graphagent.messages import Message
from processors import (
    INCLUDE_CONTENTS,
    Block,
    Budget,
    HistoryLimit,
    Instructions,
    SessionProjector,
    assemble,
    default_pipeline,
    explain_projection,
)
from runner.artifacts import InMemoryArtifacts
from runner.sessions import InMemorySessions

pytestmark = pytest.mark.anyio


@dataclass
class Bot:
    """An agent that is only asked for its name."""

    name: str = "bot"
    description: str = "Knows things."
    sub_agents: Sequence[Any] = ()
    projector: Projector | None = field(default=None)

    async def run(self, invocation: Invocation) -> AsyncIterator[Event]:
        yield Event(author=self.name)


async def begun(**fields: Any) -> tuple[InMemorySessions, Invocation]:
    """A session with one turn of the past, and the invocation of the second."""
    sessions = InMemorySessions()
    session = await sessions.create("app", "u", "s", state={"name": "Ann"})
    for author, message in (("user", Message.user("hi")), ("bot", Message.assistant("hello"))):
        await sessions.append(session.key, Event(author=author, messages=(message,), request_id="r0", filter_key="app"))
    values = {"filter_key": "app", "services": Services(sessions=sessions), "request_id": "r1", "id": "i1", **fields}
    return sessions, Invocation(Bot(), Message.user("and now?"), await sessions.get(session.key), **values)


async def test_the_session_is_read_anew() -> None:
    """Events that were stored after the invocation was made are in; the invocation's copy is not what counts."""
    sessions, invocation = await begun()
    key = SessionKey("app", "u", "s")
    for message in (Message.user("and now?"), Message.assistant("let me see")):
        author = "user" if message.role == "user" else "bot"
        mine = {"request_id": "r1", "invocation_id": "i1", "filter_key": "app"}
        await sessions.append(key, Event(author=author, messages=(message,), **mine))
    projector: Projector = SessionProjector()
    expected = ["user hi", "assistant hello", "user and now?", "assistant let me see"]
    assert short(await projector.messages(invocation)) == expected


async def test_without_a_service_the_copy_is_used() -> None:
    """No service, a deleted session, no session at all: the copy, or what the agent was asked."""
    sessions, invocation = await begun()
    alone = Invocation(Bot(), invocation.message, invocation.session, filter_key="app")
    expected = ["user hi", "assistant hello", "user and now?"]
    assert short(await SessionProjector().messages(alone)) == expected
    assert short(await SessionProjector(sessions=sessions).messages(alone)) == expected
    await sessions.delete(SessionKey("app", "u", "s"))
    assert short(await SessionProjector().messages(invocation)) == expected
    assert short(await SessionProjector().messages(Invocation(Bot(), Message.user("hi")))) == ["user hi"]


async def test_a_session_that_cannot_be_read_is_an_error() -> None:
    """A model is never asked on a history that may be old: what the service raises goes on."""

    class Broken(InMemorySessions):
        async def get(self, key: SessionKey, **options: Any) -> Session | None:
            raise ServiceError("the database is gone")

    _, invocation = await begun()
    with pytest.raises(ServiceError, match="the database is gone"):
        await SessionProjector(sessions=Broken()).messages(invocation)


async def test_c072_a_run_without_the_history() -> None:
    """The option `include_contents: none` leaves out the session's history, and nothing is preloaded."""
    _, invocation = await begun(options=RunOptions(extra={INCLUDE_CONTENTS: "NONE"}))
    projector = SessionProjector(preload=lambda invocation: blocks("MEMORY"))
    assert short(await projector.messages(invocation)) == ["user and now?"]


async def blocks(text: str) -> list[Block]:
    """One memory."""
    return [Block("memory", text)]


async def test_preloaded_blocks() -> None:
    """What the preload hook fetches goes into the system message; if it fails, the run goes on and a note says so."""
    _, invocation = await begun()
    found = await SessionProjector(preload=lambda invocation: blocks("MEMORY")).messages(invocation)
    assert short(found)[0] == "system MEMORY"

    async def broken(invocation: Invocation) -> list[Block]:
        raise ServiceError("no memory")

    projection = await SessionProjector(preload=broken).projection(invocation)
    assert short(assemble(projection)) == ["user hi", "assistant hello", "user and now?"]
    assert projection.notes[0].text == "preloading failed: ServiceError: no memory"


async def test_instructions_with_state_and_artifacts() -> None:
    """Placeholders of the session's state, of the run, and of artifacts, which are loaded before the chain."""
    artifacts = InMemoryArtifacts()
    sessions, invocation = await begun(options=RunOptions(state={"mode": "short"}, extra={"who": "me"}))
    await artifacts.save(SessionKey("app", "u", "s"), "notes.txt", b"a note")
    invocation = Invocation(
        invocation.agent,
        invocation.message,
        invocation.session,
        filter_key="app",
        services=Services(sessions=sessions, artifacts=artifacts),
        options=invocation.options,
    )
    text = "{name} {runtime:mode} {invocation:who} {artifact.notes.txt} {artifact.gone}"
    pipeline = default_pipeline(instructions=Instructions(text, identity=True))
    found = await SessionProjector(pipeline).messages(invocation)
    assert short(found)[0] == "system You are bot. Knows things.\n\nAnn short me a note {artifact.gone}"


async def test_the_snapshot_makes_the_same_messages_again() -> None:
    """The projection before the chain is all that is needed, whatever happened to the session since."""
    sessions, invocation = await begun()
    projector = SessionProjector()
    snapshot = await projector.snapshot(invocation)
    first = await projector.messages(invocation)
    await sessions.append(SessionKey("app", "u", "s"), Event(author="bot", messages=(Message.assistant("later"),)))
    assert projector.pipeline.messages(snapshot) == first


async def test_the_budget_of_a_projector() -> None:
    """A projector with a budget leaves out the oldest groups."""
    _, invocation = await begun()
    projector = SessionProjector(budget=Budget(3, lambda message: len(message.text.split())))
    assert short(await projector.messages(invocation)) == ["assistant hello", "user and now?"]


async def test_explain_says_what_an_agent_sees() -> None:
    """Each event is in, out or changed, with reasons; the agent's own projector says by which policies."""
    sessions, _ = await begun()
    key = SessionKey("app", "u", "s")
    extra = [("b", Message.assistant("I am b")), ("user", Message.user("more")), ("bot", Message.assistant("fine"))]
    for number, (author, message) in enumerate(extra):
        event = Event(id=f"x{number}", author=author, messages=(message,), request_id="r1", filter_key="app")
        await sessions.append(key, event)
    session = await sessions.get(key)
    assert session is not None
    bot = Bot(projector=SessionProjector(default_pipeline(limit=HistoryLimit(3))))
    explained = explain_projection(session, bot)
    assert [entry.verdict for entry in explained.entries] == ["out", "out", "changed", "in", "in"]
    assert explained.entries[0].reasons == ("history: only the last 3 are asked for",)
    text = str(explained)
    assert text.startswith("what 'bot' sees (filter key 'app', request 'r1'): 3 message(s) from 5 event(s)")
    assert "   2  changed  b: I am b\n               voice: 'b' is another agent: it is retold" in text
    assert [entry.verdict for entry in explain_projection(session, "bot").entries][:2] == ["in", "in"]
    earlier = explain_projection(session, bot, before="x2")
    assert len(earlier.entries) == 4
    assert short(earlier.messages)[-1] == "user more"
    with pytest.raises(AgentError, match="has no event 'nope'; it has 5 event"):
        explain_projection(session, bot, before="nope")
