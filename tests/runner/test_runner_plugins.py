"""Plugins of a Runner and of a run, and the jobs after runs: section 12 of spec/services."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.run_agents import APP, SESSION, USER, Told, all_of, outcome, piece, says, stored, texts

from graphagent import Message
from graphagent.agents.invocation import Invocation
from graphagent.errors import AgentError, UsageError
from graphagent.ledger import Event, Session
from runner import Plugin, Runner, RunnerPolicy
from runner.outcome import OUTCOME

pytestmark = pytest.mark.anyio


class Writes(Plugin):
    """Writes down what it sees, under its name."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    async def on_message(self, session: Session, message: Message) -> Sequence[Message] | None:
        self.log.append(f"{self.name} message {message.text}")
        return None

    async def before_agent(self, invocation: Invocation) -> Event | None:
        self.log.append(f"{self.name} before")
        return None

    async def on_event(self, invocation: Invocation, event: Event) -> Event | None:
        self.log.append(f"{self.name} event {event.text}")
        return None

    async def after_agent(self, invocation: Invocation) -> Event | None:
        self.log.append(f"{self.name} after")
        return None

    async def after_run(self, invocation: Invocation, completion: Event) -> None:
        self.log.append(f"{self.name} ran {completion.extensions[OUTCOME]}")

    async def aclose(self) -> None:
        self.log.append(f"{self.name} closed")


async def test_the_order_of_plugins() -> None:
    """Those of the Runner come before those of the run at every hook; only the Runner's are closed, the last first."""
    log: list[str] = []
    async with Runner(APP, Told([says("hi")]), plugins=[Writes("a", log), Writes("b", log)]) as runner:
        await all_of(runner, plugins=(Writes("c", log),))
    hooks = ("message hello", "before", "event hi", "after", "ran completed")
    assert log == [*(f"{name} {hook}" for hook in hooks for name in "abc"), "b closed", "a closed"]


@pytest.mark.parametrize(
    ("names", "message"), [(["a", "a"], "two plugins are called 'a'"), ([""], "plugin Writes has no name")]
)
async def test_names_of_plugins(names: list[str], message: str) -> None:
    """A plugin without a name, and two with one, are refused, by the Runner and by a run."""
    plugins = [Writes(name, []) for name in names]
    with pytest.raises(UsageError, match=message):
        Runner(APP, Told([]), plugins=plugins)
    async with Runner(APP, Told([])) as runner:
        with pytest.raises(UsageError, match=message):
            await all_of(runner, plugins=tuple(plugins))
        assert runner.status("r1") is None


class Does(Plugin):
    """Has hooks that are given."""

    def __init__(self, name: str = "does", **hooks: Any) -> None:
        self.name = name
        vars(self).update(hooks)


async def test_an_event_is_replaced_and_keeps_its_identity() -> None:
    """What `on_event` gives back is stored and handed out, with ids, author, branch and time of the first one."""

    async def shout(invocation: Invocation, event: Event) -> Event:
        return says(event.text.upper(), author="nobody") if not event.partial else piece(event.delta.upper())

    first = says("hi")
    async with Runner(APP, Told([piece("h"), first]), plugins=[Does(on_event=shout)]) as runner:
        events = await all_of(runner)
        assert [(event.author, event.text) for event in events[:-1]] == [("agent", "H"), ("agent", "HI")]
        assert events[1].id == first.id
        assert events[1].timestamp == first.timestamp
        assert await texts(runner) == [("user", "hello"), ("agent", "HI")]


