"""Stored requests of a Runner's agents, made again and explained: what the model got, where each message is from."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from support.rolling import Steered

from graphagent import (
    ChainAgent,
    Executor,
    LLMAgent,
    MemoryCheckpoints,
    Message,
    MessagesState,
    SqlCheckpoints,
    StateGraph,
    tool,
)
from graphagent.agents import AgentTool, CallLimits, GraphAgent, Invocation, RunOptions, Services, session_lineage
from graphagent.agents.asked_again import request_of
from graphagent.ids import fresh_id
from graphagent.ledger import SessionKey
from graphagent.messages import ToolCall
from graphagent.models import ScriptedModel
from graphagent.models.tokens import SIMPLE
from processors import Compaction
from runner import Runner
from runner.sessions import InMemorySessions
from runner.studio.requests import Explained, explained, explained_request
from runner.summary.upkeep import SummaryOptions

pytestmark = pytest.mark.anyio


@tool
async def read(size: int) -> str:
    """A text of this many words."""
    return "word " * size


def calls(*sizes: int) -> dict[str, Any]:
    """An answer that calls the tool for each size."""
    return {"tool_calls": [{"name": "read", "arguments": {"size": size}} for size in sizes]}


class House:
    """An agent with its store and sessions, whose Runner is made anew for each turn: a summary that is made in the
    background is there when the next one begins."""

    def __init__(self, agent: GraphAgent, store: Any, summarizer: Any = None, **options: Any) -> None:
        self.agent = agent
        self.store = store
        self.sessions = InMemorySessions()
        self.key = SessionKey("app", "ann", f"s {fresh_id()}")
        self.lineage = session_lineage(self.key)
        given = {key: options.pop(key) for key in ("between_calls", "rescue") if key in options}
        if summarizer is not None:
            options["summaries"] = SummaryOptions(summarizer=summarizer, **given)
        self.options = options

    async def say(self, text: str | None, **options: Any) -> None:
        """A turn."""
        async with Runner("app", self.agent, checkpoints=self.store, sessions=self.sessions, **self.options) as runner:
            async for _ in runner.run(self.key.user, self.key.session, text, RunOptions(**options)):
                pass

    async def explained(self, space: str = "", node: str = "model") -> list[Explained]:
        """The requests of all activations of a model node in a frame, oldest first."""
        executor, namespace = self.agent.executor(self.store), space or self.agent.name
        rows = [row for row in await executor.history(self.lineage, namespace=namespace) if node in row.nodes]
        where: dict[str, Any] = {"namespace": namespace, "around": Services(self.sessions)}
        return [await explained(executor, self.lineage, row.seq, node, **where) for row in reversed(rows)]


def told(one: Explained) -> list[tuple[str, str]]:
    """Origins and texts of its rows."""
    return [(row.origin, row.text) for row in one.rows]


async def test_two_turns_and_a_summary(store: Any) -> None:
    """The second turn is asked under a summary that stands for the first; each row says where it is from, and why."""
    model = ScriptedModel(["one it is", calls(2), "two it is"])
    house = House(LLMAgent("bot", model, "Be brief.", [read]), store, Steered(lambda given: "THE SUMMARY"))
    await house.say("question one")
    await house.say("question two")
    found = await house.explained()
    session = await house.sessions.get(house.key)
    assert session is not None
    assert [one.stored.requests for one in found] == [(request,) for request in model.requests]
    assert told(found[0]) == [("instruction", "Be brief."), ("input", "question one")]
    last = found[2]
    assert [row.origin for row in last.rows] == ["instruction", "summary", "input", "run", "run"]
    assert [row.reason for row in last.rows][:3] == [
        "the instruction of node 'model'",
        "the summary of 'app'",
        "in (visibility.kept)",
    ]
    assert "THE SUMMARY" in last.rows[1].text
    assert last.rows[3].calls == ('read({"size": 2})',)
    assert last.rows[4].reason == f"written by {last.rows[4].activations[0]} at {last.rows[4].checkpoint}; in (run.in)"
    assert last.rows[4].events == (session.events[-2].id,)
    assert last.event == session.events[-1]
    assert [call.result for call in found[1].stored.calls] == ["word word "]
    recorded = {name for name, part in last.parts.items() if part.known == "recorded"}
    assert recorded == {"answer", "usage"}
    assert last.parts["messages"].doubts == ()
    assert last.parts["instruction"].doubts == ("an instruction of the run, in place of the node's, isn't stored",)
    assert not last.stored.exact


def conversation(seed: int) -> tuple[list[Any], list[str], dict[str, Any]]:
    """Answers of a model, what a person says, and how the Runner keeps requests small."""
    rng = random.Random(seed)
    answers: list[Any] = []
    turns = [f"question {number} {'x' * rng.randrange(40)}" for number in range(rng.randint(2, 4))]
    for number in range(len(turns)):
        for _ in range(rng.randrange(3)):
            answers.append(calls(*(rng.choice([1, 20, 300]) for _ in range(rng.randint(1, 3)))))
        answers.append(f"answer {number}")
    keep, fires = rng.randrange(4), rng.random() < 0.7
    options: dict[str, Any] = {"summarizer": Steered(fires=fires, keep=keep), "between_calls": rng.random() < 0.5}
    if rng.random() < 0.6:
        options["compaction"] = Compaction(
            counter=SIMPLE,
            historical=rng.choice([0, 50]),
            oversized=rng.choice([0, 0, 100]),
            recent_turns=rng.randrange(2),
        )
    return answers, turns, options


async def test_random_conversations() -> None:
    """Over random talks with rounds of tools, summaries and compaction: what is made again is what the model got, or is
    said to differ; the requests that were shortened are those that say so, and no other."""
    same = shortened = anew = 0
    for seed in range(20):
        answers, turns, options = conversation(seed)
        model = ScriptedModel(answers)
        house = House(LLMAgent("bot", model, "Be brief.", [read]), MemoryCheckpoints(), **options)
        for text in turns:
            await house.say(text)
        found = await house.explained()
        assert len(found) == len(model.requests)
        for one, request in zip(found, model.requests, strict=True):
            assert len(one.stored.requests[0].messages) == len(request.messages)
            assert (one.stored.request == request) == (one.parts["messages"].doubts == ()), (
                seed,
                one.parts["messages"],
            )
            assert [row.role for row in one.rows if row.origin != "instruction"] == [
                message.role for message in one.stored.asked.messages
            ]
            assert {row.origin for row in one.rows} <= {"instruction", "summary", "input", "event", "run"}, (
                seed,
                told(one),
            )
            same += one.stored.request == request
            shortened += bool(one.parts["messages"].doubts)
            anew += one.parts["messages"].known == "recorded"
    assert same > 60
    assert shortened > 2
    assert anew > 5


async def test_a_request_that_was_shortened_says_so(store: Any) -> None:
    """The results of the running turn that the guard cut, in the request only: their rows say it, and nobody says that
    the request is exact."""
    model = ScriptedModel([calls(300, 1), "done"])
    cut = Compaction(counter=SIMPLE, oversized=50)
    house = House(LLMAgent("bot", model, "", [read]), store, compaction=cut)
    await house.say("go")
    [_, last] = await house.explained()
    assert last.stored.request != model.requests[1]
    assert last.parts["messages"].doubts == ("results of 1 event(s) were shortened in it, and may be whole here",)
    assert [row.reason.endswith("shortened in the request") for row in last.rows] == [False, False, True, True]
    assert [note["stage"] for note in last.notes] == ["compaction"]


async def test_what_the_run_had_of_its_own(store: Any) -> None:
    """An instruction of the run is not stored: the node's is there, with the doubt; with the invocation's options at
    hand it is the run's. Values of the session are those that it has now."""
    model = ScriptedModel(["ok", "ok"])
    agent = LLMAgent("bot", model, "Speak to {user:name}.")
    house = House(agent, store)
    await house.sessions.create(*house.key, state={"user:name": "Ann"})
    await house.say("one")
    await house.say("two", instruction="Sing.")
    [first, second] = await house.explained()
    assert first.stored.requests == (model.requests[0],)
    assert first.parts["instruction"].doubts[0].startswith("'{user:name}': values of the run and its session")
    assert model.requests[1].messages[0].text == "Sing."
    assert second.stored.instruction == "Speak to Ann."
    assert "an instruction of the run" in second.parts["instruction"].doubt
    session = await house.sessions.get(house.key)
    own = Invocation(agent, None, session, branch="bot", options=RunOptions(instruction="Sing."))
    executor = agent.executor(store)
    exact = await request_of(executor, house.lineage, None, "model", namespace="bot", invocation=own)
    assert exact.requests == (model.requests[1],)
    assert exact.exact


