"""Hooks of plugins at calls of models and tools, for all agents of a run: spec/services 3.5, 11.6 and 12."""

from __future__ import annotations

from typing import Any

import pytest
from support.run_agents import APP, SESSION, USER, all_of, outcome, stored

from graphagent import ChainAgent, LLMAgent, Message, tool
from graphagent.agents import AgentTool, ModelCallbacks, Reply, ToolCallbacks, ToolOptions, ToolResult
from graphagent.agents.invocation import Invocation
from graphagent.agents.model import ModelRequest
from graphagent.errors import ModelError, StopAgent
from graphagent.models import ScriptedModel
from runner import Plugin, Runner

pytestmark = pytest.mark.anyio
CALL = {"tool_calls": [{"name": "look", "arguments": {"city": "Bonn"}}]}


@tool
def look(city: str) -> str:
    """Look at the weather of a city."""
    if city == "Nowhere":
        raise ValueError("no such city")
    return f"rain in {city}"


class Does(Plugin):
    """Has hooks that are given."""

    def __init__(self, name: str = "does", **hooks: Any) -> None:
        self.name = name
        vars(self).update(hooks)


class Writes(Plugin):
    """Writes down calls of models and tools, with the agent that makes them."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    async def before_model(self, invocation: Invocation, request: ModelRequest, ctx: Any) -> None:
        self.log.append(f"{self.name} asks for {invocation.agent.name}")

    async def after_model(self, invocation: Invocation, reply: Reply, ctx: Any) -> None:
        self.log.append(f"{self.name} heard {reply.message.text or 'a call'}")

    async def before_tool(self, invocation: Invocation, call: Any, context: Any) -> None:
        self.log.append(f"{self.name} calls {call.name} for {invocation.agent.name}")

    async def after_tool(self, invocation: Invocation, call: Any, context: Any, result: ToolResult) -> None:
        self.log.append(f"{self.name} got {result.content}")


async def test_the_order_of_hooks_on_calls() -> None:
    """At each call: the plugins of the Runner, those of the run, then the agent's own callbacks."""
    log: list[str] = []
    own = ModelCallbacks(lambda request, ctx: log.append("own asks"), lambda reply, ctx: log.append("own heard"))
    beside = ToolCallbacks(
        lambda call, context: log.append("own calls"), lambda call, context, r: log.append("own got")
    )
    agent = LLMAgent(
        "weather",
        ScriptedModel([CALL, "Wet."]),
        tools=[look],
        callbacks=[own],
        tool_options=ToolOptions(callbacks=(beside,)),
    )
    async with Runner(APP, agent, plugins=[Writes("a", log)]) as runner:
        assert outcome(await all_of(runner, plugins=(Writes("b", log),))) == "completed"
    asks = ["a asks for weather", "b asks for weather", "own asks"]
    heard = ["a heard {}", "b heard {}", "own heard"]
    called = ["a calls look for weather", "b calls look for weather", "own calls"]
    got = ["a got rain in Bonn", "b got rain in Bonn", "own got"]
    first, second = ([line.format(text) for line in heard] for text in ("a call", "Wet."))
    assert log == [*asks, *first, *called, *got, *asks, *second]


async def test_hooks_reach_every_agent_of_the_run() -> None:
    """Children of a chain, sub-agents that take over, and agents that are tools are asked for by their own name."""
    log: list[str] = []
    inner = LLMAgent("inner", ScriptedModel(["In."]), description="Knows.")
    caller = LLMAgent(
        "caller",
        ScriptedModel([{"tool_calls": [{"name": "inner", "arguments": {"request": "?"}}]}, "Out."]),
        tools=[AgentTool(inner)],
    )
    boss = LLMAgent(
        "boss",
        ScriptedModel([{"tool_calls": [{"name": "helper", "arguments": {"message": "go"}}]}]),
        sub_agents=[LLMAgent("helper", ScriptedModel(["Helped."]))],
    )
    async with Runner(APP, ChainAgent("chain", [caller, boss]), plugins=[Writes("a", log)]) as runner:
        assert await runner.run_text(USER, SESSION, "hello") == "Helped."
    assert [line for line in log if "asks" in line] == [
        f"a asks for {name}" for name in ("caller", "inner", "caller", "boss", "helper")
    ]


async def test_a_changed_request_goes_on_to_the_next() -> None:
    """Requests that plugins change add up, and the agent's callbacks see the last; the session keeps what was said."""

    def adding(text: str) -> Any:
        async def add(invocation: Invocation, request: ModelRequest, ctx: Any) -> ModelRequest:
            return ModelRequest((*request.messages, Message.user(text)), request.tools)

        return add

    seen: list[int] = []
    own = ModelCallbacks(before=lambda request, ctx: seen.append(len(request.messages)))
    model = ScriptedModel(["hi"])
    plugins = [Does("a", before_model=adding("first")), Does("b", before_model=adding("second"))]
    async with Runner(APP, LLMAgent("echo", model, callbacks=[own]), plugins=plugins) as runner:
        await all_of(runner)
        assert [message.text for message in model.requests[0].messages] == ["hello", "first", "second"]
        assert [event.text for event in (await stored(runner)).events] == ["hello", "hi"]
    assert seen == [3]


async def test_a_plugin_answers_for_the_model() -> None:
    """A Reply before the call stands for it: no call is made, later ones are not asked, and it can still be changed."""

    async def canned(invocation: Invocation, request: ModelRequest, ctx: Any) -> Reply:
        return Reply(Message.assistant("closed"))

    async def louder(invocation: Invocation, reply: Reply, ctx: Any) -> Reply:
        return Reply(Message.assistant(reply.message.text.upper()))

    model, log = ScriptedModel([]), []
    plugins = [Does("a", before_model=canned), Writes("b", log), Does("c", after_model=louder)]
    async with Runner(APP, LLMAgent("echo", model), plugins=plugins) as runner:
        assert await runner.run_text(USER, SESSION, "hello") == "CLOSED"
    assert model.requests == []
    assert log == ["b heard closed"]


