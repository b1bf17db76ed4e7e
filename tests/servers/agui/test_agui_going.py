"""Runs of AG-UI that go on: one a thread, cancelled, left by their reader, and read again from a number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from agui_rules import events_of, verified
from agui_world import ANN, EVE, GatedModel, World, body, kinds, of, outcome, up
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphagent import LLMAgent, SqlCheckpoints
from graphagent.agents import ToolContext
from graphagent.agents.function_tool import tool
from graphagent.ledger import SessionKey
from graphagent.models import ScriptedModel
from runner.artifacts import InMemoryArtifacts
from runner.servers.agui.live import Buffer
from runner.servers.agui.part import AGUIServer
from runner.sessions import SqlSessions

pytestmark = pytest.mark.anyio


def text_of(events: list[dict[str, Any]]) -> str:
    """The text that a client puts together."""
    return "".join(event["delta"] for event in of(events, "TEXT_MESSAGE_CONTENT"))


async def until_asked(model: GatedModel, group: Any, world: World, answers: list[Any]) -> anyio.Event:
    """Begin a run, and wait until its model has said the first half; what is returned is set at its end."""
    over = anyio.Event()

    async def go() -> None:
        answers.append(await world.post("hi", "r1"))
        over.set()

    group.start_soon(go)
    await model.asked.wait()
    return over


async def test_case_59_one_run_a_thread() -> None:
    """A second run of a thread that runs is 409 and names the first; another thread runs; after the end it is taken."""
    model = GatedModel()
    async with up(LLMAgent("bob", model)) as world:
        answers: list[Any] = []
        async with anyio.create_task_group() as group:
            await until_asked(model, group, world, answers)
            refused = await world.post("again", "r2")
            assert refused.status_code == 409
            assert "'r1' goes on" in refused.text
            model.go.set()
            assert text_of(await world.events("other", "r3", thread="other")) == "Hello world"
        assert text_of(verified(events_of(answers[0].text))) == "Hello world"
        assert text_of(await world.events("again", "r4")) == "Hello world"


@pytest.mark.parametrize("policy", ["queue", "cancel_previous"])
async def test_other_policies_of_a_thread_that_runs(policy: Any) -> None:
    """The second run waits for the first, or ends it; each has its own whole stream."""
    model = GatedModel()
    async with up(LLMAgent("bob", model), AGUIServer(on_conflict=policy)) as world:
        answers: list[Any] = []
        async with anyio.create_task_group() as group:
            first_over = await until_asked(model, group, world, answers)
            second: list[Any] = []

            async def again() -> None:
                second.append(await world.events("again", "r2"))

            group.start_soon(again)
            if policy == "queue":
                await anyio.wait_all_tasks_blocked()
                assert not second
                model.go.set()
            else:
                await first_over.wait()
                model.go.set()
        first = verified(events_of(answers[0].text))
        assert outcome(first) == ("success" if policy == "queue" else "cancelled")
        assert outcome(second[0]) == "success"


async def test_case_64_a_cancelled_run_is_finished_and_a_late_one_is_an_error() -> None:
    """Cancel in mid-text ends the stream with the outcome `cancelled`, the text closed before; the time of a run that
    is up is RUN_ERROR. What was said stays in the thread."""
    model = GatedModel()
    async with up(LLMAgent("bob", model)) as world:
        answers: list[Any] = []
        async with anyio.create_task_group() as group:
            await until_asked(model, group, world, answers)
            told = await world.http.post("/agui/threads/t/cancel")
            assert told.json() == {"threadId": "t", "runId": "r1"}
        events = verified(events_of(answers[0].text))
        assert kinds(events)[-1] == "RUN_FINISHED"
        assert kinds(events).count("TEXT_MESSAGE_END") == 1
        assert outcome(events) == "cancelled"
        assert (await world.http.post("/agui/threads/t/cancel")).status_code == 404
        [snapshot] = of(await world.history(), "MESSAGES_SNAPSHOT")
        assert [one["content"] for one in snapshot["messages"]] == ["hi", "Hello "]
    async with up(LLMAgent("bob", GatedModel()), AGUIServer(seconds=0.2)) as world:
        late = await world.events("hi")
        assert late[-1]["type"] == "RUN_ERROR"


@pytest.mark.parametrize("on_leave", ["detach", "cancel"])
async def test_case_66_a_reader_that_leaves(on_leave: Any) -> None:
    """By default the run goes on and the thread has its end; or it is cancelled, and the thread has what was said."""
    model = GatedModel()
    async with up(LLMAgent("bob", model), AGUIServer(on_leave=on_leave)) as world:
        async with world.reading("hi") as events:
            async for event in events:
                if event["type"] == "TEXT_MESSAGE_CONTENT":
                    break
        if on_leave == "detach":
            model.go.set()
        told = verified(events_of((await world.http.get("/agui/threads/t/runs/r1/events")).text))
        assert outcome(told) == ("success" if on_leave == "detach" else "cancelled")
        [snapshot] = of(await world.history(), "MESSAGES_SNAPSHOT")
        said = "Hello world" if on_leave == "detach" else "Hello "
        assert [one["content"] for one in snapshot["messages"]] == ["hi", said]


async def test_case_67_the_history_of_a_thread() -> None:
    """RUN_STARTED, MESSAGES_SNAPSHOT, RUN_FINISHED; a result stands behind the message that called for it."""

    @tool
    async def look(what: str) -> str:
        """Look."""
        return f"seen {what}"

    model = ScriptedModel([{"tool_calls": [{"name": "look", "arguments": {"what": "it"}}]}, "done"])
    async with up(LLMAgent("bob", model, tools=[look])) as world:
        await world.events("go")
        events = await world.history()
        assert kinds(events) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
        messages = events[1]["messages"]
        assert [one["role"] for one in messages] == ["user", "assistant", "tool", "assistant"]
        assert messages[2]["toolCallId"] == messages[1]["toolCalls"][0]["id"]
        assert (await world.http.get("/agui/threads/none")).status_code == 404
        [row] = (await world.http.get("/agui/threads")).json()["threads"]
        assert (row["threadId"], row["runId"]) == ("t", None)


async def test_a_run_is_read_again_from_any_number() -> None:
    """The events after a number are those of the first stream, bit by bit; from 0 it is the whole stream; a number
    that no event has, and a run that there isn't, are told."""
    async with up(LLMAgent("bob", ScriptedModel([["a", "b", "c", "d"]]))) as world:
        answer = await world.post("hi")
        whole = answer.text
        blocks = [block for block in whole.split("\n\n") if block.strip()]
        place = "/agui/threads/t/runs/r1/events"
        assert (await world.http.get(place)).text == whole
        for number in range(1, len(blocks)):
            rest = (await world.http.get(place, headers={"last-event-id": str(number)})).text
            assert rest == "\n\n".join(blocks[number:]) + "\n\n"
        for bad in ("99", "-1", "x", "1" * 20):
            assert (await world.http.get(f"{place}?after={bad}")).status_code == 400
        assert (await world.http.get("/agui/threads/t/runs/none/events")).status_code == 404


