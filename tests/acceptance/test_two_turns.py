"""A conversation of two turns with a real client over a real socket: the Runner, SQLite, LiteLLMModel, a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.openai_server import LITELLM_WARNS, Answer, call, chunk, openai_server, says

from graphagent import LLMAgent, SqlCheckpoints, tool
from graphagent.ledger import SessionKey
from graphagent.models import LiteLLMModel
from runner import Runner
from runner.sessions import SqlSessions

pytestmark = [pytest.mark.anyio, *LITELLM_WARNS]
CALL = Answer([chunk(role="assistant", tool_calls=[call(0, "c1", "weather", '{"city": "Oslo"}')]), chunk("tool_calls")])


@tool
async def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


async def test_the_request_of_turn_two_holds_turn_one(tmp_path: Path) -> None:
    """Two turns, each in a Runner of its own, as after a restart: what the server was sent in turn two is the whole of
    turn one, with the tool call and its result, and then the new question; the text came in pieces."""
    url = f"sqlite:///{tmp_path}/app.db"
    asked = ("What is the weather in Oslo?", "And tomorrow?")
    async with openai_server([CALL, says("It ", "rains."), says("It rains ", "again.")]) as server:
        told = []
        for text in asked:
            model = LiteLLMModel("openai/small", api_base=server.url, api_key="secret")
            agent = LLMAgent("bot", model, "Be brief.", [weather])
            async with (
                SqlSessions(url) as sessions,
                SqlCheckpoints(url) as store,
                Runner("app", agent, sessions=sessions, checkpoints=store) as runner,
            ):
                told.append([event async for event in runner.run("ann", "s", text)])
    assert [event.delta for event in told[1] if event.partial and event.delta] == ["It rains ", "again."]
    first = [
        ("system", "Be brief."),
        ("user", asked[0]),
        ("assistant", "weather c1"),
        ("tool", "c1 rain in Oslo"),
    ]
    assert [sent(request) for request in server.requests] == [
        first[:2],
        first,
        [*first, ("assistant", "It rains."), ("user", asked[1])],
    ]
    async with SqlSessions(url) as sessions:
        stored = await sessions.get(SessionKey("app", "ann", "s"))
    assert stored is not None
    texts = [asked[0], "", "rain in Oslo", "It rains.", asked[1], "It rains again."]
    assert [event.text for event in stored.events] == texts


def sent(request: dict[str, Any]) -> list[tuple[str, str]]:
    """The messages that a server was sent, in short words."""
    found = []
    for message in request["messages"]:
        calls = [f"{one['function']['name']} {one['id']}" for one in message.get("tool_calls") or ()]
        words = [message.get("tool_call_id"), *calls, message.get("content")]
        found.append((message["role"], " ".join(word for word in words if word)))
    return found
