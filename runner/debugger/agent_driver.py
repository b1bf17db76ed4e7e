"""How an agent's run is debugged: through the Runner, turn by turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphagent.agents.graph_agent import GraphAgent, session_lineage
from graphagent.agents.invocation import RunOptions, Services
from graphagent.engine.executor import Executor
from graphagent.engine.result import Interrupt, RunResult, Status
from graphagent.errors import RunError, UsageError
from graphagent.ledger import Event, SessionKey
from runner.outcome import OUTCOME
from runner.runner import Runner


class RunnerDriver:
    """Runs turns of one session. `agent`: the Runner's, whose graph is debugged."""

    def __init__(self, runner: Runner, agent: GraphAgent, user_id: str, session_id: str) -> None:
        self.executor: Executor = agent.executor(runner.services.checkpoints)
        self.lineage = session_lineage(SessionKey(runner.app_name, user_id, session_id))
        self.namespace = agent.name
        self._runner = runner
        self._user, self._session = user_id, session_id

    @property
    def services(self) -> Services:
        """What is around the runs of the Runner."""
        return self._runner.services

    async def start(self, input: Any) -> RunResult:
        """A turn: `input` is the text that the user says. Raises UsageError if it is none."""
        if not isinstance(input, str):
            raise UsageError(f"a turn of an agent begins with what the user says, a text, not {type(input).__name__}")
        return await self._turn(input, RunOptions())

    async def resume(self, answers: Mapping[str, Any], checkpoint: str | None = None) -> RunResult:
        """Go on with the turn. Raises UsageError for an older checkpoint: a session goes on from its newest."""
        if checkpoint is not None:
            raise UsageError("a session goes on from its newest checkpoint: 'fork' makes an older one the newest")
        return await self._turn(None, RunOptions(answers=dict(answers)))

    async def _turn(self, said: str | None, options: RunOptions) -> RunResult:
        last = Event()
        async for event in self._runner.run(self._user, self._session, said, options):
            last = event
        status: Status = last.extensions[OUTCOME]
        waits = tuple(Interrupt(**one) for one in last.interrupts)
        reason = last.error.message if last.error is not None else status
        error = RunError(reason) if status == "failed" else None
        state = await self.executor.state(self.lineage, namespace=self.namespace)
        heads = await self.executor.history(self.lineage, namespace=self.namespace, limit=1)
        return RunResult(
            status, reason, state, waits, heads[0].id if heads else None, error=error, lineage=self.lineage
        )