async def test_c210_what_is_no_longer_kept_is_told_as_it_stands() -> None:
    """A reader that comes after the buffer has dropped the beginning, in the middle of an open text, gets a legal
    stream: the messages as they are, then the rest, never a silent gap."""
    pieces = [f"{n};" for n in range(40)]
    async with up(LLMAgent("bob", ScriptedModel([pieces])), AGUIServer(buffer=Buffer(events=5))) as world:
        await world.events("hi")
        place = "/agui/threads/t/runs/r1/events"
        for after in (0, 3, 20):
            told = events_of((await world.http.get(f"{place}?after={after}")).text)
            events = verified(told) if after == 0 else told
            assert events[-1]["type"] == "RUN_FINISHED"
            [snapshot] = of(events, "MESSAGES_SNAPSHOT")
            assert snapshot["messages"][-1]["content"] == "".join(pieces)


async def test_a_second_user_has_nothing_of_the_first() -> None:
    """Thread, run, artifact, question: for another user they are not there, and nobody gets anything without a key."""

    @tool(needs_approval=True)
    async def drop(context: ToolContext) -> str:
        """Drop."""
        assert context.invocation is not None
        assert context.invocation.session is not None
        return "dropped"

    artifacts = InMemoryArtifacts()
    model = ScriptedModel(lambda request: {"tool_calls": [{"name": "drop", "arguments": {}}]}
                          if request.messages[-1].role == "user" else "done")  # fmt: skip
    async with up(LLMAgent("bob", model, tools=[drop]), users=True, artifacts=artifacts) as world:
        first = await world.events("go")
        [asked] = first[-1]["outcome"]["interrupts"]
        await artifacts.save(SessionKey("app", "ann", "t"), "a.txt", b"secret")
        places = ["/agui/threads/t", "/agui/threads/t/runs/r1/events", "/agui/threads/t/artifacts",
                  "/agui/threads/t/artifacts/a.txt"]  # fmt: skip
        for place in places:
            assert (await world.http.get(place, headers=ANN)).status_code == 200, place
            assert (await world.http.get(place, headers=EVE)).status_code == 404, place
            assert (await world.http.get(place, headers={"Authorization": "x"})).status_code == 401, place
        assert (await world.http.post("/agui/threads/t/cancel", headers=EVE)).status_code == 404
        assert (await world.http.get("/agui/threads", headers=EVE)).json() == {"threads": []}
        entry = [{"interruptId": asked["id"], "status": "resolved", "payload": True}]
        stolen = await world.post([], "e1", resume=entry, headers=EVE)
        assert stolen.status_code == 400
        assert "no question is open" in stolen.text
        assert outcome(await world.resume({asked["id"]: True})) == "success"


