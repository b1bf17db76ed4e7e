"""One run from what a person said to its completion: the order of spec/context section 4, in `Conduct.go`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

import anyio
import anyio.lowlevel

from graphagent.agents.agent import Agent
from graphagent.agents.invocation import Invocation, Services
from graphagent.errors import CheckpointNotFound, UsageError
from graphagent.ledger import Event, Session, TokenUsage
from graphagent.messages import Message
from graphagent.patience import at_most
from graphagent.services import SessionService
from runner.admission import admit
from runner.agents import AgentRequest, Agents, Taken
from runner.going_on import taken_up
from runner.held import HeldSessions
from runner.jobs import Jobs
from runner.memory.worker import MemoryWorker
from runner.outcome import DISCARDED, UNREAD, completion, ending_of, error_info, total
from runner.partial_text import PartialText, is_partial_answer
from runner.persistence import Ledger, with_apology
from runner.plugins import Plugins
from runner.routing import Wanted, wanted_agent, with_route
from runner.run_state import RunState
from runner.summary.turn import SummaryTurn
from runner.summary.upkeep import Upkeep
from runner.turns import Turns
from runner.user_turn import QUEUED, open_session, said_events, seed_events, stamp

_log = logging.getLogger(__name__)

WIND_UP = 10.0
"""Seconds that a run which was cut off may work to store what is left of it."""


@dataclass(frozen=True, slots=True)
class House:
    """What a Runner gives to each of its runs. `keep_partial`: text of an answer that was cut
    off goes into the session; `held`: sessions of the last runs; `upkeep`: of their summaries;
    `extraction`: takes memories from them."""

    app: str
    sessions: SessionService
    services: Services
    agents: Agents
    plugins: Plugins
    turns: Turns
    jobs: Jobs
    held: HeldSessions
    keep_partial: bool = True
    upkeep: Upkeep | None = None
    extraction: MemoryWorker | None = None


class Conduct:
    """Conducts one run in a task of its own."""

    def __init__(self, house: House, run: RunState) -> None:
        self._house = house
        self._run = run
        self._plugins = house.plugins.and_more(run.options.plugins)
        self._partial = PartialText()
        self._wanted: Wanted | Agent | None = None
        self._taken: Taken | None = None
        self._invocation: Invocation | None = None
        self._ledger: Ledger | None = None
        self._last: Event | None = None
        self._usage: list[TokenUsage] = []
        self._state: Mapping[str, Any] = {}
        self._failed = False
        self._discarded = False

    async def go(self, forget: Callable[[RunState], None]) -> None:
        """The whole run. However it ends, its reader gets a completion, or the error that kept it from beginning.

        `forget`: called before the completion goes out, so that whoever has read it can begin the next run.
        """
        run = self._run
        late: list[Event] = []
        try:
            with run.scope:
                if run.options.max_seconds is not None:
                    run.scope.deadline = anyio.current_time() + run.options.max_seconds
                async with self._house.turns.hold(run):
                    run.phase = "running"
                    try:
                        await self._act()
                    except Exception as error:
                        run.error = error
                    finally:
                        with at_most(WIND_UP, shield=True):
                            late = await self._wind_up()
                        if self._taken is not None:
                            with at_most(WIND_UP, shield=True):
                                await self._taken.close()
        except Exception as error:
            run.error = run.error or error
        finally:
            forget(run)
            try:
                self._complete(late)
                await self._remember()
            finally:
                run.channel.end()
                run.over.set()

    # -- the way there ---------------------------------------------------------------------------

    async def _act(self) -> None:
        house = self._house
        session = await open_session(house.sessions, self._run.key, house.held.take(self._run.key))
        house.held.put(session)
        agent = await self._agent(session)
        said = await self._plugins.messages(session, self._run.said)
        invocation = self._invocation = await taken_up(self._invite(agent, session, said))
        self._run.invocation_id = invocation.id
        invocation = self._invocation = await admit(invocation)
        await self._store_turn(invocation, session, said)
        self._run.begun = True
        await self._let_run(invocation)

    async def _agent(self, session: Session) -> Agent:
        run, agents = self._run, self._house.agents
        self._wanted = wanted_agent(run.options.agent, session, run.said, agents.has)
        request = AgentRequest("", session, run.request_id, run.options)
        self._taken = await agents.take(self._wanted, request)
        run.agent = self._taken.agent
        return run.agent

    def _invite(self, agent: Agent, session: Session, said: tuple[Message, ...]) -> Invocation:
        run, options = self._run, self._run.options
        upkeep = self._house.upkeep
        turn = None if upkeep is None else SummaryTurn(upkeep, run.key, run.request_id, run.started_at)
        invocation = Invocation(
            agent=agent,
            message=said[-1] if said else None,
            session=session,
            request_id=run.request_id,
            branch=agent.name,
            filter_key=self._house.app if options.filter_key is None else options.filter_key,
            options=options,
            services=self._house.services,
            persist=self._persist,
            queued=self._take_queued,
            hooks=self._plugins.hooks() if turn is None else turn.hooks(self._plugins.hooks()),
        )
        lenient = getattr(agent, "on_append_failure", "fail") == "continue"
        stored = None if turn is None else turn.stored
        self._ledger = Ledger(
            self._house.sessions, run.key, self._prepare, self._to_store, lenient=lenient, stored=stored
        )
        return invocation

    async def _store_turn(self, invocation: Invocation, session: Session, said: tuple[Message, ...]) -> None:
        """The person's turn is in the session before the agent begins."""
        events = seed_events(invocation, said) if not session.events else []
        now = [with_route(event, session, self._wanted) for event in said_events(invocation, said)]
        for event in [*events, *now]:
            told = await self._plugins.before_append(invocation, event)
            if told is not None:
                session.events.append(await self._house.sessions.append(self._run.key, told))

    # -- the agent's part ------------------------------------------------------------------------

    async def _let_run(self, invocation: Invocation) -> None:
        assert self._ledger is not None
        try:
            instead = await self._plugins.before_agent(invocation)
            if instead is not None:
                await self._pass_on(instead)
                return
            async with aclosing(cast(Any, invocation.agent.run(invocation))) as events:
                async for event in events:
                    await self._pass_on(event)
            for event in await self._plugins.after_agent(invocation):
                await self._pass_on(event)
        except Exception as error:
            if self._cut:
                _log.debug("an agent that was being cancelled raised", exc_info=True)
                return
            refused = isinstance(error, UsageError | CheckpointNotFound) and not self._run.said
            if refused and self._last is None:
                self._run.begun = False  # such as answers that fit no question: nothing was stored
                raise
            if not any(error is known for known in self._ledger.failures):
                self._run.error = error
            self._failed = True
            await self._admit_late(Event(kind="error", error=error_info(error)))

    async def _pass_on(self, event: Event) -> None:
        run, ledger = self._run, self._ledger
        assert ledger is not None
        if event.kind == "completion":  # goes out with the one of the run
            self._state = event.extensions or self._state
            return
        told = await ledger.hand_out(event)
        if told is None:
            return
        self._partial.take(told)
        if not told.partial:
            self._last = told
        run.event_count += 1
        run.last_event_at = time.time()
        await run.send(told)
        await self._stop_after(told)

    async def _stop_after(self, event: Event) -> None:
        """End the run here if that was asked for: an answer is complete, or a round of tools."""
        if self._run.stop_after_step and not event.partial and self._ledger and not self._ledger.in_a_round:
            self._run.cancel("stopped after a step")
            await anyio.lowlevel.checkpoint()

    async def _persist(self, event: Event) -> None:
        """What a node calls before its activation counts as finished."""
        ledger = self._ledger
        assert ledger is not None
        await ledger.admit(event)
        await self._stop_after(event)

    async def _take_queued(self) -> tuple[Message, ...]:
        """What the person has said meanwhile, stored and shown to the reader."""
        said, self._run.queued = tuple(self._run.queued), []
        assert self._invocation is not None
        for event in said_events(self._invocation, said):
            marked = event.model_copy(update={"extensions": {**event.extensions, QUEUED: "consumed"}})
            await self._pass_on(marked)
        return said

    async def _prepare(self, event: Event) -> Event:
        assert self._invocation is not None
        stamped = stamp(event, self._invocation)
        if stamped.usage is not None and not stamped.partial:
            self._usage.append(stamped.usage)
        changed = await self._plugins.event(self._invocation, stamped)
        if changed.error is not None and not changed.partial and not changed.has_content:
            for cut in self._partial.left("error", branch=changed.branch):  # it came before the error
                await self._admit_late(cut)
        return with_apology(changed)

    async def _to_store(self, event: Event) -> Event | None:
        assert self._invocation is not None
        if is_partial_answer(event) and not self._house.keep_partial:
            self._discarded = True
            return None
        return await self._plugins.before_append(self._invocation, event)

    # -- the end ---------------------------------------------------------------------------------

    async def _wind_up(self) -> list[Event]:
        """Store what a run that was cut off leaves behind; returns what its reader has not seen of it."""
        ledger = self._ledger
        if ledger is None or not self._run.begun:
            return []
        for event in ledger.unseen():
            self._partial.take(event)
        cut = self._cut
        if cut or self._failed or (self._last is not None and self._last.error is not None):
            for event in [*self._partial.left(cut or "error"), *(ledger.cancelled_results() if cut else ())]:
                await self._admit_late(event)
        return await ledger.settle()

    @property
    def _cut(self) -> str:
        """Why the run was cut off; empty if it was not."""
        return self._run.cancelled or ("time" if self._run.scope.cancel_called else "")

    async def _admit_late(self, event: Event) -> None:
        """Store an event of the end; the reader gets it with the last ones. A failure is the ledger's to tell."""
        assert self._ledger is not None
        try:
            self._last = await self._ledger.admit(event)
        except Exception:
            _log.debug("an event of the end of a run was not stored at once", exc_info=True)

    def _complete(self, late: list[Event]) -> None:
        """Hand out the last events, and have the jobs done that come after a run."""
        run, house, ledger, invocation = self._run, self._house, self._ledger, self._invocation
        for event in late:
            run.send_last(event)
        if run.error is not None and not run.begun:
            return
        ending = ending_of(self._last, cancelled=run.cancelled, late=self._cut == "time", error=run.error)
        more: dict[str, Any] = {**self._state, **({DISCARDED: True} if self._discarded else {})}
        if run.queued:
            more[UNREAD] = [message.text for message in run.queued]
        failures = ledger.failures if ledger is not None else ()
        last = completion(ending, house.app, failures=failures, more=more)
        fields: dict[str, Any] = {"request_id": run.request_id, "usage": total(self._usage)}
        if invocation is not None:
            fields |= {"invocation_id": invocation.id, "branch": invocation.branch, "filter_key": invocation.filter_key}
        if self._last is not None and ending.outcome == "interrupted":
            fields["interrupts"] = self._last.interrupts
        last = last.model_copy(update=fields)
        if invocation is not None and run.begun:
            for name, job in self._plugins.after_run(invocation, last):
                house.jobs.submit(run.key, f"after_run of plugin '{name}'", job)
        run.send_last(last)

    async def _remember(self) -> None:
        """Have the session looked at for memories, in the background if there is room for it."""
        worker, run = self._house.extraction, self._run
        if worker is not None and self._invocation is not None and run.begun:
            await worker.enqueue(run.key, run.request_id, cancelled=bool(self._cut))
