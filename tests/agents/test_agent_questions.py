"""Questions inside children: at any depth they are those of the root, and answers given there reach who asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.agent_runs import Talk, asked, words

from graphagent import (
    END,
    GraphAgent,
    LLMAgent,
    MemoryCheckpoints,
    Message,
    MessagesState,
    NodeContext,
    ParallelAgent,
    StateGraph,
    tool,
)
from graphagent.agents import AgentTool, Invocation
from graphagent.errors import AnswerError, InterruptedRunError
from graphagent.ledger import Event
from graphagent.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio
WIPED: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_wiped() -> None:
    WIPED.clear()


@tool(needs_approval=True)
def wipe(disk: str) -> str:
    """Wipe a disk."""
    WIPED.append(disk)
    return f"{disk} is empty"


def wiper(name: str = "wiper", *disks: str, **options: Any) -> tuple[LLMAgent, ScriptedModel]:
    """An agent that wipes disks one after the other, each after approval."""
    items: list[Any] = [{"tool_calls": [{"name": "wipe", "arguments": {"disk": d}}]} for d in disks or ("sda",)]
    model = ScriptedModel([*items, f"{name} is done"])
    return LLMAgent(name, model, tools=[wipe], **options), model


def around(name: str, inner: Any, **options: Any) -> GraphAgent:
    """An agent whose graph runs another one in its only node."""
    graph = StateGraph(MessagesState, name=name).add_agent_node(inner.name, inner).set_entry_point(inner.name)
    return GraphAgent(name, graph.set_finish_point(inner.name).compile(), **options)


@pytest.mark.parametrize("run_by", ["superstep", "eager"])
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
async def test_e083_c057_a_question_at_any_depth(open_store: Any, depth: int, run_by: str, lineage: str) -> None:
    """It surfaces at the root with its path; the answer given there reaches who asked, in another process too. The
    models are not asked again, and the tool runs once, in the agent that wanted it."""
    agent: Any
    agent, model = wiper(options={"engine": run_by})
    for level in range(depth):
        agent = around(f"level{level}", agent, engine=run_by)
    async with open_store() as store:
        talk = Talk(agent, store, key=("app", "ann", lineage))
        events = await talk.say("wipe it")
        (key,) = asked(events)
        assert key == "approve:wipe"
        assert events[-1].interrupts[0]["path"].count("@") == depth
        assert WIPED == []
    async with open_store() as store:
        again = Talk(agent, store, talk.sessions, key=talk.key)
        events = await again.answer(**{"approve:wipe": True})
        assert words(events) == [("wiper", "sda is empty"), ("wiper", "wiper is done")]
    assert WIPED == ["sda"]
    assert len(model.requests) == 2
    assert [event.text for event in (await talk.session()).events if event.text] == [
        "wipe it",
        "sda is empty",
        "wiper is done",
    ]


async def test_c056_two_questions_one_after_the_other() -> None:
    """Each answer leads to the next model call; the second question of a child is answered like the first."""
    inner, model = wiper("wiper", "sda", "sdb")
    talk = Talk(around("root", inner), MemoryCheckpoints())
    assert asked(await talk.say("go")).keys() == {"approve:wipe"}
    assert asked(await talk.answer(**{"approve:wipe": True})).keys() == {"approve:wipe"}
    assert words(await talk.answer(**{"approve:wipe": True}))[-1] == ("wiper", "wiper is done")
    assert WIPED == ["sda", "sdb"]
    assert len(model.requests) == 3


async def test_c052_children_side_by_side_each_get_their_own_answer() -> None:
    """Two children ask at the same time under one key; answered by id, together or one by one, each goes on with its
    own; the other's is kept."""
    for together in (True, False):
        WIPED.clear()
        one, other = wiper("one", "sda")[0], wiper("two", "sdb")[0]
        talk = Talk(ParallelAgent("both", [one, other]), MemoryCheckpoints())
        events = await talk.say("go")
        ids = {question["prompt"]["arguments"]["disk"]: question["id"] for question in events[-1].interrupts}
        assert ids.keys() == {"sda", "sdb"}
        with pytest.raises(AnswerError, match="answer by id"):
            await talk.answer(**{"approve:wipe": True})
        if together:
            events = await talk.answer(**{ids["sda"]: True, ids["sdb"]: False})
        else:
            events = await talk.answer(**{ids["sdb"]: False})
            assert [question["id"] for question in events[-1].interrupts] == [ids["sda"]]
            events = await talk.answer(**{ids["sda"]: True})
        assert WIPED == ["sda"]
        assert (await talk.state()).node_responses == {"one": "one is done", "two": "two is done"}