async def test_questions_outlive_the_server(tmp_path: Path) -> None:
    """A thread waits; another server on the same database shows the question, and the answer goes on from there."""

    @tool(needs_approval=True)
    async def drop() -> str:
        """Drop."""
        return "dropped"

    def agent() -> LLMAgent:
        def answer(request: Any) -> Any:
            last = request.messages[-1]
            asks = {"tool_calls": [{"name": "drop", "arguments": {}}]}
            return asks if last.role == "user" else f"it is {last.text}"

        return LLMAgent("bob", ScriptedModel(answer), tools=[drop])

    url = f"sqlite:///{tmp_path}/agui.db"
    asked: dict[str, Any] = {}
    for turn in range(2):
        sessions = SqlSessions(url)
        async with SqlCheckpoints(url) as store, up(agent(), sessions=sessions, checkpoints=store) as world:
            if turn == 0:
                [asked] = (await world.events("go"))[-1]["outcome"]["interrupts"]
            else:
                [again] = (await world.history())[-1]["outcome"]["interrupts"]
                assert again["id"] == asked["id"]
                refused = await world.post("something else", "r2")
                assert refused.status_code == 409
                events = await world.resume({asked["id"]: True}, "r3")
                assert text_of(events) == "it is dropped"
                assert not of(events, "TOOL_CALL_START")
        await sessions.aclose()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("threadId", "runId", "messages", "tools", "state", "context", "resume", "forwardedProps", "parentRunId"), JSON
    ),
)


async def test_no_body_is_a_fault_of_the_server() -> None:
    """Bodies that are nearly right, each field anything at all, and paths of any kind: never a 500."""
    async with up(LLMAgent("bob", ScriptedModel(lambda request: "ok", keep_requests=False))) as world:
        for number, fields in enumerate(_examples(FIELDS, 120)):
            sent = {**body("hi", f"f{number}", thread=f"f{number}"), **fields}
            answer = await world.http.post("/agui", json=sent)
            assert answer.status_code < 500, (fields, answer.text)
        for name in _examples(st.text(min_size=1, max_size=12), 60):
            place = "".join(f"%{byte:02X}" for byte in name.encode("utf-8", "replace"))
            for path in (f"/agui/threads/{place}", f"/agui/threads/t/artifacts/{place}", f"/agui/{place}"):
                assert (await world.http.get(path)).status_code < 500, path
        for raw in (b"", b"{", b"[]", b"null", b"\xff", b'"x"', b"[" * 5000):
            answer = await world.http.post("/agui", content=raw, headers={"content-type": "application/json"})
            assert answer.status_code == 400, raw[:10]


def _examples(strategy: Any, count: int) -> list[Any]:
    """So many examples of a strategy, the same ones in each run."""
    found: list[Any] = []

    @settings(max_examples=count, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def take(one: Any) -> None:
        found.append(one)

    take()
    return found
