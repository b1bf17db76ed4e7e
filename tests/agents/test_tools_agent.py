"""An agent as a tool: its answer, its failures, its questions, and its own history."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.tooling import Rounds, asking, call, ran, texts

from graphagent import END, Executor, Message, NodeContext, StateGraph, append
from graphagent.agents.agent_tool import AgentTool
from graphagent.agents.invocation import Invocation, RunOptions
from graphagent.agents.tool_options import ToolOptions
from graphagent.agents.tool_runner import run_calls
from graphagent.engine.child import run_within, space_within
from graphagent.ledger import ErrorInfo, Event

pytestmark = pytest.mark.anyio


class Speaker:
    """An agent that says what it is told to."""

    def __init__(self, name: str, *events: Event) -> None:
        self.name = name
        self.description = f"The agent {name}."
        self.sub_agents: tuple[Any, ...] = ()
        self.events = events
        self.seen: list[Invocation] = []

    async def run(self, invocation: Invocation) -> AsyncIterator[Event]:
        self.seen.append(invocation)
        for event in self.events:
            yield event


def says(text: str, **fields: Any) -> Event:
    """An agent's words."""
    return Event(author="x", messages=(Message.assistant(text),), **fields)


@pytest.mark.parametrize(
    ("events", "options", "told"),
    [
        ([says("looking"), says("found")], {}, "found"),
        ([says("looking"), says("found")], {"whole": True}, "looking\nfound"),
        ([], {}, ""),
        (
            [says("half"), Event(error=ErrorInfo(type="api_error", message="no key"))],
            {},
            "Error: tool 'helper' failed: agent 'helper' failed: api_error: no key",
        ),
        (
            [Event(interrupts=({"id": "q1", "key": "sure"},))],
            {},
            "Error: tool 'helper' failed: agent 'helper' asks 'sure', and nobody can answer; run it as an agent node",
        ),
    ],
    ids=["last", "whole", "nothing", "error", "asks"],
)
async def test_what_an_agent_answers(events: list[Event], options: Any, told: str) -> None:
    """The last thing that it said, or all of it; an error that ends it is the tool's."""
    helper = Speaker("helper", *events)
    assert AgentTool(helper).spec.description == "The agent helper."
    assert await texts([AgentTool(helper, **options)], call("helper", request="go")) == [told]
    assert helper.seen[0].message == Message.user("go")


async def test_a_request_of_its_own_shape() -> None:
    """With a schema of its own the agent gets the arguments as JSON; without one, anything but a request is wrong."""
    helper = Speaker("helper", says("ok"))
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    await ran([AgentTool(helper, parameters=schema)], call("helper", city="Köln"))
    assert helper.seen[0].message == Message.user('{"city": "Köln"}')
    told = await texts([AgentTool(helper)], call("helper", city="x"))
    assert told == ["Error: tool 'helper' takes one argument: 'request', a text"]


@pytest.mark.parametrize("own", [True, False])
async def test_whose_history_it_sees(own: bool) -> None:
    """Its key is one of its own, so that neither sees the other's events, or one below the caller's. What was said for
    the caller's run alone is not handed on."""
    helper = Speaker("helper", says("ok"))
    options = RunOptions(history=(Message.user("old"),), instruction="be brief", tool_filter=lambda name: False)
    outer = Invocation(Speaker("outer"), None, branch="outer", filter_key="app", options=options)
    rounds = Rounds([AgentTool(helper, own_history=own)])
    calls = [call("helper", "1", request="a"), call("helper", "2", request="b")]
    (await rounds.run(*calls, context=outer)).unwrap()
    one, two = helper.seen
    assert one.filter_key.startswith("helper-" if own else "app/helper-")
    assert one.filter_key != two.filter_key
    assert one.branch.startswith("outer/helper-")
    assert one.branch.endswith("/helper")
    assert (one.parent_id, one.agent) == (outer.id, helper)
    assert (one.options.history, one.options.instruction, one.options.tool_filter) == ((), None, None)


async def test_its_text_goes_out_as_it_comes() -> None:
    """With `stream` its pieces are those of the call."""
    helper = Speaker("helper", Event(partial=True, delta="a"), Event(partial=True, delta="b"), says("ab"))
    graph = Rounds([AgentTool(helper, stream=True)]).graph
    async with Executor(graph).stream(asking([call("helper", request="x")]), modes=("custom",)) as stream:
        events = [event async for event in stream]
    assert [(event.kind, event.data["delta"]) for event in events] == [("tool_delta", "a"), ("tool_delta", "b")]


