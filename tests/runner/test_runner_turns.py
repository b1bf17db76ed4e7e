"""One run at a time in a session: public fault reports C146, C148, C151 and C153, seen from the Runner."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.run_agents import APP, KEY, SESSION, USER, Told, all_of, outcome, piece, says, stored, texts

from graphagent import MemoryCheckpoints, Message, SqlCheckpoints, ToolCall
from graphagent.agents.invocation import Invocation, RunOptions
from graphagent.errors import SessionBusy
from graphagent.ledger import Event
from runner import Runner, RunnerPolicy
from runner.outcome import REASON
from runner.sessions import SqlSessions

pytestmark = pytest.mark.anyio


async def tool_turn(invocation: Invocation) -> AsyncIterator[Event]:
    """One tool call, its result, and an answer, with turns of the event loop in between."""
    assert invocation.message is not None
    about = invocation.message.text
    call = ToolCall(id=f"call-{about}", name="look", arguments={})
    yield Event(messages=(Message.assistant("", tool_calls=(call,)),))
    await (anyio.sleep_forever() if about == "stuck" else anyio.sleep(0.01))
    yield Event(kind="tool_result", messages=(Message.tool(f"seen {about}", call.id),))
    await anyio.sleep(0.01)
    yield says(f"re {about}")


def turns_of(events: list[Event]) -> list[list[str]]:
    """What was said in each turn; a turn begins with the user."""
    turns: list[list[str]] = []
    for event in events:
        if event.author == "user":
            turns.append([])
        turns[-1].append(event.text)
    return turns


def turn(about: str) -> list[str]:
    """A whole turn of `tool_turn`."""
    return [about, "", f"seen {about}", f"re {about}"]


async def two_at_once(runner: Runner, first: str = "a") -> list[list[Event] | Exception]:
    """Two runs in one session, the second 5 ms after the first."""
    got: list[list[Event] | Exception] = []

    async def one(about: str) -> None:
        try:
            got.append(await all_of(runner, about))
        except SessionBusy as error:
            got.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(one, first)
        await anyio.sleep(0.005)
        group.start_soon(one, "b")
    return got


async def test_c146_reject() -> None:
    """The second run is refused and leaves no trace; the third message works."""
    async with Runner(APP, Told(tool_turn)) as runner:
        got = await two_at_once(runner)
        assert isinstance(got[0], SessionBusy)
        assert "on_conflict='queue'" in str(got[0])
        await all_of(runner, "c")
        assert turns_of((await stored(runner)).events) == [turn("a"), turn("c")]


async def test_c146_queue() -> None:
    """The second run waits its turn; runs that wait go in the order in which they came."""
    async with Runner(APP, Told(tool_turn), policy=RunnerPolicy("queue")) as runner:
        await two_at_once(runner)
        async with anyio.create_task_group() as group:
            for about in "cdef":
                group.start_soon(all_of, runner, about)
                await anyio.wait_all_tasks_blocked()
        assert turns_of((await stored(runner)).events) == [turn(about) for about in "abcdef"]


async def test_c146_cancel_previous() -> None:
    """The first run is cancelled, its call gets a result, and the history has two well-formed turns."""
    async with Runner(APP, Told(tool_turn), policy=RunnerPolicy("cancel_previous")) as runner:
        first, _second = await two_at_once(runner, "stuck")
        assert isinstance(first, list)
        assert outcome(first) == "cancelled"
        assert "superseded by" in first[-1].extensions[REASON]
        await all_of(runner, "c")
        cut, *others = turns_of((await stored(runner)).events)
        assert cut[:2] == ["stuck", ""]
        assert "cancelled" in cut[2]
        assert others == [turn("b"), turn("c")]


@pytest.mark.parametrize("on_conflict", ["reject", "queue", "cancel_previous"])
async def test_c146_two_runners_on_one_store(on_conflict: Any) -> None:
    """The policy also holds between runners that share a checkpoint store: their turns don't mix."""
    kept = MemoryCheckpoints()
    first = Runner(APP, Told(tool_turn), checkpoints=kept)
    policy = RunnerPolicy(on_conflict)
    second = Runner(APP, Told(tool_turn), checkpoints=kept, sessions=first.sessions, policy=policy)
    got: list[Event] = []

    async def begin() -> None:
        got.extend(await all_of(first, "stuck" if on_conflict == "cancel_previous" else "a"))

    async with first, second, anyio.create_task_group() as group:
        group.start_soon(begin)
        await anyio.sleep(0.005)
        if on_conflict == "reject":
            with pytest.raises(SessionBusy, match="in this process"):
                await all_of(second, "b")
        else:
            assert outcome(await all_of(second, "b")) == "completed"
    expected = {"reject": [turn("a")], "queue": [turn("a"), turn("b")]}
    turns = turns_of((await stored(first)).events)
    if on_conflict == "cancel_previous":
        assert outcome(got) == "cancelled"
        assert turns[1:] == [turn("b")]
    else:
        assert turns == expected[on_conflict]