async def test_a_question_inside_an_agent_that_is_a_tool() -> None:
    """An agent called as a tool asks as a part of its caller, goes on where it stopped, and is called once."""
    inner, model = wiper()
    outer = ScriptedModel([{"tool_calls": [{"name": "wiper", "arguments": {"request": "wipe"}}]}, "All done."])
    talk = Talk(around("root", LLMAgent("boss", outer, tools=[AgentTool(inner)])), MemoryCheckpoints())
    events = await talk.say("go")
    assert asked(events).keys() == {"approve:wipe"}
    events = await talk.answer(**{"approve:wipe": True})
    assert events[-1].text == "All done."
    assert outer.requests[1].messages[-1].text == "wiper is done"
    assert (len(model.requests), len(outer.requests), WIPED) == (2, 2, ["sda"])
    assert {author for author, _ in words(events)} == {"boss"}


class Custom:
    """An agent that is no graph, and runs others in turn."""

    description = ""

    def __init__(self, name: str, *inner: Any) -> None:
        self.name = name
        self.sub_agents = inner

    async def run(self, invocation: Invocation) -> AsyncIterator[Event]:
        for agent in self.sub_agents:
            async for event in agent.run(invocation.child(agent, invocation.message)):
                yield event


async def test_a_question_behind_an_agent_that_is_no_graph() -> None:
    """Through one that only passes events on, questions surface all the same; what had ended is not run again."""
    first, begun = LLMAgent("first", ScriptedModel(["hello"])), wiper()
    talk = Talk(around("root", Custom("custom", first, begun[0])), MemoryCheckpoints())
    assert asked(await talk.say("go")).keys() == {"approve:wipe"}
    events = await talk.answer(**{"approve:wipe": True})
    assert words(events)[-1] == ("wiper", "wiper is done")
    assert WIPED == ["sda"]
    assert [event.text for event in (await talk.session()).events if event.text] == [
        "go",
        "hello",
        "sda is empty",
        "wiper is done",
    ]


async def test_a_question_of_an_agent_elsewhere() -> None:
    """An agent that keeps its own state asks by an event; it is run again with the answers, once."""
    runs: list[Any] = []

    class Remote(Custom):
        async def run(self, invocation: Invocation) -> AsyncIterator[Event]:
            runs.append(invocation.options.answers)
            if invocation.options.answers is None:
                yield Event(author=self.name, interrupts=({"id": "r1", "key": "go?", "schema": {"type": "boolean"}},))
            else:
                yield Event(author=self.name, messages=(Message.assistant(f"went {invocation.options.answers}"),))

    talk = Talk(around("root", Remote("remote")), MemoryCheckpoints())
    assert asked(await talk.say("start")).keys() == {"go?"}
    assert (await talk.answer(**{"go?": True}))[-1].text == "went {'r1': True}"
    assert runs == [None, {"r1": True}]


async def test_new_input_while_a_question_is_open() -> None:
    """It is refused, unless the caller gives the run up; then the next turn is a fresh one."""
    agent, _ = wiper()
    talk = Talk(agent, MemoryCheckpoints())
    await talk.say("wipe it")
    with pytest.raises(InterruptedRunError, match="approve:wipe"):
        await talk.say("something else")
    model_says = (await talk.say("never mind", abandon=True))[-1]
    assert model_says.text == "wiper is done"
    assert WIPED == []
    with pytest.raises(AnswerError):
        await talk.answer(**{"approve:wipe": True})


async def test_a_function_node_asks() -> None:
    """Nodes of an agent's graph ask as ever; the answer's type is told with the question."""

    async def ask(state: MessagesState, ctx: NodeContext) -> dict[str, Any]:
        return {"last_response": f"you said {await ctx.interrupt('colour', 'Which?', str)}"}

    graph = StateGraph(MessagesState).add_node("ask", ask).set_entry_point("ask").add_edge("ask", END).compile()
    talk = Talk(GraphAgent("asker", graph), MemoryCheckpoints())
    question = (await talk.say("hi"))[-1].interrupts[0]
    assert (question["prompt"], question["schema"]) == ("Which?", {"type": "string"})
    last = (await talk.answer(colour="red"))[-1]
    assert last.kind == "completion"
    assert last.extensions["state"]["last_response"] == "you said red"