async def test_a_failing_on_event_keeps_the_event(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with the plugin's name, and the run goes on."""

    async def fail(invocation: Invocation, event: Event) -> Event:
        raise ValueError("no")

    with caplog.at_level(logging.ERROR):
        async with Runner(APP, Told([says("hi")]), plugins=[Does(on_event=fail)]) as runner:
            assert outcome(await all_of(runner)) == "completed"
    assert "plugin 'does'" in caplog.text


@pytest.mark.parametrize("hook", ["before_agent", "after_agent", "before_append", "on_message"])
async def test_an_error_of_a_hook_names_the_plugin(hook: str) -> None:
    """Any other hook that raises ends the run with an AgentError that says whose hook it was."""

    async def fail(*args: Any) -> Any:
        raise ValueError("no")

    async with Runner(APP, Told([says("hi")]), plugins=[Does(**{hook: fail})]) as runner:
        with pytest.raises(AgentError, match="plugin 'does' failed: ValueError: no"):
            await all_of(runner)
        assert (("user", "hello") in await texts(runner)) is (hook in ("before_agent", "after_agent"))


async def test_a_plugin_stands_in_for_the_agent() -> None:
    """With an event of `before_agent` the agent doesn't run; the event is stored as the agent's."""

    async def instead(invocation: Invocation) -> Event:
        return says("closed today")

    told = Told([says("hi")])
    async with Runner(APP, told, plugins=[Does(before_agent=instead)]) as runner:
        assert await runner.run_text(USER, SESSION, "hello") == "closed today"
        assert told.invocations == []
        assert await texts(runner) == [("user", "hello"), ("agent", "closed today")]


async def test_a_plugin_adds_an_event() -> None:
    """An event of `after_agent` comes after the agent's."""

    async def more(invocation: Invocation) -> Event:
        return says("by the way")

    async with Runner(APP, Told([says("hi")]), plugins=[Does(after_agent=more)]) as runner:
        assert [event.text for event in await all_of(runner)] == ["hi", "by the way", ""]
        assert len(await texts(runner)) == 3


async def test_messages_are_rewritten_before_anything_is_stored() -> None:
    """All messages of the rewriter are the current turn, the last one is what the agent is asked; none is an error."""

    async def rewrite(session: Session, message: Message) -> list[Message]:
        return [] if message.text == "nothing" else [Message.user("context"), message]

    told = Told([says("hi")])
    async with Runner(APP, told, plugins=[Does(on_message=rewrite)]) as runner:
        await all_of(runner)
        assert told.invocations[0].message == Message.user("hello")
        assert [text for _, text in await texts(runner)] == ["context", "hello", "hi"]
        with pytest.raises(AgentError, match="plugin 'does' left nothing"):
            await all_of(runner, "nothing")
        assert len(await texts(runner)) == 3


async def test_jobs_after_runs_keep_order_and_are_done_before_the_end() -> None:
    """Jobs of a session run one after the other, also past one that fails; closing waits for all of them."""
    go = anyio.Event()
    done: list[str] = []

    async def job(invocation: Invocation, completion: Event) -> None:
        assert invocation.message is not None
        await go.wait()
        await anyio.lowlevel.checkpoint()
        done.append(invocation.message.text)
        if invocation.message.text == "a":
            raise ValueError("no")

    class After(Plugin):
        name = "after"
        after_run = staticmethod(job)  # type: ignore[assignment]

    async with Runner(APP, Told([says("hi")]), plugins=[After()]) as runner:
        for said in "abc":
            await all_of(runner, said)
        assert done == []
        go.set()
    assert done == ["a", "b", "c"]


async def test_closing_does_not_wait_for_ever() -> None:
    """A job that doesn't end holds up closing for as long as the policy says."""

    async def job(invocation: Invocation, completion: Event) -> None:
        await go.wait()

    class After(Plugin):
        name = "after"
        after_run = staticmethod(job)  # type: ignore[assignment]

    go = anyio.Event()
    with anyio.fail_after(5):
        async with Runner(APP, Told([]), plugins=[After()], policy=RunnerPolicy(close_timeout=0.01)) as runner:
            await all_of(runner)
    go.set()


async def test_a_run_that_did_not_begin_has_no_jobs() -> None:
    """After a run that was refused nothing is done."""
    log: list[str] = []
    async with Runner(APP, Told([]), plugins=[Writes("a", log)]) as runner:
        with pytest.raises(AgentError):
            await all_of(runner, agent="nobody")
    assert log == ["a closed"]
    assert (await stored(runner)).events == []