WORKER = """
import sys, anyio
sys.path[:0] = {path!r}
from support.run_agents import APP, Told, all_of
from test_runner_turns import tool_turn
from graphagent import SqlCheckpoints
from runner import Runner, RunnerPolicy
from runner.sessions import SqlSessions

async def main(url, name):
    async with SqlCheckpoints(url) as kept:
        sessions = SqlSessions(url)
        async with Runner(APP, Told(tool_turn), sessions=sessions, checkpoints=kept, policy=RunnerPolicy("queue")) as r:
            for number in range(5):
                await all_of(r, f"{{name}}{{number}}", session={session!r})
        await sessions.aclose()

anyio.run(main, *sys.argv[1:])
"""


async def test_c146_over_processes(database: str, lineage: str) -> None:
    """Two processes talk in one session at the same time: every stored turn is whole, and none is missing."""
    path = [str(Path(__file__).parent), str(Path(__file__).parent.parent), str(Path(__file__).parent.parent.parent)]
    source = WORKER.format(path=path, session=lineage)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for name in ("x", "y"):
                group.start_soon(anyio.run_process, [sys.executable, "-c", source, database, name])
    sessions = SqlSessions(database)
    found = await sessions.get(KEY._replace(session=lineage))
    await sessions.aclose()
    assert found is not None
    turns = turns_of(found.events)
    assert sorted(turns) == sorted(turn(f"{name}{number}") for name in "xy" for number in range(5))
    for one, other in pairwise([turn_[0] for turn_ in turns if turn_[0].startswith("x")]):
        assert one < other


async def test_c148_many_events_in_one_instant() -> None:
    """Fifty events with the same time stamp are all accepted, in order."""

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        for number in range(50):
            yield says(str(number), timestamp=1000.0)

    async with Runner(APP, Told(body)) as runner:
        assert outcome(await all_of(runner)) == "completed"
        assert [text for _, text in (await texts(runner))[1:]] == [str(number) for number in range(50)]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_c151_c153_others_write_to_the_session_during_a_run(kind: str, tmp_path: Path) -> None:
    """A tool appends an event, a client changes the state, the agent writes both: nothing is out of date or lost."""
    sessions = SqlSessions(f"sqlite:///{tmp_path}/a.db") if kind == "sqlite" else None

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        yield says("one", state_delta={"agent": 1})
        await runner.sessions.append(KEY, says("a note", author="tool", state_delta={"note": 2}))
        await runner.sessions.update_state(KEY, {"client": 3})
        yield says("two", state_delta={"agent": 4})

    async with Runner(APP, Told(body), sessions=sessions) as runner:
        assert outcome(await all_of(runner)) == "completed"
        assert [text for _, text in await texts(runner)] == ["hello", "one", "a note", "two"]
        assert (await stored(runner)).state == {"agent": 4, "note": 2, "client": 3}
        await runner.sessions.aclose()


async def test_a_run_that_waits_can_be_cancelled_and_is_forgotten() -> None:
    """A run that is cancelled while it waits ends as cancelled, stores nothing, and doesn't hold up those behind it."""
    go, reached = anyio.Event(), anyio.Event()

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        yield piece("x")
        reached.set()
        await go.wait()
        yield says("done")

    got: dict[str, list[Event]] = {}

    async def one(name: str) -> None:
        got[name] = await all_of(runner, name, request_id=name)

    async with Runner(APP, Told(body), policy=RunnerPolicy("queue")) as runner, anyio.create_task_group() as group:
        group.start_soon(one, "a")
        await reached.wait()
        for name in "bc":
            group.start_soon(one, name)
            await anyio.wait_all_tasks_blocked()
        status = runner.status("b")
        assert status is not None
        assert status.phase == "waiting"
        assert await runner.cancel("b")
        go.set()
    assert {name: outcome(events) for name, events in got.items()} == {
        "a": "completed",
        "b": "cancelled",
        "c": "completed",
    }
    assert [text for _, text in await texts(runner)] == ["a", "done", "c", "done"]


async def test_other_sessions_don_t_wait() -> None:
    """While a session is taken, another one of the same user runs."""
    go = anyio.Event()

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        assert invocation.session is not None
        if invocation.session.id == "slow":
            await go.wait()
        yield says("done")

    async with Runner(APP, Told(body)) as runner, anyio.create_task_group() as group:
        group.start_soon(lambda: all_of(runner, "x", "slow"))
        await anyio.wait_all_tasks_blocked()
        assert outcome(await all_of(runner, "x", "quick")) == "completed"
        go.set()


async def test_the_next_run_may_begin_when_the_completion_was_read() -> None:
    """Whoever reads the completion can start the next run at once, on every kind of store."""
    async with Runner(APP, Told([says("hi")])) as runner:
        for _ in range(3):
            async for event in runner.run(USER, SESSION, "x", RunOptions(request_id="same")):
                if event.kind == "completion":
                    break
        assert len(await texts(runner)) == 6


async def test_a_lease_leaves_no_lineage_behind(database: str, lineage: str) -> None:
    """The lease that stands for a session is no history: lists of lineages don't show it."""
    async with SqlCheckpoints(database) as kept, Runner(APP, Told([says("hi")]), checkpoints=kept) as runner:
        await all_of(runner, "x", session=lineage)
        assert not [name for name in await kept.lineages() if lineage in name]
