"""LLMAgent: a model and its tools as a graph of two nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel
from support.agent_runs import Talk, complete, words
from support.tables import all_rows

from graphagent import Budget, GraphAgent, LLMAgent, MemoryCheckpoints, Message, RetryPolicy, SqlCheckpoints, tool
from graphagent.agents import CallLimits, Invocation, ModelCallbacks, Reply
from graphagent.agents.external import external_tool
from graphagent.agents.model import Delta, ToolCallDelta
from graphagent.errors import AgentError, GraphDefinitionError, ModelError
from graphagent.ids import fresh_id
from graphagent.ledger import SessionKey, TokenUsage
from graphagent.models.scripted import ScriptedModel
from graphagent.validation import validate

pytestmark = pytest.mark.anyio
RAN: list[str] = []


@tool
def look(city: str) -> str:
    """Look at the weather of a city."""
    RAN.append(city)
    return f"rain in {city}"


def calls(*cities: str) -> dict[str, Any]:
    """A model's request to look at some cities."""
    return {"tool_calls": [{"name": "look", "arguments": {"city": city}} for city in cities]}


async def test_an_agent_is_a_graph_of_two_nodes() -> None:
    """It is a GraphAgent over `model` and `tools`, shows itself as Mermaid, and validates without findings."""
    agent = LLMAgent("weather", ScriptedModel([]), tools=[look])
    assert isinstance(agent, GraphAgent)
    assert agent.graph.names == ("model", "tools")
    assert "model" in agent.to_mermaid()
    assert validate(agent.graph).at_least("warning") == ()
    bounded = LLMAgent("weather", ScriptedModel([]), tools=[look], limits=CallLimits(tool_rounds=3))
    assert validate(bounded.graph).findings == ()
    assert LLMAgent("plain", ScriptedModel([])).graph.names == ("model",)


async def test_a_turn_with_tools() -> None:
    """Text comes in pieces, then whole; calls, results and the answer are events, stored in this order."""
    model = ScriptedModel([calls("Bonn", "Kiel"), "Wet."], pieces=2, usage=TokenUsage(input_tokens=5, output_tokens=2))
    talk = Talk(LLMAgent("weather", model, "Be brief.", [look]), MemoryCheckpoints())
    events = await talk.say("How is it?")
    assert "".join(event.delta for event in events if event.partial) == "Wet."
    kinds = [(event.kind, [message.role for message in event.messages]) for event in complete(events)]
    assert kinds == [("message", ["assistant"]), ("tool_result", ["tool", "tool"]), ("message", ["assistant"])]
    assert events[-1].is_final
    assert events[-1].text == "Wet."
    assert events[-1].usage == TokenUsage(input_tokens=5, output_tokens=2)
    assert events[-1].finish_reason == "stop"
    stored = (await talk.session()).events
    assert [event.id for event in stored[1:]] == [event.id for event in complete(events)]
    assert {(event.author, event.branch, event.filter_key) for event in stored[1:]} == {("weather", "weather", "app")}
    asked = model.requests[1]
    assert [message.role for message in asked.messages] == ["system", "user", "assistant", "tool", "tool"]
    assert [message.text for message in asked.messages if message.role == "tool"] == ["rain in Bonn", "rain in Kiel"]
    assert [spec.name for spec in asked.tools] == ["look"]


async def test_the_next_turn_sees_the_one_before() -> None:
    """The second request has the first turn's messages once, as they were; the instruction is never stored."""
    model = ScriptedModel([calls("Bonn"), "Wet.", "Still wet."])
    talk = Talk(LLMAgent("weather", model, "Be brief.", [look]), MemoryCheckpoints())
    await talk.say("How is it?")
    await talk.say("And now?")
    said = [(message.role, message.text) for message in model.requests[2].messages]
    assert said == [
        ("system", "Be brief."),
        ("user", "How is it?"),
        ("assistant", ""),
        ("tool", "rain in Bonn"),
        ("assistant", "Wet."),
        ("user", "And now?"),
    ]
    assert all(message.role != "system" for message in (await talk.state()).messages)


async def test_a_turn_costs_what_it_adds(database: str) -> None:
    """A turn writes its own messages, not the conversation again: the tenth costs what the second does."""

    def stored() -> int:
        return sum(len(cell) for row in all_rows(database)["ga_rows"] for cell in row if isinstance(cell, bytes))

    key = SessionKey("app", "ann", fresh_id())
    costs: list[int] = []
    async with SqlCheckpoints(database) as store:
        talk = Talk(LLMAgent("echo", ScriptedModel(lambda request: "x" * 500)), store, key=key)
        for _ in range(10):
            before = stored()
            await talk.say("y" * 500)
            costs.append(stored() - before)
    assert costs[-1] < costs[1] * 1.3