async def test_a_failed_call_of_a_model_is_recovered() -> None:
    """The first Reply for an error stands for the call; without one the error is the run's."""

    async def sorry(invocation: Invocation, request: ModelRequest, error: ModelError, ctx: Any) -> Reply | None:
        return Reply(Message.assistant(f"later: {error.kind}")) if error.kind == "timeout" else None

    model = ScriptedModel([ModelError("slow", kind="timeout"), ModelError("no key", kind="auth")])
    async with Runner(APP, LLMAgent("echo", model), plugins=[Does(on_model_error=sorry)]) as runner:
        assert await runner.run_text(USER, SESSION, "hello") == "later: timeout"
        last = (await all_of(runner, "again"))[-1]
        assert last.error is not None
        assert last.error.code == "auth"


@pytest.mark.parametrize(
    ("hook", "told"),
    [
        (
            "before_tool",
            "Error: a callback before tool 'look' failed: AgentError: plugin 'does' failed: ValueError: no",
        ),
        ("after_tool", "plugin 'does' failed: ValueError: no"),
        ("on_tool_error", "plugin 'does' failed: ValueError: no"),
    ],
)
async def test_an_error_of_a_hook_on_tools_is_told_to_the_model(hook: str, told: str) -> None:
    """It names the plugin; the other call of the round and the run go on."""

    async def fail(invocation: Invocation, call: Any, context: Any, *more: Any) -> Any:
        if call.arguments["city"] == "Nowhere":
            raise ValueError("no")

    cities = [{"name": "look", "arguments": {"city": city}} for city in ("Nowhere", "Kiel")]
    model = ScriptedModel([{"tool_calls": cities}, "Done."])
    async with Runner(APP, LLMAgent("w", model, tools=[look]), plugins=[Does(**{hook: fail})]) as runner:
        assert await runner.run_text(USER, SESSION, "hello") == "Done."
    results = [message.text for message in model.requests[1].messages if message.role == "tool"]
    assert told in results[0]
    assert results[1] == "rain in Kiel"


@pytest.mark.parametrize("hook", ["before_model", "after_model"])
async def test_an_error_of_a_hook_on_models_fails_the_run(hook: str) -> None:
    """The completion says whose hook it was, and the session can go on."""

    async def fail(invocation: Invocation, *more: Any) -> Any:
        raise ValueError("no")

    async with Runner(APP, LLMAgent("echo", ScriptedModel(["hi", "hi"])), plugins=[Does(**{hook: fail})]) as runner:
        events = await all_of(runner)
        assert outcome(events) == "failed"
        assert events[-1].error is not None
        assert "plugin 'does' failed: ValueError: no" in events[-1].error.message


@pytest.mark.parametrize("hook", ["before_model", "before_tool", "after_tool"])
async def test_a_hook_stops_the_run(hook: str) -> None:
    """StopAgent of any hook ends the run as itself."""

    async def stop(invocation: Invocation, *more: Any) -> Any:
        raise StopAgent("not allowed")

    model = ScriptedModel([CALL, "Wet."])
    async with Runner(APP, LLMAgent("w", model, tools=[look]), plugins=[Does(**{hook: stop})]) as runner:
        last = (await all_of(runner))[-1]
        assert last.error is not None
        assert (last.error.type, last.error.message) == ("stop_agent_error", "not allowed")


async def test_s024_a_plugin_stands_for_a_tool_changes_its_arguments_and_its_result() -> None:
    """A ToolCall changes the arguments for those after it; a result stands for the tool, and `after_tool` still sees
    it; a result for an error stands for a failed tool's."""

    async def to_kiel(invocation: Invocation, call: Any, context: Any) -> Any:
        if call.arguments["city"] == "Rome":
            return "sun, by the plugin"
        return call.model_copy(update={"arguments": {"city": "Kiel"}}) if call.arguments["city"] == "Bonn" else None

    async def marked(invocation: Invocation, call: Any, context: Any, result: ToolResult) -> ToolResult:
        return ToolResult(f"<{result.content}>")

    async def excuse(invocation: Invocation, call: Any, context: Any, error: Exception) -> str:
        return f"nothing: {error}"

    cities = [{"name": "look", "arguments": {"city": city}} for city in ("Bonn", "Rome", "Nowhere")]
    model = ScriptedModel([{"tool_calls": cities}, "Done."])
    plugins = [Does("a", before_tool=to_kiel), Does("b", after_tool=marked, on_tool_error=excuse)]
    async with Runner(APP, LLMAgent("w", model, tools=[look]), plugins=plugins) as runner:
        await all_of(runner)
    results = [message.text for message in model.requests[1].messages if message.role == "tool"]
    assert results == ["<rain in Kiel>", "<sun, by the plugin>", "<nothing: no such city>"]


async def test_a_hook_asks_a_person() -> None:
    """A question of a hook interrupts the run; with its answer the run goes on, and the model is called once."""

    async def ask(invocation: Invocation, request: ModelRequest, ctx: Any) -> Any:
        return None if await ctx.interrupt("spend?", "May I?", bool) else Reply(Message.assistant("No money."))

    model = ScriptedModel(["hi"])
    async with Runner(APP, LLMAgent("echo", model), plugins=[Does(before_model=ask)]) as runner:
        assert outcome(await all_of(runner)) == "interrupted"
        assert model.requests == []
        events = await all_of(runner, None, answers={"spend?": True})
        assert [event.text for event in events if event.is_final and event.kind == "message"] == ["hi"]
    assert len(model.requests) == 1
