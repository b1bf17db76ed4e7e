"""Random lives of a session with summaries, in two processes that fail and die, on every kind of store."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from support.rolling import ids_of, say
from support.summary_world import KEYS, Died, Process, faults_of

from graphagent.errors import ServiceError
from graphagent.ledger import SessionKey
from graphagent.services import SessionService
from graphagent.testing.service_help import fresh_key
from runner.sessions import InMemorySessions, SqlSessions
from runner.summary.dispatch import refresh

keys = st.sampled_from(KEYS)
processes = st.sampled_from([0, 1])


class World:
    """The event loop, and the store as two processes see it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stores: list[SessionService]) -> None:
        self.loop = loop
        self.stores = stores

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run to the end."""
        return self.loop.run_until_complete(work)


def machine(world: World) -> type[RuleBasedStateMachine]:
    """The machine over that world, a new session each time."""

    class Life(RuleBasedStateMachine):
        key: SessionKey
        processes: list[Process]

        @initialize()
        def begin(self) -> None:
            self.key = fresh_key()
            world.do(world.stores[0].create(*self.key))
            self.processes = [Process(store) for store in world.stores]

        @rule(filter_key=keys, person=st.booleans())
        def append(self, filter_key: str, person: bool) -> None:
            world.do(say(world.stores[0], self.key, "text", filter_key, person=person))

        @rule(filter_key=keys, who=processes, keep=st.integers(0, 2), force=st.booleans())
        def summarize(self, filter_key: str, who: int, keep: int, force: bool) -> None:
            process = self.processes[who]
            process.steered.keep = keep
            attempt = world.do(process.rolling.summarize(self.key, filter_key, force=force))
            process.steered.keep = 0
            assert attempt.outcome in ("updated", "nothing_new", "empty", "failed"), attempt

        @rule(trigger=keys, who=processes, said=st.lists(keys, max_size=2))
        def cascade(self, trigger: str, who: int, said: list[str]) -> None:
            process = self.processes[who]

            async def meanwhile(given: Any) -> str:
                while said:
                    await say(world.stores[1 - who], self.key, "meanwhile", said.pop())
                return ids_of(given)

            process.steered.text = meanwhile
            for attempt in world.do(refresh(process.rolling, self.key, trigger)):
                assert attempt.outcome in ("updated", "nothing_new"), attempt
            process.steered.text = ids_of

        @rule(filter_key=keys, who=processes, text=st.sampled_from(["", ValueError("no")]))
        def comes_to_nothing(self, filter_key: str, who: int, text: Any) -> None:
            process = self.processes[who]
            before = self.stored()
            process.steered.text = lambda given: text
            attempt = world.do(process.rolling.summarize(self.key, filter_key))
            process.steered.text = ids_of
            assert attempt.outcome in ("empty", "failed", "nothing_new")
            assert self.stored() == before

        @rule(filter_key=keys, who=processes)
        def cancelled(self, filter_key: str, who: int) -> None:
            process = self.processes[who]
            before = self.stored()

            async def cut() -> None:
                begun = asyncio.Event()

                async def hang() -> str:
                    begun.set()
                    await asyncio.sleep(60)
                    return "never"

                process.steered.text = lambda given: hang()
                task = asyncio.ensure_future(process.rolling.summarize(self.key, filter_key, force=True))
                await begun.wait()
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

            world.do(cut())
            process.steered.text = ids_of
            assert self.stored() == before

        @rule(filter_key=keys, who=processes, when=st.sampled_from(["before", "after"]), often=st.integers(1, 2))
        def the_store_refuses(self, filter_key: str, who: int, when: str, often: int) -> None:
            process = self.processes[who]
            process.store.flaws = [(when, lambda: ServiceError("out of order"))] * often
            attempt = world.do(process.rolling.summarize(self.key, filter_key))
            assert attempt.outcome != "overtaken"
            if attempt.outcome == "failed":
                assert often == 2
            process.store.flaws = []

        @rule(filter_key=keys, who=processes, when=st.sampled_from(["before", "after"]))
        def dies(self, filter_key: str, who: int, when: str) -> None:
            self.processes[who].store.flaws = [(when, lambda: Died())]
            with suppress(Died, BaseExceptionGroup):
                world.do(self.processes[who].rolling.summarize(self.key, filter_key))
            self.processes[who] = Process(world.stores[who])

        @rule(one=keys, other=keys, said=keys)
        def both_at_once(self, one: str, other: str, said: str) -> None:
            async def race() -> list[Any]:
                return await asyncio.gather(
                    self.processes[0].rolling.summarize(self.key, one),
                    self.processes[1].rolling.summarize(self.key, other),
                    say(world.stores[1], self.key, "meanwhile", said),
                )

            outcomes = [attempt.outcome for attempt in world.do(race())[:2]]
            assert set(outcomes) <= {"updated", "nothing_new"}, outcomes

        @rule(filter_key=keys, said=keys)
        def both_without_a_lease(self, filter_key: str, said: str) -> None:
            world.do(say(world.stores[0], self.key, "text", filter_key, person=True))
            both = [Process(store, leases=False) for store in world.stores]
            there, at_work = asyncio.Event(), 0

            async def meet(given: Any) -> str:
                nonlocal at_work
                at_work += 1
                await say(world.stores[0], self.key, "meanwhile", said)
                if at_work == 2:
                    there.set()
                await there.wait()
                return ids_of(given)

            async def race() -> list[Any]:
                for process in both:
                    process.steered.text = meet
                return await asyncio.gather(*(one.rolling.summarize(self.key, filter_key) for one in both))

            attempts = world.do(race())
            stored = self.stored()[filter_key]
            for attempt in attempts:  # two that say the same are both stored
                assert attempt.outcome == ("updated" if attempt.summary == stored else "overtaken")
            assert stored in [attempt.summary for attempt in attempts]

        @invariant()
        def nothing_is_hidden_or_twice(self) -> None:
            if hasattr(self, "key"):
                assert world.do(faults_of(world.stores[0], self.key)) == []

        def stored(self) -> Any:
            """The summaries."""
            session = world.do(world.stores[0].get(self.key))
            assert session is not None
            return session.summaries

    return Life


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A store that two processes have open."""
    loop = asyncio.new_event_loop()
    stores: list[Any]
    if request.param == "memory":
        stores = [InMemorySessions()] * 2
    else:
        sqlite = request.param == "sqlite"
        url = f"sqlite:///{tmp_path}/s.db" if sqlite else request.getfixturevalue("shared_postgres_url")
        stores = [SqlSessions(url), SqlSessions(url)]
    yield World(loop, stores)
    for store in stores:
        loop.run_until_complete(store.aclose())
    loop.close()


def test_no_event_is_hidden_uncovered_or_summed_up_twice(world: World) -> None:
    """Whatever fails, hangs, dies or comes at the same time: what a summary's boundary covers is what is in its text,
    each event once, and readers lose nothing that is in no summary."""
    run_state_machine_as_test(machine(world), settings=settings(max_examples=15, stateful_step_count=20, deadline=None))