async def test_without_a_session_and_without_a_store() -> None:
    """An agent runs on an invocation alone; each run stands for itself."""
    model = ScriptedModel(["One.", "Two."])
    agent = LLMAgent("echo", model)
    for text in ("One.", "Two."):
        events = [event async for event in agent.run(Invocation(agent, Message.user("hi")))]
        assert words(events) == [("echo", text)]
    assert [len(request.messages) for request in model.requests] == [1, 1]


async def test_c020_s020_an_unknown_tool_is_told_to_the_model() -> None:
    """The model sees that the tool isn't there, with a suggestion, and the turn goes on."""
    model = ScriptedModel([{"tool_calls": [{"name": "lok", "arguments": {}}]}, "Sorry."])
    events = await Talk(LLMAgent("weather", model, tools=[look])).say("Go")
    assert events[-1].text == "Sorry."
    assert "did you mean 'look'" in model.requests[1].messages[-1].text


async def test_calls_that_cannot_be_read_are_told_and_never_run() -> None:
    """A call cut off in the middle of its arguments is answered with the reason; the whole one beside it runs."""
    RAN.clear()
    cut = [
        Delta(tool_calls=(ToolCallDelta(0, "a", "look", '{"city": "Bonn"}'),)),
        Delta(tool_calls=(ToolCallDelta(1, "b", "look", '{"city": "Ki'),), finish_reason="length"),
    ]
    model = ScriptedModel([cut, "Only Bonn."])
    talk = Talk(LLMAgent("weather", model, tools=[look]))
    assert (await talk.say("Go"))[-1].text == "Only Bonn."
    assert RAN == ["Bonn"]
    results = {message.tool_call_id: message.text for message in model.requests[1].messages if message.role == "tool"}
    assert results["a"] == "rain in Bonn"
    assert "was not run" in results["b"]


async def test_only_calls_that_cannot_be_read_lead_back_to_the_model() -> None:
    """If no call of an answer can be run, the model is told and asked again; nothing is run."""
    RAN.clear()
    broken = [Delta(tool_calls=(ToolCallDelta(0, "a", "look", "{broken"),), finish_reason="tool_calls")]
    model = ScriptedModel([broken, "I give up."])
    assert (await Talk(LLMAgent("weather", model, tools=[look])).say("Go"))[-1].text == "I give up."
    assert RAN == []


async def test_s026_an_external_call_ends_the_run_and_its_result_begins_the_next() -> None:
    """The run ends with the call, which is marked long-running; the next run takes the tool message and goes on."""
    model = ScriptedModel([{"tool_calls": [{"id": "x1", "name": "pick", "arguments": {}}]}, "You picked red."])
    talk = Talk(LLMAgent("picker", model, tools=[external_tool("pick", "Let the person pick.")]), MemoryCheckpoints())
    events = await talk.say("Let me pick")
    assert complete(events)[0].long_running_tool_ids == {"x1"}
    assert [event.kind for event in complete(events)] == ["message", "completion"]
    events = await talk.say(Message.tool("red", "x1"))
    assert events[-1].text == "You picked red."
    assert [message.role for message in model.requests[1].messages] == ["user", "assistant", "tool"]


async def test_s027_mixed_calls_run_what_is_ours_and_end() -> None:
    """Beside an external call, ours is run; the run ends all the same."""
    RAN.clear()
    both = {"tool_calls": [{"name": "pick", "arguments": {}}, {"name": "look", "arguments": {"city": "Bonn"}}]}
    model = ScriptedModel([both, "never asked"])
    await Talk(LLMAgent("picker", model, tools=[external_tool("pick", "Pick."), look])).say("Go")
    assert RAN == ["Bonn"]
    assert len(model.requests) == 1


async def test_a_tool_that_ends_the_turn() -> None:
    """No further answer is asked for after the result of a tool that ends the turn."""

    @tool(ends_turn=True)
    def done() -> str:
        """Say that all is done."""
        return "all done"

    model = ScriptedModel([{"tool_calls": [{"name": "done", "arguments": {}}]}])
    events = await Talk(LLMAgent("worker", model, tools=[done])).say("Go")
    assert [event.kind for event in complete(events)] == ["message", "tool_result"]
    assert events[-1].skip_summarization


