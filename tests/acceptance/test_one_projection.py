"""One projection: what a graph starts from and what a model is asked are the same messages, in every branch."""

from __future__ import annotations

from random import Random

import pytest
from support.random_sessions import APP, random_events, random_projector, random_session
from support.talks import faults

from graphagent import END, START, MessagesState, StateGraph
from graphagent.agents import GraphAgent, Invocation, LLMAgent, ParallelAgent, RunOptions, Services
from graphagent.agents.agent import Agent
from graphagent.agents.model import ModelRequest
from graphagent.ledger import SessionKey, keys_match
from graphagent.messages import Message
from graphagent.models import ScriptedModel
from processors import SessionProjector
from runner import Runner
from runner.sessions import InMemorySessions

pytestmark = pytest.mark.anyio
KEY = SessionKey(APP, "ann", "s")


class Looking:
    """A graph of one node that looks at the messages it starts with."""

    def __init__(self, name: str) -> None:
        self.seen: list[tuple[Message, ...]] = []
        builder = StateGraph(MessagesState).add_node("look", self._look).add_edge(START, "look").add_edge("look", END)
        self.agent = GraphAgent(name, builder.compile())

    def _look(self, state: MessagesState) -> dict[str, list[Message]]:
        self.seen.append(tuple(state.messages))
        return {"messages": [Message.assistant("done")]}


async def told(agent: Agent, random: Random, projector: SessionProjector) -> list[str]:
    """The events that an agent tells, run on a random session of its own copy."""
    invocation = Invocation(
        agent,
        Message.user("app|now"),
        random_session(random),
        id="i",
        request_id="r",
        branch="bot",
        filter_key=APP,
        services=Services(projector=projector),
    )
    return [event.text async for event in agent.run(invocation)]


@pytest.mark.parametrize("start", range(0, 200, 50))
async def test_the_graph_and_the_model_get_one_projection(start: int) -> None:
    """On 200 random sessions, under random policies, the first `messages` of a GraphAgent are those of an LLMAgent's
    request."""
    sizes = set()
    for seed in range(start, start + 50):
        projector = random_projector(Random(seed))
        looking, model = Looking("bot"), ScriptedModel(["done"])
        for agent in (looking.agent, LLMAgent("bot", model)):
            assert "done" in await told(agent, Random(seed), projector)
        assert looking.seen == [model.requests[0].messages], seed
        assert faults(looking.seen[0]) == []
        sizes.add(len(looking.seen[0]))
    assert len(sizes) > 5  # the sessions were not all alike


async def filled(seed: int) -> InMemorySessions:
    """A service with a random session, some of whose events are of branches `app/a` and `app/b`."""
    sessions = InMemorySessions()
    await sessions.create(*KEY)
    for event in random_events(Random(seed)):
        await sessions.append(KEY, event)
    return sessions


@pytest.mark.parametrize("start", range(0, 60, 20))
async def test_branches_see_their_own_and_their_ancestors_events(start: int) -> None:
    """Parallel branches `app/a` and `app/b`, two turns long, after a random history of both: a graph and a model see
    events of their own key, above and below it, and of no sibling; and all of those that are well formed."""
    for seed in range(start, start + 20):
        sessions = await filled(seed)
        model, looking = ScriptedModel(lambda request: "app/a|new"), Looking("b")
        both = ParallelAgent("bot", [LLMAgent("a", model), looking.agent])
        async with Runner(APP, both, sessions=sessions) as runner:
            for turn in ("app|first", "app|second"):
                assert await runner.run_text("ann", "s", turn) is not None
        for key, requests in (("app/a", [r.messages for r in model.requests]), ("app/b", looking.seen)):
            assert len(requests) == 2
            for messages, asked in zip(requests, ("app|first", "app|second"), strict=True):
                assert faults(messages) == []
                assert [m.text for m in messages].count(asked) == 1
                strangers = [k for m in messages for k in keys_in(m) if not keys_match(k, key)]
                assert strangers == [], (seed, key)
        assert any("app/a|new" in message.text for message in model.requests[1].messages)
        assert not any("app/a|new" in message.text for message in looking.seen[1])


def keys_in(message: Message) -> list[str]:
    """The filter keys that a message's text tells of: it may be several that were retold in one."""
    words = message.text.replace("\n", " ").split()
    return [word.partition("|")[0] for word in words if "|" in word]


async def test_a_run_may_choose_its_branch() -> None:
    """Two runs in one session with keys `app/a` and `app/b`: neither model hears of the other's turn."""
    model = ScriptedModel(lambda request: f"re {request.messages[-1].text}")
    async with Runner(APP, LLMAgent("bot", model)) as runner:
        for turn in (1, 2):
            for key in ("app/a", "app/b"):
                await runner.run_text("ann", "s", f"{key} {turn}", RunOptions(filter_key=key))
        assert texts(model.requests[-2]) == ["app/a 1", "re app/a 1", "app/a 2"]
        assert texts(model.requests[-1]) == ["app/b 1", "re app/b 1", "app/b 2"]
        await runner.run_text("ann", "s", "all", RunOptions(filter_key=APP))
    assert len(model.requests[-1].messages) == 9


def texts(request: ModelRequest) -> list[str]:
    """What a request holds, as texts."""
    return [message.text for message in request.messages]