async def test_agents_that_hear_each_other(store: Any) -> None:
    """Of a chain the second is told what the first said: the row has the event of it. Frames of members, and of an
    agent that is a tool, have their requests too."""
    helper = LLMAgent("helper", ScriptedModel(["helped"]), "Help.")
    ask = {"tool_calls": [{"name": "helper", "arguments": {"request": "help me"}}]}
    first, second = ScriptedModel([ask, "first says"]), ScriptedModel(["second says"])
    tools = [AgentTool(helper)]
    house = House(ChainAgent("both", [LLMAgent("one", first, "", tools), LLMAgent("two", second)]), store)
    await house.say("go")
    spaces = {space.rpartition("/")[2].partition("@")[0]: space for space in await store.namespaces(house.lineage)}
    [heard] = await house.explained(spaces["two"])
    assert heard.stored.requests == tuple(second.requests)
    assert [(row.origin, row.role) for row in heard.rows] == [("input", "user"), ("event", "user")]
    assert "[one] said: first says" in heard.rows[1].text
    session = await house.sessions.get(house.key)
    assert session is not None
    texts = {event.id: event.text for event in session.events}
    assert "first says" in [texts[id] for id in heard.rows[1].events]
    assert [one.stored.requests[0] for one in await house.explained(spaces["one"])] == first.requests
    [called] = [space for space in spaces.values() if "helper" in space]
    [helped] = await house.explained(called)
    assert [row.text for row in helped.rows] == ["Help.", "help me"]


