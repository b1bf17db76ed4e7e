"""A run over HTTP: what is refused before any event, and what a stream says of text, tools, questions and ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from agui_rules import Client
from agui_world import GatedModel, body, kinds, of, outcome, up

from graphagent.agents.function_tool import tool
from graphagent.agents.invocation import Invocation
from graphagent.agents.llm_agent import LLMAgent
from graphagent.agents.model import ModelRequest
from graphagent.errors import ModelError
from graphagent.graph.policies import RetryPolicy
from graphagent.ledger import Event
from graphagent.messages import Message, ToolCall
from graphagent.models import ScriptedModel
from runner.servers.agui.part import AGUIServer
from runner.servers.client_tools import ClientTools

pytestmark = pytest.mark.anyio


@tool
async def look(what: str) -> str:
    """Look at something."""
    return f"seen {what}"


@tool(needs_approval=True)
async def drop(what: str) -> str:
    """Drop something."""
    return f"dropped {what}"


def answer(request: ModelRequest) -> Any:
    """Calls the tools that the last message names, with commas between; else repeats it."""
    last = request.messages[-1]
    if last.role == "tool":
        return "done"
    name, _, what = last.text.partition(" ")
    if name == "call":
        return {
            "content": "let me see",
            "tool_calls": [{"name": one, "arguments": {"what": one}} for one in what.split(",")],
        }
    return last.text


def bob(**options: Any) -> LLMAgent:
    """An agent with tools of its own and a place for those of clients."""
    return LLMAgent("bob", ScriptedModel(answer, pieces=4), tools=[look, drop, ClientTools()], **options)


def says(item: Any, **options: Any) -> LLMAgent:
    """An agent whose model says one thing again and again."""
    return LLMAgent("bob", ScriptedModel(lambda request: item, pieces=1), **options)


class Told:
    """An agent that tells events, those of a list or of a function."""

    name, description, sub_agents = "told", "", ()

    def __init__(self, *events: Event) -> None:
        self.events = events

    async def run(self, invocation: Invocation) -> AsyncIterator[Event]:
        """Its events."""
        for event in self.events:
            yield event


MINE = [{"name": "mine", "description": "the client's", "parameters": {"type": "object", "properties": {}}}]


def user_says(content: Any) -> dict[str, Any]:
    """The messages of a request."""
    return {"messages": [{"id": "a", "role": "user", "content": content}]}


@pytest.mark.parametrize(
    ("sent", "status", "told"),
    [
        ({"messages": []}, 400, "no messages"),
        ({"messages": [{"id": "a", "role": "assistant", "content": "x"}]}, 400, "'assistant'"),
        ({"messages": [{"id": "a", "role": "user", "content": ""}]}, 400, "empty"),
        ({"messages": [{"id": "a", "role": "user", "content": []}]}, 400, "no parts"),
        (user_says([{"type": "video", "source": {"type": "url", "value": "x"}}]), 400, "a video"),
        (user_says([{"type": "binary", "mimeType": "x"}]), 400, "messages.0"),
        ({"messages": [{"id": "a", "role": "nobody", "content": "x"}]}, 400, "messages.0"),
        ({"messages": [{"id": "a", "role": "tool", "content": "x", "toolCallId": "c"}]}, 400, "no call 'c' waits"),
        ({"threadId": "a/b"}, 400, "threadId"),
        ({"runId": ""}, 400, "runId"),
        ({"runId": 7}, 400, "runId"),
        ({"tools": [{"name": " ", "description": ""}]}, 400, "tool 0"),
        ({"tools": [{"name": "look", "description": ""}]}, 400, "'look' of its own"),
        ({"tools": [*MINE, *MINE]}, 400, "two tools"),
        ({"tools": [{**MINE[0], "name": "a", "parameters": {"type": "string"}}]}, 400, "'a' are no JSON schema"),
        ({"resume": [{"interruptId": "x", "status": "resolved"}]}, 400, "no question is open"),
        ({"resume": [{"interruptId": "x", "status": "odd"}]}, 400, "resume.0"),
    ],
)  # fmt: skip
async def test_case_58_a_request_that_does_not_fit_is_400(sent: dict[str, Any], status: int, told: str) -> None:
    """An empty or ill-formed request is refused with the reason, before any event, and leaves no thread behind."""
    async with up(bob()) as world:
        refused = await world.http.post("/agui", json={**body("x"), **sent})
        assert (refused.status_code, refused.headers["content-type"]) == (status, "application/json")
        assert told in refused.json()["error"]["message"]
        assert (await world.http.get("/agui/threads")).json() == {"threads": []}


async def test_case_58_other_bodies() -> None:
    """No JSON is 400, another media type 415, too many messages 413, another method 405."""
    async with up(bob()) as world:
        raw = {"content": b"{", "headers": {"content-type": "application/json"}}
        assert (await world.http.post("/agui", **raw)).status_code == 400
        assert (
            await world.http.post("/agui", content=b"{}", headers={"content-type": "text/plain"})
        ).status_code == 415
        assert (await world.post([{"id": "a", "role": "user", "content": "x"}] * 1001)).status_code == 413
        assert (await world.http.get("/agui")).status_code == 405
        assert (await world.http.post("/agui", json=[])).status_code == 400


async def test_case_60_pieces_are_not_said_again() -> None:
    """START, the pieces, END: the complete answer adds nothing, and usage stands in the end."""
    async with up(says("ab")) as world:
        events = await world.events("hi")
    assert kinds(events) == ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT",
                             "TEXT_MESSAGE_END", "RUN_FINISHED"]  # fmt: skip
    assert [event["delta"] for event in of(events, "TEXT_MESSAGE_CONTENT")] == ["a", "b"]
    assert events[0]["protocolVersion"] == "1.0"
    assert outcome(events) == "success"


async def test_case_61_an_answer_in_one_piece() -> None:
    """START, CONTENT, END, once."""
    async with up(Told(Event(messages=(Message.assistant("whole"),)))) as world:
        events = await world.events("hi")
    assert kinds(events)[1:-1] == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]


async def test_case_62_a_call_is_announced_once() -> None:
    """The same call in two events begins once."""
    call = ToolCall(id="c", name="look")
    twice = [Event(messages=(Message.assistant("", tool_calls=(call,)),)) for _ in range(2)]
    async with up(Told(*twice, Event(messages=(Message.tool("seen", "c"),)))) as world:
        events = await world.events("hi")
    assert len(of(events, "TOOL_CALL_START")) == 1
    assert Client().read(events).calls == {"c": "seen"}


async def test_case_63_and_c205_one_terminal_event() -> None:
    """A model that breaks in mid-stream: what is open is closed, RUN_ERROR ends the stream, nothing of the server's is
    told, and what was said is in the thread."""
    async with up(says(["Hello wor", ModelError("no route to secret-host", kind="stream_error")])) as world:
        answer = await world.post("hi")
        events = await world.events("again", "r2")
        history = Client().read(await world.history())
    assert outcome(events) == "model_error"
    assert "secret" not in answer.text
    assert "Hello wor" in history.texts


async def test_case_63_a_stream_without_a_completion() -> None:
    """An agent that raises, against its promise, ends with RUN_ERROR too."""

    class Raises(Told):
        async def run(self, invocation: Invocation) -> AsyncIterator[Event]:
            yield Event(partial=True, delta="half", author="told", branch="told")
            raise RuntimeError("secret-host")

    async with up(Raises()) as world:
        answer = await world.post("hi")
        events = await world.events("hi", "r2")
    assert "secret" not in answer.text
    assert outcome(events) == "failed"


async def test_case_65_results_of_client_tools() -> None:
    """Two trailing tool messages are both told, and make one run; the calls were pending before."""
    async with up(bob()) as world:
        first = await world.events("call mine,mine,look", tools=MINE)
        calls = first[-1]["outcome"]["pendingToolCallIds"]
        assert outcome(first) == "success"
        assert len(calls) == 2
        own = next(one["toolCallId"] for one in of(first, "TOOL_CALL_RESULT"))
        said = [{"id": "u", "role": "user", "content": "call mine,mine,look"}]
        results = [{"id": f"m-{one}", "role": "tool", "toolCallId": one, "content": f"of {one}"} for one in calls]
        server = [{"id": "s", "role": "tool", "toolCallId": own, "content": "what the server said"}]
        short = await world.post([*said, results[0]], "r2", tools=MINE)
        assert short.status_code == 400
        assert calls[1] in short.json()["error"]["message"]
        second = await world.events([*said, *server, *results], "r3", tools=MINE)
        history = Client().read(await world.history())
    assert [one["messageId"] for one in of(second, "TOOL_CALL_RESULT")] == [f"m-{one}" for one in calls]
    assert len(of(second, "RUN_STARTED")) == 1
    assert Client().read(second).texts == ["done"]
    assert {history.calls[one] for one in calls} == {f"of {one}" for one in calls}
    assert history.calls[own] == "seen look"


async def test_c206_a_retry_is_no_end() -> None:
    """A model that fails once and is asked again: the retry is told by an event that ends nothing, the broken text
    is void, and the client ends with what the thread says."""
    said = iter([["Hello wor", ModelError("cut", kind="stream_error", retryable=True)], "Hello world"])
    agent = LLMAgent("bob", ScriptedModel(lambda request: next(said)),
                     options={"default_retry": RetryPolicy(max_attempts=2, initial=0.01)})  # fmt: skip
    async with up(agent) as world:
        events = await world.events("hi")
        history = await world.history()
    assert outcome(events) == "success"
    assert [event["name"] for event in of(events, "CUSTOM")] == ["node.retried", "message.restarted"]
    assert Client().read(events).messages == Client().read(history).messages
    assert Client().read(events).texts == ["Hello world"]


async def test_c207_a_resumed_call_is_not_announced_again() -> None:
    """Over the run that asks and the run that goes on the call begins once; then only its result and what is new."""
    async with up(bob()) as world:
        first = await world.events("call drop")
        [asked] = first[-1]["outcome"]["interrupts"]
        assert asked["reason"] == "tool_approval"
        assert asked["toolCallId"] == of(first, "TOOL_CALL_START")[0]["toolCallId"]
        second = await world.resume({asked["id"]: True})
        history = Client().read(await world.history())
    assert of(second, "TOOL_CALL_START") == []
    assert [one["content"] for one in of(second, "TOOL_CALL_RESULT")] == ["dropped drop"]
    assert {**Client().read(first).messages, **Client().read(second).messages}.items() <= history.messages.items()


async def test_answers_that_do_not_fit_list_what_is_open() -> None:
    """Unknown, missing, doubled and cancelled answers are 400 and name the open keys; a message instead is 409;
    nothing of it ends the pause. An answer of the wrong type is asked for again."""
    async with up(bob()) as world:
        asked = (await world.events("call drop,drop"))[-1]["outcome"]["interrupts"]
        ids = [one["id"] for one in asked]
        fit = [{"interruptId": one, "status": "resolved", "payload": True} for one in ids]
        wrong: list[list[dict[str, Any]]] = [
            fit[:1],
            [*fit, {**fit[0], "interruptId": "x"}],
            [*fit, fit[0]],
            [fit[0], {**fit[1], "status": "cancelled"}],
        ]
        for number, entries in enumerate(wrong):
            refused = await world.post([], f"w{number}", resume=entries)
            assert refused.status_code == 400
            assert refused.json()["error"]["pending"] == [{"id": one, "key": "approve:drop"} for one in ids]
            assert "approve:drop" in refused.json()["error"]["message"]
        instead = await world.post("something else", "instead")
        assert (instead.status_code, instead.json()["error"]["code"]) == (409, "interrupted")
        assert len(instead.json()["error"]["pending"]) == 2
        assert {one["id"] for one in (await world.history())[-1]["outcome"]["interrupts"]} == set(ids)
        again = (await world.resume({ids[0]: True, ids[1]: "maybe"}, "odd"))[-1]["outcome"]["interrupts"]
        assert [one["id"] for one in again] == ids[1:]
        assert outcome(await world.resume({ids[1]: True})) == "success"


async def test_c218_ends_can_be_told_apart() -> None:
    """Completed, paused, failed and out of budget: each has an end of its own. Cancelled and late are case 64."""
    async with up(bob()) as world:
        assert outcome(await world.events("hi", "a", thread="1")) == "success"
        assert outcome(await world.events("call drop", "b", thread="2")) == "interrupt"
    async with up(says(ModelError("x", kind="rate_limit"))) as world:
        assert outcome(await world.events("hi")) == "rate_limit_exceeded"
    from graphagent.agents.model_options import CallLimits

    looks = {"tool_calls": [{"name": "look", "arguments": {"what": "x"}}]}
    rounds = LLMAgent("bob", ScriptedModel(lambda request: looks), tools=[look], limits=CallLimits(tool_rounds=1))
    async with up(rounds) as world:
        assert outcome(await world.events("hi")) == "limit_reached"


async def test_reasoning_and_state() -> None:
    """Reasoning stands before its text and is closed by it; state is shown as far as the part is told to."""
    agent = LLMAgent("bob", ScriptedModel([{"reasoning": "hm", "content": "yes"}]), output_key="last")
    async with up(agent, AGUIServer(shown_state=("last",))) as world:
        events = await world.events("hi", state={"last": "forged", "other": 1})
        history = Client().read(await world.history())
    assert [kind for kind in kinds(events) if "REASONING" in kind or "TEXT" in kind] == [
        "REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END",
        "REASONING_END", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
    ]  # fmt: skip
    assert of(events, "STATE_SNAPSHOT")[0]["snapshot"] == {}
    assert Client().read(events).state == history.state == {"last": "yes"}


async def test_pictures_and_sounds_reach_the_model() -> None:
    """Parts that messages carry come to the model, and back in the history."""
    model = ScriptedModel(["nice"])
    parts: list[Any] = [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "data", "value": "AAAA", "mimeType": "image/png"}},
        {"type": "image", "source": {"type": "url", "value": "https://x.example/a.png"}},
        {"type": "audio", "source": {"type": "data", "value": "BBBB", "mimeType": "audio/wav"}},
        {"type": "document", "source": {"type": "data", "value": "CCCC", "mimeType": "application/pdf"}},
    ]
    async with up(LLMAgent("bob", model)) as world:
        await world.events([{"id": "u", "role": "user", "content": parts}])
        [snapshot] = of(await world.history(), "MESSAGES_SNAPSHOT")
    sent = model.requests[0].messages[-1].content
    assert isinstance(sent, list)
    kinds_sent = [part["type"] for part in sent]
    assert kinds_sent == ["text", "text", "image_url", "image_url", "input_audio", "file"]  # the first names the files
    assert snapshot["messages"][0]["content"] == parts


async def test_c216_falsy_answers_are_answers() -> None:
    """False, 0, an empty text, list and object arrive as they are; so does null, which is an answer as any other."""
    from graphagent import GraphAgent, MessagesState, NodeContext, StateGraph

    async def ask(state: MessagesState, ctx: NodeContext) -> dict[str, Any]:
        found = await ctx.interrupt("what", "well?")
        return {"messages": [Message.assistant(f"got {found!r}")]}

    graph = (
        StateGraph(MessagesState, name="asks")
        .add_node("ask", ask, writes=("messages",))
        .set_entry_point("ask")
        .set_finish_point("ask")
        .compile()
    )
    async with up(GraphAgent("asks", graph)) as world:
        for number, value in enumerate([False, 0, "", {}, [], None]):
            first = await world.events("go", f"a{number}", thread=f"t{number}")
            [asked] = first[-1]["outcome"]["interrupts"]
            assert (asked["message"], asked["metadata"]["key"]) == ("well?", "what")
            events = await world.resume({asked["id"]: value}, f"b{number}", thread=f"t{number}")
            assert Client().read(events).texts == [f"got {value!r}"]


async def test_capabilities_are_typed() -> None:
    """What is told of the agent fits the protocol's own type."""
    from ag_ui.core import AgentCapabilities

    async with up(bob()) as world:
        told = (await world.http.get("/agui/capabilities")).json()
    found = AgentCapabilities.model_validate(told)
    assert found.identity is not None
    assert found.identity.name == "bob"
    assert found.tools is not None
    assert found.tools.client_provided
    assert GatedModel().name == "gated"
