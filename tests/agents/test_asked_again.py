"""What a stored activation asked its model, made again: the very request that the model got, on every kind of store."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from graphagent import (
    Executor,
    LLMAgent,
    Message,
    MessagesState,
    NodeContext,
    Send,
    StateGraph,
    append,
    tool,
)
from graphagent.agents import AgentTool, CallLimits, GenerationConfig, ModelCallbacks, ModelRequest
from graphagent.agents.asked_again import request_of
from graphagent.agents.stored_calls import calls_of
from graphagent.agents.stored_request import StoredRequest
from graphagent.engine.control import attached
from graphagent.engine.hooks import NodeCallbacks
from graphagent.errors import CheckpointNotFound, UsageError
from graphagent.graph.compiled import CompiledGraph
from graphagent.models import ScriptedModel

pytestmark = pytest.mark.anyio


@tool
def look(what: str) -> str:
    """Look at something."""
    if what == "nothing":
        raise ValueError("there is nothing")
    return f"seen {what}"


def looks(*things: str) -> dict[str, Any]:
    """An answer that looks at things."""
    return {"tool_calls": [{"name": "look", "arguments": {"what": thing}} for thing in things]}


def talking(model: ScriptedModel, instruction: Any = "Be brief.", **options: Any) -> CompiledGraph:
    """A model with a tool."""
    return (
        StateGraph(MessagesState, name="talk")
        .add_llm_node("ask", model, instruction=instruction, tools=[look], **options)
        .add_tools_node("tools", [look])
        .set_entry_point("ask")
        .add_tools_conditional_edges("ask", "tools")
        .add_edge("tools", "ask")
        .compile()
    )


def alone(model: ScriptedModel, state: type = MessagesState, **options: Any) -> CompiledGraph:
    """A model."""
    builder = StateGraph(state).add_llm_node("ask", model, **options).set_entry_point("ask")
    return builder.set_finish_point("ask").compile()


async def every(executor: Executor, lineage: str, **where: Any) -> list[StoredRequest]:
    """The requests of all activations of `ask`, oldest first, found from the row after each."""
    rows = [row for row in await executor.history(lineage, **where) if "ask" in row.nodes]
    return [await request_of(executor, lineage, row.parent, "ask", **where) for row in reversed(rows)]


async def test_requests_are_what_the_model_got(store: Any, engine: Any, lineage: str) -> None:
    """Before and after each step, by node and by activation, over two turns with rounds of tools: the very request, the
    answer that came, and the calls that followed with their results."""
    model = ScriptedModel([looks("a", "nothing"), looks("b"), "done", "and again"])
    config = GenerationConfig(temperature=0.5)
    executor = Executor(talking(model, config=config), store, engine)
    await executor.run({"user_input": "go"}, lineage=lineage)
    await executor.run({"user_input": "more"}, lineage=lineage)
    found = await every(executor, lineage)
    assert [one.requests for one in found] == [(request,) for request in model.requests]
    assert all(one.exact and not one.doubts for one in found)
    assert [one.answer and one.answer.text for one in found] == ["", "", "done", "and again"]
    assert [[(call.name, call.status, call.result) for call in one.calls] for one in found] == [
        [("look", "done", "seen a"), ("look", "failed", "Error: tool 'look' failed: ValueError: there is nothing")],
        [("look", "done", "seen b")],
        [],
        [],
    ]
    newest = await request_of(executor, lineage, None, "ask")
    assert newest == found[-1]
    for one in found:
        assert await request_of(executor, lineage, one.ended, "ask") == one
        assert await request_of(executor, lineage, None, one.activation) == one
    assert found[0].calls == await calls_of(executor, lineage, found[0].ended, "tools")


async def test_a_request_before_it_is_made(store: Any, lineage: str) -> None:
    """At a breakpoint before the node there is the request that it will make, and no answer."""
    model = ScriptedModel(["hello"])
    executor = Executor(alone(model, instruction="You know {last_response?}.", interrupt_before=True), store)
    await executor.run({"user_input": "hi"}, lineage=lineage)
    before = await request_of(executor, lineage, None, "ask")
    assert (before.ended, before.turns, before.answer, before.usage) == ("", (), None, ())
    assert before.parts["answer"].doubt == "it has not answered yet"
    await executor.resume(lineage)
    assert before.requests == tuple(model.requests)
    assert before.exact
    after = await request_of(executor, lineage, None, "ask")
    assert after.requests == before.requests
    assert after.answer is not None
    assert after.answer.id == after.answer_id


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"one_shot_messages_by_node": {"ask": [Message.user("only you")]}, "user_input": "x"}, {}),
        ({"one_shot_messages": [Message.user("only this")]}, {}),
        (
            {"messages": [Message.system("head"), Message.user("old")], "user_input": "new"},
            {"instruction": "Be brief."},
        ),
        (
            {"messages": [Message.user("hi")]},
            {"limits": CallLimits(model_calls=1, final="The last time."), "tools": [look]},
        ),
        ({"messages": [Message.assistant("", tool_calls=({"id": "c", "name": "x"},))]}, {}),
        ({"messages": [Message.user([{"type": "text", "text": "parts"}])]}, {"config": GenerationConfig(max_tokens=5)}),
    ],
    ids=["own one-shot", "one-shot", "replaced", "last call", "unpaired", "parts"],
)
async def test_each_way_of_asking(given: Any, options: Any, store: Any, lineage: str) -> None:
    """Whatever a node makes its request of, the same comes out from the state before it."""
    model = ScriptedModel(["ok"])
    executor = Executor(alone(model, **options), store)
    await executor.run(given, lineage=lineage)
    found = await request_of(executor, lineage, None, "ask")
    assert (found.requests, found.exact) == (tuple(model.requests), True)


async def test_an_answer_that_is_asked_for_again(store: Any, lineage: str) -> None:
    """Of an answer that didn't satisfy its schema both requests are there, the second with what was wrong."""

    class Verdict(BaseModel):
        ok: bool

    usage = {"usage": None}
    model = ScriptedModel(["perhaps", '{"ok": true}'], **usage)
    executor = Executor(alone(model, output_schema=Verdict), store)
    await executor.run({"user_input": "well?"}, lineage=lineage)
    found = await request_of(executor, lineage, None, "ask")
    assert found.requests == tuple(model.requests)
    assert [turn.reply.message.text for turn in found.turns] == ["perhaps", '{"ok": true}']
    assert found.request is not None
    assert found.request.output_schema == Verdict.model_json_schema()