async def test_before_the_first_answer(store: Any) -> None:
    """At a breakpoint before the model there is no event yet: the rows have the session's events, and say that nothing
    is recorded of them."""
    model = ScriptedModel(["ok"])
    agent = LLMAgent("bot", model, interrupt_before=["model"])
    house = House(agent, store)
    await house.say("go")
    where: dict[str, Any] = {"namespace": "bot", "around": Services(house.sessions)}
    before = await explained(agent.executor(store), house.lineage, None, "model", **where)
    [row] = before.rows
    assert (row.origin, row.text, row.reason) == ("input", "go", "what became of it is not recorded")
    assert (before.event, before.usage, before.parts["answer"].known) == (None, None, "unknown")
    await house.say(None)
    assert before.stored.requests == tuple(model.requests)


async def test_origins_in_a_graph_of_ones_own(store: Any, engine: str, lineage: str) -> None:
    """Without a session the checkpoints tell: the input, the activation that wrote it, an edit, the place of a missing
    result, the text of a last call."""
    model = ScriptedModel([calls(1), calls(2), "done"])
    limits = CallLimits(model_calls=3, final="Answer now.")
    graph = (
        StateGraph(MessagesState, name="talk")
        .add_llm_node("ask", model, instruction="Be brief.", tools=[read], limits=limits)
        .add_tools_node("tools", [read])
        .set_entry_point("ask")
        .add_tools_conditional_edges("ask", "tools")
        .add_edge("tools", "ask")
        .compile()
    )
    executor = Executor(graph, store, engine)  # type: ignore[arg-type]
    lost = Message.assistant("", tool_calls=(ToolCall(id="lost", name="read"),))
    await executor.run({"messages": [Message.user("old"), lost], "user_input": "go"}, lineage=lineage)
    rows = await explained_request(executor, lineage, None, "ask")
    assert [(row.origin, row.role, row.activations) for row in rows] == [
        ("instruction", "system", ()),
        ("input", "user", ()),
        ("input", "assistant", ()),
        ("pairing", "tool", ()),
        ("input", "user", ("ask#1",)),
        ("run", "assistant", ("ask#1",)),
        ("run", "tool", ("tools#2",)),
        ("run", "assistant", ("ask#3",)),
        ("run", "tool", ("tools#4",)),
        ("limit", "user", ()),
    ]
    assert rows[4].reason == "the input of a turn, put into the history by ask#1"
    due = next(row for row in await executor.history(lineage) if row.nodes == ("tools",))
    edited = await executor.edit(lineage, due.seq, {"messages": [Message.user("changed")]})
    [_, row, _] = await explained_request(executor, lineage, edited.id, "ask")
    assert (row.origin, row.text, row.checkpoint) == ("edit", "changed", edited.id)


