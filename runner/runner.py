"""The Runner: an app's agents with the services around them, and the runs that go on."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import anyio

from graphagent.agents.agent import Agent
from graphagent.agents.invocation import RunOptions, Services
from graphagent.agents.projector import Projector
from graphagent.checkpoint.memory import MemoryCheckpoints
from graphagent.checkpoint.store import CheckpointStore
from graphagent.errors import NotFound, RunError, RunInterrupted, UsageError, alternatives
from graphagent.execution import CodeExecutor
from graphagent.ids import fresh_id
from graphagent.ledger import Event, SessionKey
from graphagent.messages import Message
from graphagent.services import ArtifactService, MemoryService, SessionService
from graphagent.skills import SkillRepository
from processors import Compaction
from runner.agents import AgentFactory, Agents
from runner.context.guard import guard_for
from runner.held import HELD, HeldSessions
from runner.jobs import Jobs
from runner.lifecycle import Conduct, House
from runner.memory.job import MemoryExtraction
from runner.memory.worker import memory_worker
from runner.outcome import OUTCOME
from runner.plugins import Plugin, Plugins
from runner.removal import remove_session
from runner.run_state import RunState, RunStatus
from runner.sessions import InMemorySessions
from runner.summary.upkeep import SummaryOptions, Upkeep, as_options, default_projector
from runner.summary.values import Summarizer
from runner.tasks import start_task
from runner.turns import OnConflict, Turns
from runner.user_turn import Said, said_messages

_log = logging.getLogger(__name__)

NO_OPTIONS = RunOptions()


@dataclass(frozen=True, slots=True)
class RunnerPolicy:
    """How a Runner deals with its runs.

    `on_conflict`: what a run does that finds its session taken: it is refused with SessionBusy (`reject`), waits its
    turn (`queue`), or ends those before it (`cancel_previous`). `keep_partial`: what an assistant had said when the
    run was cut off goes into the session. `close_timeout`: seconds that `close` waits for jobs after runs.
    `held_events`: of the sessions of the last runs so many events stay at hand (some 3 KB each), so that the next run
    in one of them reads only what has come since.
    """

    on_conflict: OnConflict = "reject"
    keep_partial: bool = True
    close_timeout: float = 30.0
    held_events: int = HELD

    def __post_init__(self) -> None:
        if self.on_conflict not in get_args(OnConflict):
            known = alternatives(str(self.on_conflict), get_args(OnConflict))
            raise UsageError(f"on_conflict={self.on_conflict!r} is unknown: {known}")


class Runner:
    """Runs agents on what users say, in sessions.

    `agent`: who runs unless a run says otherwise, or an agent has asked for the person's next message
    (`await_user_reply`); `agents`: others, to be named by a run; `factories`: what makes an agent of that name for each
    run of it (`AgentFactory`), to be closed after the run; `agent` may be such a name. `sessions`, `checkpoints`: None
    keeps them in memory, and the Runner closes those; the ones it is given stay open. Runners that share a
    checkpoint store, in whatever processes, never run in one session at the same time. `projector`: what agents see
    of a session; None takes the default pipeline. `summaries`: how the summaries of sessions are made, which then stand
    for the events that they cover; what makes them will do. `compaction`: how results of tools are
    shortened in requests. `extraction`: how `memory` is kept from what was said,
    after each run. `executor`, `skills`: where programs run and where skills are, for tools and nodes that have none of
    their own; they stay open. Use it on one event loop, and close it: `async with Runner(...)`. Raises UsageError for
    plugins without a name or with one name, and for an extraction without a memory, AgentError for agents with one
    name.
    """

    def __init__(
        self,
        app_name: str,
        agent: Agent | str,
        *,
        sessions: SessionService | None = None,
        memory: MemoryService | None = None,
        artifacts: ArtifactService | None = None,
        checkpoints: CheckpointStore | None = None,
        executor: CodeExecutor | None = None,
        skills: SkillRepository | None = None,
        plugins: Sequence[Plugin] = (),
        agents: Iterable[Agent] = (),
        factories: Mapping[str, AgentFactory] | None = None,
        projector: Projector | None = None,
        summaries: SummaryOptions | Summarizer | None = None,
        compaction: Compaction | None = None,
        extraction: MemoryExtraction | None = None,
        policy: RunnerPolicy | None = None,
    ) -> None:
        self.app_name = app_name
        self.agent = agent
        self.policy = policy or RunnerPolicy()
        self.sessions: SessionService = InMemorySessions() if sessions is None else sessions
        self._owned = sessions is None
        self._plugins = Plugins(plugins)
        self._jobs = Jobs()
        self._runs: dict[str, RunState] = {}
        self._closing = False
        kept: CheckpointStore = MemoryCheckpoints() if checkpoints is None else checkpoints
        self.summaries = None if summaries is None else Upkeep(self.sessions, as_options(summaries))
        self.extraction = None if extraction is None else memory_worker(self.sessions, memory, extraction)
        projector = projector or default_projector(summaries is not None, compaction)
        guard = guard_for(self.summaries, compaction)
        self.services = Services(self.sessions, memory, artifacts, kept, projector, guard, executor, skills)
        self._checkpoints = kept
        self._turns = Turns(kept, self.policy.on_conflict)
        self._house = House(
            app=app_name,
            sessions=self.sessions,
            services=self.services,
            agents=Agents(agent, agents, factories or {}),
            plugins=self._plugins,
            turns=self._turns,
            jobs=self._jobs,
            held=HeldSessions(self.sessions, self.policy.held_events),
            keep_partial=self.policy.keep_partial,
            upkeep=self.summaries,
            extraction=self.extraction,
        )

    # -- running ---------------------------------------------------------------------------------

    async def run(
        self, user_id: str, session_id: str, message: Said, options: RunOptions = NO_OPTIONS
    ) -> AsyncGenerator[Event, None]:
        """The events of one run, partial ones included; the last is its completion, which says the outcome.

        The session is made if need be, and what the user said is in it before the agent begins. `message` None goes
        on with an interrupted run (`options.answers`), or with one that was cut off. A reader that leaves the loop
        cancels the run, and waits until nothing of it runs any more, unless `options.detached`: then it goes on and
        is reached with `cancel` and `status`. A reader that is behind holds the run up.

        Raises what keeps a run from beginning: UsageError (a request id that is in use, an empty message), SessionBusy,
        AgentError (no such agent), ServiceError. After that the end is an event, and only what an agent itself lets
        out, against its promise, is raised after the completion.
        """
        run = self._begin(user_id, session_id, message, options)
        channel = run.channel
        try:
            while True:
                try:
                    event = await channel.get()
                except anyio.EndOfStream:
                    break
                yield event
        finally:
            channel.leave()
            if not run.over.is_set() and not options.detached:
                run.cancel("the reader has left")
                with anyio.CancelScope(shield=True):
                    await run.over.wait()
        if run.error is not None:
            raise run.error

    async def run_text(self, user_id: str, session_id: str, message: Said, options: RunOptions = NO_OPTIONS) -> str:
        """The answer of one run as text. Raises RunInterrupted if it waits for answers, RunError for any other end
        than completed, and what `run` raises."""
        text = ""
        last = Event()
        async for event in self.run(user_id, session_id, message, options):
            if event.is_final and event.kind == "message" and event.text:
                text = event.text
            last = event
        outcome = last.extensions[OUTCOME]
        if outcome == "interrupted":
            keys = ", ".join(f"'{one.get('key')}'" for one in last.interrupts)
            raise RunInterrupted(f"the run waits for {keys}: answer with RunOptions(answers=...)", last.interrupts)
        if outcome != "completed":
            why = last.error.message if last.error is not None else str(last.extensions)
            raise RunError(f"the run of agent '{last.branch}' is {outcome}: {why}")
        return text

    def _begin(self, user_id: str, session_id: str, message: Said, options: RunOptions) -> RunState:
        if self._closing:
            raise UsageError(f"the runner of app '{self.app_name}' is closed: make a new one")
        said = said_messages(message)
        if said and options.answers is not None:
            raise UsageError("a run was given a message and answers: answer with message=None, then say more")
        if not said and options.answers is None:
            options = replace(options, answers={})
        request_id = fresh_id() if options.request_id is None else options.request_id
        if not request_id:
            raise UsageError("the request id is empty: leave it out, or give one")
        if request_id in self._runs:
            raise UsageError(f"request id '{request_id}' is in use by a run that goes on: give each run its own")
        run = RunState(request_id, SessionKey(self.app_name, user_id, session_id), said, options)
        work = Conduct(self._house, run).go(self._forget)
        self._runs[request_id] = run
        start_task(work, f"run {request_id}")
        return run

    def _forget(self, run: RunState) -> None:
        del self._runs[run.request_id]

    # -- reaching a run --------------------------------------------------------------------------

    async def cancel(self, request_id: str, *, when: Literal["now", "after_step"] = "now") -> bool:
        """End a run; returns when nothing of it runs any more, False if there is none with this id.

        `after_step`: not before what it does now (an answer, a round of tool calls) is in the session.
        """
        run = self._runs.get(request_id)
        if run is None:
            return False
        if when == "after_step":
            run.stop_after_step = True
        else:
            run.cancel("on request")
        await run.over.wait()
        return True

    def status(self, request_id: str) -> RunStatus | None:
        """What is known of a run that has not ended; None if there is none with this id."""
        run = self._runs.get(request_id)
        return None if run is None else run.status()

    def say(self, request_id: str, message: str | Message) -> None:
        """Something a user says while a run goes on: its agent reads it before its next call of a model.

        Raises NotFound if there is no such run, UsageError for an empty message or another role than `user`.
        """
        run = self._runs.get(request_id)
        if run is None:
            raise NotFound(f"no run with request id '{request_id}' goes on: say it in a new run")
        [said] = said_messages(message)
        if said.role != "user":
            raise UsageError(f"a message of role '{said.role}' can't be said to a run that goes on; give a 'user' one")
        run.queued.append(said)

    # -- sessions --------------------------------------------------------------------------------

    async def delete_session(self, user_id: str, session_id: str) -> bool:
        """Remove a session and the checkpoints of its runs; False if there was none. Raises SessionBusy while a run
        goes on in it."""
        key = SessionKey(self.app_name, user_id, session_id)
        return await remove_session(self.sessions, self._checkpoints, self._turns, key)

    # -- the end ---------------------------------------------------------------------------------

    async def close(self) -> None:
        """Cancel the runs that go on, wait for the jobs after runs, close plugins and what the Runner made itself;
        harmless twice."""
        if self._closing:
            return
        self._closing = True
        runs = list(self._runs.values())
        for run in runs:
            run.cancel("the runner closes")
        for run in runs:
            await run.over.wait()
        if not await self._jobs.drain(self.policy.close_timeout):
            _log.warning("jobs after runs of app '%s' had not ended when the runner closed", self.app_name)
        if self.summaries is not None and not await self.summaries.close(self.policy.close_timeout):
            _log.warning("summaries of app '%s' were not made before the runner closed", self.app_name)
        if self.extraction is not None and not await self.extraction.close(self.policy.close_timeout):
            _log.warning("sessions of app '%s' were not looked at for memories before the runner closed", self.app_name)
        await self._plugins.aclose()
        if self._owned:
            await self.sessions.aclose()

    async def __aenter__(self) -> Runner:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
