"""Whatever is in a session: what reaches a model through the Runner is well formed, complete, repeatable, and the
record stays as it was."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from support.random_sessions import APP, random_events, random_projector
from support.talks import faults

from graphagent import LLMAgent, tool
from graphagent.agents import AgentTool, ToolOptions
from graphagent.agents.model import ModelRequest
from graphagent.ledger import Event, SessionKey
from graphagent.models import ScriptedModel
from runner import Runner
from runner.outcome import OUTCOME
from runner.sessions import InMemorySessions

pytestmark = pytest.mark.anyio
KEY = SessionKey(APP, "ann", "s")
SAID = ("first question", "second question", "third question")


@tool
async def look(request: str = "") -> str:
    """Look."""
    return "seen"


def erratic(random: Random) -> ScriptedModel:
    """A model that asks for tools or not, several at once, some that don't exist, with texts or none."""

    def answer(request: ModelRequest) -> Any:
        if len(request.messages) > 60 or random.random() < 0.5:
            return f"answer {random.randrange(99)}"
        names = [random.choice(["look", "look", "helper", "nothing"]) for _ in range(random.randrange(1, 4))]
        calls = [{"name": name, "arguments": {"request": "go"}, "id": f"c{random.randrange(6)}"} for name in names]
        return {"content": random.choice(["", "well"]), "tool_calls": calls}

    return ScriptedModel(answer)


def plain(request: ModelRequest) -> list[tuple[Any, ...]]:
    """What a request says, without what differs by run."""
    return [
        (m.role, m.text, m.tool_call_id, [(c.id, c.name, c.arguments) for c in m.tool_calls]) for m in request.messages
    ]


async def conversation(seed: int) -> tuple[list[list[ModelRequest]], Sequence[Event], Sequence[Event]]:
    """Three turns after a random history: the requests of each turn, and the events before and after."""
    random = Random(seed)
    sessions, projector = InMemorySessions(), random_projector(random)
    await sessions.create(*KEY)
    for event in random_events(random):
        await sessions.append(KEY, event)
    before = await sessions.get(KEY)
    model = erratic(random)
    helper = AgentTool(LLMAgent("helper", ScriptedModel(lambda request: "helped"), description="Helps."))
    options = ToolOptions(parallel=random.random() < 0.5)
    agent = LLMAgent("bot", model, "Be kind.", [look, helper], tool_options=options)
    turns = []
    async with Runner(APP, agent, sessions=sessions, projector=projector) as runner:
        for said in SAID:
            known = len(model.requests)
            events = [event async for event in runner.run(KEY.user, KEY.session, said)]
            assert events[-1].extensions[OUTCOME] == "completed", events[-1]
            turns.append(model.requests[known:])
    after = await sessions.get(KEY)
    assert after is not None
    return turns, [] if before is None else before.events, after.events


@pytest.mark.parametrize("start", range(0, 100, 25))
async def test_what_holds_of_every_request(start: int) -> None:
    """On random sessions and under random policies: no call or result without its partner, what was asked is there,
    once, and the events that were there stay as they were."""
    for seed in range(start, start + 25):
        turns, before, after = await conversation(seed)
        for said, requests in zip(SAID, turns, strict=True):
            for request in requests:
                assert faults(request.messages) == [], seed
                users = [message.text for message in request.messages if message.role == "user"]
                assert sum(said in text for text in users) == 1, (seed, said, users)
                assert request.messages[0].text.startswith("Be kind."), seed
        shown = {event.id: event for event in after}
        first = next((place for place, event in enumerate(before) if event.is_user), len(before))
        assert [shown[event.id] for event in before[first:]] == list(before[first:]), seed
        assert len(shown) == len(after), seed


async def test_same_input_same_output() -> None:
    """The same conversation, held twice, sends the same requests."""
    for seed in range(25):
        one, _, _ = await conversation(seed)
        other, _, _ = await conversation(seed)
        assert [[plain(r) for r in turn] for turn in one] == [[plain(r) for r in turn] for turn in other], seed