async def test_secrets_are_not_shown(tmp_path: Path, lineage: str) -> None:
    """What a field of the state keeps secret is masked in every row, wherever it got to."""

    class Reversed:
        def encrypt(self, text: bytes) -> bytes:
            return text[::-1]

        def decrypt(self, text: bytes) -> bytes:
            return text[::-1]

    class State(MessagesState):
        token: SecretStr = SecretStr("")

    model = ScriptedModel([{"tool_calls": [{"name": "read", "arguments": {"size": 1, "key": "hunter2"}}]}])
    graph = (
        StateGraph(State)
        .add_llm_node("ask", model, instruction=lambda state, ctx: f"The token is {state.token.get_secret_value()}.")
        .add_llm_node("again", ScriptedModel(["ok"]))
        .set_entry_point("ask")
        .add_edge("ask", "again")
        .set_finish_point("again")
    ).compile()
    async with SqlCheckpoints(f"sqlite:///{tmp_path}/runs.db", cipher=Reversed()) as store:
        executor = Executor(graph, store)
        await executor.run({"user_input": "it is hunter2", "token": "hunter2"}, lineage=lineage)
        for node in ("ask", "again"):
            found = await explained(executor, lineage, None, node)
            assert "hunter2" not in repr(found.rows)
            assert "**********" in repr(found.rows)
            assert found.stored.request is not None
            assert "hunter2" in repr(found.stored.request)
        assert found.rows[1].calls == ('read({"size": 1, "key": "**********"})',)


async def test_what_a_person_says_meanwhile(store: Any) -> None:
    """Said while a tool ran: it is behind the next request, and in the one after it is of the session."""
    house = House(LLMAgent("bot", ScriptedModel([]), "", []), store)
    runners: list[Runner] = []

    @tool
    async def wait() -> str:
        """Wait, while the person says more."""
        runners[0].say("r1", "and hurry")
        return "waited"

    again = {"tool_calls": [{"name": "read", "arguments": {"size": 1}}]}
    model = ScriptedModel([{"tool_calls": [{"name": "wait", "arguments": {}}]}, again, "done"])
    house.agent = LLMAgent("bot", model, "", [wait, read])
    async with Runner("app", house.agent, checkpoints=store, sessions=house.sessions) as runner:
        runners.append(runner)
        async for _ in runner.run(house.key.user, house.key.session, "go", RunOptions(request_id="r1")):
            pass
    found = await house.explained()
    assert [one.stored.requests[0] for one in found] == model.requests
    assert [row.origin for row in found[0].rows] == ["input"]
    assert [(row.origin, row.text) for row in found[1].rows][-1] == ("queued", "and hurry")
    assert [(row.origin, row.text) for row in found[2].rows if row.role == "user"] == [
        ("input", "go"),
        ("queued", "and hurry"),
    ]
    assert [one.parts["messages"].doubts for one in found] == [(), (), ()]


async def test_a_history_that_was_made_anew(store: Any) -> None:
    """A summary between the calls of a turn takes the place of the history: the request is that of the step's own row,
    and says that it is recorded."""
    model = ScriptedModel([calls(1), calls(2), "done"])
    house = House(LLMAgent("bot", model, "", [read]), store, Steered(keep=1), between_calls=True)
    await house.say("go")
    found = await house.explained()
    assert [one.stored.requests for one in found] == [(request,) for request in model.requests]
    assert [one.parts["messages"].known for one in found] == ["rebuilt", "recorded", "recorded"]
    assert [row.origin for row in found[2].rows] == ["summary", "input", "run", "run"]
    assert found[2].notes[0]["stage"] == "between_calls"


async def test_a_long_lineage_is_searched_by_halves(lineage: str) -> None:
    """Of many turns few rows are read to find where each message is from."""
    model = ScriptedModel(lambda request: f"answer {len(request.messages)}")
    graph = (
        StateGraph(MessagesState).add_llm_node("ask", model).set_entry_point("ask").set_finish_point("ask").compile()
    )
    executor = Executor(graph, MemoryCheckpoints())
    await executor.run({"messages": [Message.user(str(n)) for n in range(40)]}, lineage=lineage)
    for number in range(50):
        await executor.run({"metadata": {"n": number}, "one_shot_messages": [Message.user("x")]}, lineage=lineage)
        await executor.edit(lineage, None, {"messages": [Message.user(str(n)) for n in range(40)]})
    await executor.run({"user_input": "last"}, lineage=lineage)
    read_rows: list[Any] = []
    load = executor.store.load

    async def counted(*args: Any, **kwargs: Any) -> Any:
        read_rows.append(args)
        return await load(*args, **kwargs)

    executor.store.load = counted  # type: ignore[method-assign]
    rows = await explained_request(executor, lineage, None, "ask")
    assert [row.origin for row in rows] == ["input"] * 40
    assert len(read_rows) < 30