@pytest.mark.parametrize(
    ("limits", "kind", "requests"),
    [
        (CallLimits(tool_rounds=2), "flow_error", 3),
        (CallLimits(model_calls=2), "stop_agent_error", 2),
        (CallLimits(tool_rounds=2, final="Answer now."), None, 3),
        (CallLimits(model_calls=2, final="Answer now."), None, 2),
    ],
    ids=["rounds", "calls", "rounds-final", "calls-final"],
)
async def test_s028_c094_limits_of_a_turn(limits: CallLimits, kind: str | None, requests: int) -> None:
    """Exactly so many rounds or calls, then an error; with a final text the last request asks for an answer without
    tools. The next turn counts anew."""
    RAN.clear()
    model = ScriptedModel(lambda request: calls("Bonn") if request.tools else "Enough.")
    talk = Talk(LLMAgent("weather", model, tools=[look], limits=limits), MemoryCheckpoints())
    for turn in (1, 2):
        events = await talk.say("Go")
        assert (events[-1].error.type if events[-1].error else None) == kind
        assert len(model.requests) == requests * turn
    if kind is None:
        assert model.requests[-1].messages[-1].text == "Answer now."
        assert events[-1].text == "Enough."


class Verdict(BaseModel):
    good: bool
    reason: str = ""


async def test_structured_output() -> None:
    """The answer is read as the schema, also out of a fence; it goes to `node_responses` and the session's state."""
    model = ScriptedModel(['```json\n{"good": true}\n```'])
    talk = Talk(LLMAgent("judge", model, output_schema=Verdict, output_key="verdict"), MemoryCheckpoints())
    events = await talk.say("Judge")
    assert model.requests[0].output_schema == Verdict.model_json_schema()
    assert events[-1].state_delta == {"verdict": {"good": True, "reason": ""}}
    assert (await talk.session()).state["verdict"] == {"good": True, "reason": ""}
    assert (await talk.state()).node_responses == {"model": {"good": True, "reason": ""}}


async def test_an_answer_that_breaks_its_schema_is_asked_for_again() -> None:
    """The model is told what is wrong, once; after the second wrong answer the run fails and says why."""
    model = ScriptedModel(['{"good": "maybe"}', '{"good": false}', "no", "still no"])
    talk = Talk(LLMAgent("judge", model, output_schema=Verdict), MemoryCheckpoints())
    assert (await talk.say("Judge"))[-1].text == '{"good": false}'
    assert "good: Input should be a valid boolean" in model.requests[1].messages[-1].text
    last = (await talk.say("Again"))[-1]
    assert last.error is not None
    assert (last.error.type, last.error.code) == ("api_error", "output")
    assert "2 attempts" in last.error.message


async def test_an_instruction_with_placeholders() -> None:
    """Keys of state, session and run are put in; one that isn't there stays, or is empty if it may be."""
    text = '{name} {app:motto} {user:lang} {invocation:who} {gone} {gone?}| {"a": 1} {n}'
    model = ScriptedModel(["ok"])
    talk = Talk(LLMAgent("echo", model, text))
    await talk.sessions.create(*talk.key, state={"name": "Ann", "user:lang": "de", "app:motto": "go", "n": [1, "ä"]})
    await talk.say("hi", extra={"who": "me"})
    assert model.requests[0].messages[0].text == 'Ann go de me {gone} | {"a": 1} [1, "ä"]'


async def test_options_of_one_run() -> None:
    """A run may bring another instruction, another model, and hide tools."""
    other = ScriptedModel(["from the other"])
    agent = LLMAgent("echo", ScriptedModel([]), "mine", [look])
    events = await Talk(agent).say("hi", instruction="theirs", model=other, tool_filter=lambda name: name != "look")
    assert events[-1].text == "from the other"
    assert other.requests[0].messages[0].text == "theirs"
    assert other.requests[0].tools == ()


async def test_callbacks_around_the_model() -> None:
    """Before: a changed request, or an answer without a call. After: another answer. On an error: a way out."""
    seen: list[str] = []

    def before(request: Any, ctx: Any) -> Any:
        seen.append("before")
        return Reply(Message.assistant("canned")) if "canned" in request.messages[-1].text else None

    async def after(reply: Reply, ctx: Any) -> Reply | None:
        seen.append("after")
        return Reply(Message.assistant(reply.message.text.upper()))

    def on_error(error: ModelError, request: Any, ctx: Any) -> Reply:
        return Reply(Message.assistant(f"sorry: {error.kind}"))

    model = ScriptedModel(["real", ModelError("gone", kind="timeout")])
    agent = LLMAgent("echo", model, callbacks=[ModelCallbacks(before, after, on_error)])
    talk = Talk(agent)
    texts = [(await talk.say(said))[-1].text for said in ("canned", "go", "again")]
    assert texts == ["CANNED", "REAL", "SORRY: TIMEOUT"]
    assert seen == ["before", "after"] * 3