class Steps(BaseModel):
    log: Annotated[list[str], append] = []


class Asker:
    """An agent with a graph of its own, which works, asks twice, and works again. `inner`: asked through a tool."""

    def __init__(self, name: str, done: Counter[str], inner: Any = None) -> None:
        self.name = name
        self.description = ""
        self.sub_agents: tuple[Any, ...] = ()
        self.inner = inner

        async def work(state: Steps) -> dict[str, Any]:
            done[name] += 1
            return {"log": ["worked"]}

        async def ask(state: Steps, ctx: NodeContext) -> dict[str, Any]:
            day = await ctx.interrupt(f"{name} day", None, str)
            return {"log": [day, await ctx.interrupt(f"{name} hour", None, int) and "hour"]}

        graph = StateGraph(Steps).add_node("work", work).add_node("ask", ask if inner is None else self.through)
        self.graph = graph.set_entry_point("work").add_edge("work", "ask").add_edge("ask", END).compile()

    async def through(self, state: Steps, ctx: NodeContext) -> dict[str, Any]:
        asked = [call(self.inner.spec.name, request="x")]
        done = await run_calls(asked, [self.inner], ctx)
        return {"log": [done.messages[0].text]}

    async def run(self, invocation: Invocation) -> AsyncIterator[Event]:
        ctx = invocation.node
        assert ctx is not None

        async def given() -> dict[str, Any]:
            return {}

        end = await run_within(ctx, self.graph, space_within(ctx, self.name), given)
        assert end.stop.kind == "completed"
        yield says(" ".join(end.state.log))


@pytest.mark.parametrize("parallel", [False, True], ids=["in turn", "parallel"])
@pytest.mark.parametrize("depth", [1, 3])
async def test_questions_at_any_depth_are_answered_from_the_root(
    open_store: Any, lineage: str, parallel: bool, depth: int
) -> None:
    """Two agents, called side by side, ask through any number of tools in between: the questions surface at the root,
    are answered there in any order and any process, and nothing that was done is done again."""
    done: Counter[str] = Counter()

    def nested(name: str) -> AgentTool:
        tool = AgentTool(Asker(name, done))
        for level in range(1, depth):
            tool = AgentTool(Asker(f"{name}{level}", done, tool))
        return tool

    tools = [nested("a"), nested("b")]
    rounds = Rounds(tools, ToolOptions(parallel=parallel))
    calls = [call(tool.spec.name, request="x") for tool in tools]
    async with open_store() as store:
        result = await Executor(rounds.graph, store).run(asking(calls), lineage=lineage)
        assert [item.key for item in result.interrupts] == (["a day", "b day"] if parallel else ["a day"])
    answers = {"a day": "mon", "a hour": 1, "b day": "tue", "b hour": 2}
    for _ in range(6):
        if result.status != "interrupted":
            break
        last = result.interrupts[-1]
        async with open_store() as store:
            result = await Executor(rounds.graph, store).resume(lineage, {last.id: answers[last.key]})
    assert result.status == "completed", result.error
    told = [message.text for message in rounds.rounds[-1].messages]
    outer = "worked " * (depth - 1)
    assert told == [f"{outer}worked mon hour", f"{outer}worked tue hour"]
    assert set(done.values()) == {1}
    assert len(done) == 2 * depth


async def test_one_agent_called_twice_in_a_round(store: Any, lineage: str) -> None:
    """Two calls of one agent are two runs of it, each with its own answers."""
    done: Counter[str] = Counter()
    rounds = Rounds([AgentTool(Asker("a", done))], ToolOptions(parallel=True))
    executor = Executor(rounds.graph, store)
    result = await executor.run(asking([call("a", "1", request="x"), call("a", "2", request="y")]), lineage=lineage)
    for day in ("mon", "tue"):
        result = await executor.resume(lineage, {result.interrupts[0].id: day})
    result = await executor.resume(lineage, {item.id: 1 for item in result.interrupts})
    while result.status == "interrupted":
        result = await executor.resume(lineage, {item.id: 1 for item in result.interrupts})
    assert sorted(m.text for m in rounds.rounds[-1].messages) == ["worked mon hour", "worked tue hour"]
    assert done == Counter(a=2)