async def test_side_by_side(store: Any, engine: Any, lineage: str) -> None:
    """Of workers that a fan-out runs each has its own request, with its overlay; which one has to be said."""

    class State(MessagesState):
        topic: str = ""
        topics: Annotated[list[str], append] = []

    model = ScriptedModel(lambda request: f"on {request.messages[0].text}")
    graph = (
        StateGraph(State)
        .add_node("split", lambda s: [Send("ask", {"topic": t}) for t in s.topics], inline=True, destinations=["ask"])
        .add_llm_node("ask", model, instruction="Write of {topic}.")
        .set_entry_point("split")
        .set_finish_point("ask")
        .compile()
    )
    executor = Executor(graph, store, engine)
    await executor.run({"topics": ["a", "b", "c"], "messages": [Message.user("go")]}, lineage=lineage)
    [split] = [row for row in await executor.history(lineage) if row.nodes == ("split",)]
    with pytest.raises(UsageError, match=r"due 3 times.*'ask\[0\]', 'ask\[1\]', 'ask\[2\]'"):
        await request_of(executor, lineage, split.seq, "ask")
    found = [await request_of(executor, lineage, split.seq, "ask", branch=f"ask[{n}]") for n in range(3)]
    assert [one.instruction for one in found] == ["Write of a.", "Write of b.", "Write of c."]
    assert [one.answer and one.answer.text for one in found] == ["on Write of a.", "on Write of b.", "on Write of c."]
    if engine == "superstep":
        assert {one.requests[0].messages for one in found} == {request.messages for request in model.requests}
    named = await request_of(executor, lineage, None, found[1].activation)
    assert named.instruction == "Write of b."