@pytest.mark.parametrize(
    ("raised", "kind", "code"),
    [
        (ModelError("no key", kind="auth"), "api_error", "auth"),
        (ModelError("broke off", kind="stream_error"), "stream_error", "stream_error"),
        (ValueError("bug"), "flow_error", "NodeError"),
    ],
)
async def test_s114_a_failing_model_is_an_event_and_the_session_goes_on(
    raised: Exception, kind: str, code: str
) -> None:
    """The run's last event has the typed error; the next message begins a new turn."""
    talk = Talk(LLMAgent("echo", ScriptedModel([raised, "fine"])), MemoryCheckpoints())
    last = (await talk.say("hi"))[-1]
    assert last.error is not None
    assert (last.kind, last.error.type, last.error.code) == ("error", kind, code)
    assert (await talk.say("again"))[-1].text == "fine"


async def test_an_empty_answer_is_an_error() -> None:
    """A model that says nothing at all is no success."""
    last = (await Talk(LLMAgent("echo", ScriptedModel([""]))).say("hi"))[-1]
    assert last.error is not None
    assert "empty answer" in last.error.message


async def test_a_retried_model_call_is_one_answer() -> None:
    """An attempt that broke off leaves no event; the retry's answer is the only one."""
    model = ScriptedModel([["half", ModelError("broke off", kind="stream_error", retryable=True)], "whole"])
    policy = RetryPolicy(max_attempts=2, initial=0)
    agent = LLMAgent("echo", model, options={"default_retry": policy})
    talk = Talk(agent, MemoryCheckpoints())
    assert words(await talk.say("hi")) == [("echo", "whole")]
    assert [event.text for event in (await talk.session()).events] == ["hi", "whole"]


async def test_a_breakpoint_before_tools() -> None:
    """The run stops before tools are run, and goes on when it is resumed; the model is not asked again."""
    RAN.clear()
    model = ScriptedModel([calls("Bonn"), "Wet."])
    talk = Talk(LLMAgent("weather", model, tools=[look], interrupt_before=["tools"]), MemoryCheckpoints())
    events = await talk.say("Go")
    assert [(one["key"], one["kind"]) for one in events[-1].interrupts] == [("before:tools", "before")]
    assert RAN == []
    events = await talk.answer()
    assert words(events) == [("weather", "rain in Bonn"), ("weather", "Wet.")]
    assert len(model.requests) == 2


async def test_usage_counts_against_the_budget() -> None:
    """Tokens that models report end the run at the budget."""
    model = ScriptedModel(lambda request: calls("Bonn"), usage=TokenUsage(input_tokens=60, output_tokens=0))
    last = (await Talk(LLMAgent("weather", model, tools=[look])).say("Go", budget=Budget(tokens=100)))[-1]
    assert last.error is not None
    assert last.error.code == "limit_reached"
    assert "tokens" in last.error.message
    assert len(model.requests) == 2


def test_what_an_agent_can_not_be_made_of() -> None:
    """A model that is none, limits that can't be counted, and names that paths can't have are refused."""
    with pytest.raises(GraphDefinitionError, match=r"GA015.*has no 'stream'"):
        LLMAgent("x", "gpt")  # type: ignore[arg-type]
    with pytest.raises(AgentError, match="without '/'"):
        LLMAgent("a/b", ScriptedModel([]))
    with pytest.raises(AgentError, match="model_calls is 0"):
        CallLimits(model_calls=0)


async def test_queued_messages_come_before_the_next_request() -> None:
    """What the person says while a tool runs is in the next request, and in the history after it."""
    waiting = [(), (Message.user("hurry"),)]
    model = ScriptedModel([calls("Bonn"), "Wet."])
    talk = Talk(LLMAgent("weather", model, tools=[look]), MemoryCheckpoints())

    async def queued() -> tuple[Message, ...]:
        return waiting.pop(0) if waiting else ()

    invocation = replace(await talk.invocation("Go"), queued=queued)
    assert [event async for event in talk.agent.run(invocation)][-1].text == "Wet."
    assert [message.text for message in model.requests[1].messages][-1] == "hurry"
    assert [message.text for message in (await talk.state()).messages][-2:] == ["hurry", "Wet."]
