"""Two operating-system processes at one summary, with a model on a server that fails, hangs or is cut."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest
from support.openai_server import LITELLM_WARNS, Answer, OpenAIServer, chunk, fails, openai_server, says
from support.rolling import say, talk

from graphagent.ledger import Session, SessionKey
from graphagent.services import SessionService
from graphagent.testing.forks import Ended, ForkServer
from runner.sessions import SqlSessions
from runner.summary.rolling import uncovered

pytestmark = [pytest.mark.anyio, pytest.mark.kill, *LITELLM_WARNS]
GOOD = says("They spoke.")


@pytest.fixture(scope="module")
def workers() -> Iterator[ForkServer]:
    """Starts processes that sum up."""
    with ForkServer("support.summary_worker:work") as server:
        yield server


@pytest.fixture
def url(fresh_database: str) -> str:
    """A fresh database."""
    return fresh_database


@pytest.fixture
async def sessions(url: str) -> AsyncIterator[SessionService]:
    """The sessions of that database."""
    async with SqlSessions(url) as service:
        yield service


async def both(
    workers: ForkServer, server: OpenAIServer, url: str, key: SessionKey, *more: dict[str, Any]
) -> list[Ended]:
    """A process for each of `more` sums up at the same time."""
    jobs = [{"url": url, "key": key, "server": server.url, **one} for one in more]
    return await anyio.to_thread.run_sync(lambda: workers.run(*jobs))


async def read(sessions: SessionService, key: SessionKey) -> Session:
    """The session as it is now."""
    session = await sessions.get(key)
    assert session is not None
    return session


async def test_one_model_call_for_two_processes(workers: ForkServer, sessions: SessionService, url: str) -> None:
    """Of two at the same time one asks the model; the other then finds nothing new."""
    key = await talk(sessions)
    async with openai_server([GOOD, GOOD]) as server:
        ended = await both(workers, server, url, key, {}, {})
        assert sorted(end.result[0] for end in ended) == ["nothing_new", "updated"]
        assert len(server.requests) == 1
    session = await read(sessions, key)
    assert session.summaries["app"].text == "They spoke."
    assert uncovered(session, "app") == ()


@pytest.mark.parametrize(
    "bad",
    [
        [fails(500, "out of order")],
        [says(""), says("")],  # an empty answer is asked for once more
        [Answer([chunk(content="The")], then="cut")],
        [Answer([chunk(content="The")], then="hold")],
    ],
    ids=["500", "empty", "cut", "hangs"],
)
async def test_what_one_process_fails_at_the_other_does(
    workers: ForkServer, sessions: SessionService, url: str, bad: list[Answer]
) -> None:
    """The one that comes first gets no summary out of the server and leaves everything as it was; the one after it
    sums up the same events."""
    key = await talk(sessions)
    async with openai_server([*bad, GOOD]) as server:
        ended = await both(workers, server, url, key, {}, {})
        assert sorted(end.result[0] for end in ended) == ["failed", "updated"], ended
        asked = [request["messages"][-1]["content"] for request in server.requests]
    assert len(asked) == len(bad) + 1
    assert all("app 2" in text for text in asked)
    session = await read(sessions, key)
    assert session.summaries["app"].text == "They spoke."
    assert uncovered(session, "app") == ()


@pytest.mark.parametrize("die", ["before", "after", 1.0], ids=["before it is stored", "after", "while asking"])
async def test_a_process_that_is_killed_holds_nobody_up(
    workers: ForkServer, sessions: SessionService, url: str, die: str | float
) -> None:
    """Text and boundary are stored together or not at all; the lease of the dead process ends, and the next one goes on
    from what is stored."""
    key = await talk(sessions)
    first = Answer([chunk(content="The")], then="hold") if isinstance(die, float) else GOOD

    def answer(request: dict[str, Any]) -> Answer:
        return says("Another one.") if "more" in request["messages"][-1]["content"] else first

    async with openai_server(answer) as server:
        [ended] = await both(workers, server, url, key, {"die": die, "lease": 1.0})
        assert ended.code == -9
        session = await read(sessions, key)
        stored = session.summaries.get("app")
        assert (stored is None) == (die != "after")
        assert len(uncovered(session, "app")) == (0 if stored is not None else 3)
        await say(sessions, key, "more", "app")
        [ended] = await both(workers, server, url, key, {"lease": 1.0})
        assert ended.result[0] == "updated"
        again = server.requests[-1]["messages"][-1]["content"]
        assert ("app 0" in again) == (stored is None)
        assert "more" in again
    session = await read(sessions, key)
    assert session.summaries["app"].text == "Another one."
    assert uncovered(session, "app") == ()