async def test_agents_inside_a_graph(store: Any, lineage: str) -> None:
    """In the frame of an agent that a node runs, and of one that is a tool; a frame that isn't there is said."""
    inner = ScriptedModel(["inner answer"])
    helper = ScriptedModel(["helped"])
    call = {"tool_calls": [{"name": "helper", "arguments": {"request": "help me"}}]}
    outer = ScriptedModel([call, "outer answer"])
    graph = (
        StateGraph(MessagesState)
        .add_agent_node("sub", LLMAgent("sub", inner, "Inner."))
        .add_agent_node("top", LLMAgent("top", outer, "Outer.", [AgentTool(LLMAgent("helper", helper, "Help."))]))
        .set_entry_point("sub")
        .add_edge("sub", "top")
        .set_finish_point("top")
        .compile()
    )
    executor = Executor(graph, store)
    result = await executor.run({"user_input": "go"}, lineage=lineage)
    assert result.status == "completed", result.error
    spaces = [space for space in await store.namespaces(lineage) if space]
    assert len(spaces) == 3
    got = {}
    for space in spaces:
        rows = [row for row in await executor.history(lineage, namespace=space) if "model" in row.nodes]
        seen = [await request_of(executor, lineage, row.seq, "model", namespace=space) for row in reversed(rows)]
        got[seen[0].instruction] = [one.requests[0] for one in seen]
        assert all(one.exact for one in seen)
    assert got == {"Inner.": inner.requests, "Outer.": outer.requests, "Help.": helper.requests}
    with pytest.raises(CheckpointNotFound, match=r"no rows in namespace 'gone@0\.0'; it has the frames"):
        await request_of(executor, lineage, None, "model", namespace="gone@0.0")


async def test_what_can_not_be_exact_is_said(store: Any, lineage: str) -> None:
    """A function that makes the instruction, one that asks for the time, callbacks that may change the request, tools
    that can't be listed any more."""
    model = ScriptedModel(["ok"] * 9)

    async def fetched() -> str:
        return "from elsewhere"

    async def recorded(state: Any, ctx: NodeContext) -> str:
        return str(await ctx.step("fetch", fetched))

    class Gone:
        name = ""
        there = True

        async def tools(self) -> Any:
            if not self.there:
                raise ConnectionError("the server is gone")
            return []

        async def aclose(self) -> None:
            """Nothing is open."""

    async def changes(request: ModelRequest, ctx: NodeContext) -> None:
        """Changes nothing, this time."""

    sets = Gone()
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"instruction": recorded}, "instruction", "a function made it"),
        ({"instruction": lambda s, ctx: f"It is {ctx.clock.now():.0f}."}, "instruction", "asks for the time"),
        ({"callbacks": [ModelCallbacks(before=changes)]}, "hooks", "callbacks before the call"),
        ({"tools": [sets]}, "tools", "the server is gone"),
    ]
    for number, (options, part, doubt) in enumerate(cases):
        sets.there = True
        executor = Executor(alone(model, **options), store)
        await executor.run({"user_input": "hi"}, lineage=f"{lineage}-{number}")
        sets.there = False
        found = await request_of(executor, f"{lineage}-{number}", None, "ask")
        assert not found.exact
        assert doubt in found.doubts[part]
        assert [m for m in found.requests[0].messages if m.role != "system"] == [Message.user("hi")]
        if options.get("instruction") is recorded:
            assert found.requests[0] == model.requests[-1]


async def test_no_answer_in_the_ledger(store: Any, lineage: str) -> None:
    """Where a cache or a callback gave the node's result nobody says that the model was asked; a row of another version
    of the graph says so."""
    model = ScriptedModel(["ok"])

    async def instead(ctx: NodeContext, state: Any) -> dict[str, Any]:
        return {"messages": [Message.assistant("from a callback")]}

    builder = StateGraph(MessagesState).add_llm_node("ask", model).set_entry_point("ask").set_finish_point("ask")
    executor = Executor(builder.with_node_callbacks(NodeCallbacks(before=instead)).compile(), store)
    await executor.run({"user_input": "hi"}, lineage=lineage)
    found = await request_of(executor, lineage, None, "ask")
    assert model.requests == []
    assert (found.turns, found.answer, found.exact) == ((), None, False)
    assert "is of a cache or a callback" in found.doubts["hooks"]
    other = StateGraph(MessagesState).add_llm_node("ask", model).add_node("more", lambda state: None, inline=True)
    changed = other.set_entry_point("ask").add_edge("ask", "more").set_finish_point("more").compile()
    found = await request_of(Executor(changed, store), lineage, None, "ask")
    assert found.doubts["graph"] == "the row was written by another version of the graph"


async def test_nothing_is_done_again(store: Any, lineage: str) -> None:
    """An instruction whose effect or question has no record is not made again: the rest is there, and nothing was
    written."""
    done: list[str] = []

    async def effect() -> str:
        done.append("once")
        return "x"

    async def steps(state: Any, ctx: NodeContext) -> str:
        return str(await ctx.step("fetch", effect))

    async def asks(state: Any, ctx: NodeContext) -> str:
        return str(await ctx.interrupt("tone", "which tone?", str))

    for number, instruction in enumerate((steps, asks)):
        name = f"{lineage}-{number}"
        graph = alone(ScriptedModel(["ok"]), instruction=instruction, interrupt_before=True)
        executor = Executor(graph, store)
        await executor.run({"user_input": "hi"}, lineage=name)
        before = await executor.history(name)
        found = await request_of(executor, name, None, "ask")
        assert found.parts["instruction"].known == "unknown"
        assert found.requests[0].messages == (Message.user("hi"),)
        assert (done, await executor.history(name)) == ([], before)
        assert await store.effects(name, "", before[0].seq) == []


async def test_misuse_is_said(store: Any, lineage: str) -> None:
    """A node that isn't there, one that asks no model, one that has not run, a checkpoint that isn't there."""
    executor = Executor(talking(ScriptedModel(["ok"])), store)
    await executor.run({"user_input": "hi"}, lineage=lineage)
    with pytest.raises(UsageError, match="'aks' is not a node of graph 'talk': did you mean 'ask'"):
        await request_of(executor, lineage, None, "aks")
    with pytest.raises(CheckpointNotFound, match="'tools' is not due at checkpoint"):
        await request_of(executor, lineage, None, "tools")
    with pytest.raises(UsageError, match="node 'ask' runs no tools: it is of kind 'llm'"):
        await calls_of(executor, lineage, None, "ask")
    with pytest.raises(CheckpointNotFound, match="no checkpoint '77'"):
        await request_of(executor, lineage, 77, "ask")


async def test_calls_in_each_state(store: Any, lineage: str) -> None:
    """A round in which a person is asked: what is due, what waits, what came of an unknown tool, what was changed."""

    @tool(needs_approval=True)
    def remove(path: str) -> str:
        """Remove a file."""
        return f"removed {path}"

    wanted = [("remove", {"path": "/a"}), ("look", {"what": "x"}), ("nope", {})]
    answer = {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in wanted]}
    model = ScriptedModel([answer, "done"])
    graph = (
        StateGraph(MessagesState)
        .add_llm_node("ask", model, tools=[remove, look])
        .add_tools_node("tools", [remove, look])
        .set_entry_point("ask")
        .add_tools_conditional_edges("ask", "tools")
        .add_edge("tools", "ask")
        .compile()
    )
    executor = Executor(graph, store)
    await executor.run({"user_input": "go"}, lineage=lineage)

    async def statuses() -> list[tuple[str, str]]:
        return [(call.name, call.status) for call in await calls_of(executor, lineage, None, "tools")]

    assert await statuses() == [("remove", "asked"), ("look", "due"), ("nope", "due")]
    await executor.resume(lineage, {"approve:remove": {"approved": True, "arguments": {"path": "/b"}}})
    assert await statuses() == [("remove", "done"), ("look", "done"), ("nope", "refused")]
    [removed, *_] = await calls_of(executor, lineage, None, "tools")
    assert removed.arguments == {"path": "/a"}
    assert removed.used == {"path": "/b"}
    assert removed.result == "removed /b"


async def test_a_debugger_gets_the_request_itself(lineage: str) -> None:
    """While a control is attached it is told each request as it goes out, with the activation that asks."""

    class Noted:
        def __init__(self) -> None:
            self.asked: list[tuple[str, Any]] = []

        async def before(self, frame: Any, step: Any) -> None:
            """Let it go on."""

        def after(self, *_: Any) -> None:
            """Nothing."""

        async def ended(self, frame: Any, stop: Any) -> None:
            """Nothing."""

        def model_asked(self, frame: Any, position: int, request: Any) -> None:
            self.asked.append((frame.activation_id(position), request))

    model, control = ScriptedModel([looks("a"), "done"]), Noted()
    with attached(control):  # type: ignore[arg-type]
        await Executor(talking(model)).run({"user_input": "go"}, lineage=lineage)
    assert control.asked == [("ask#1", model.requests[0]), ("ask#3", model.requests[1])]
