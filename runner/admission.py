"""Whether a run may begin, asked before anything of it is stored."""

from __future__ import annotations

from dataclasses import replace

from graphagent.agents.graph_agent import GraphAgent, lineage_of
from graphagent.agents.invocation import Invocation
from graphagent.engine.executor import Executor
from graphagent.errors import InterruptedRunError


async def admit(invocation: Invocation) -> Invocation:
    """The invocation, known to leave no question open if it has something new to say to a graph; the caller holds the
    session. Raises InterruptedRunError for something new that is said while an agent's questions are open.

    The agent would refuse it too, but then it would stand in the session without an answer.
    """
    agent, options = invocation.agent, invocation.options
    goes_on = invocation.message is None or options.answers is not None
    if goes_on or options.abandon or not isinstance(agent, GraphAgent):
        return invocation
    checkpoints, lineage = invocation.services.checkpoints, lineage_of(invocation)
    if checkpoints is None or lineage is None:
        return invocation
    newest = await checkpoints.history(lineage, invocation.branch, limit=1)
    if newest and newest[0].source != "end":  # rarely: cheaper to see than which questions there are
        await _none_open(agent.executor(checkpoints), lineage, invocation)
    return replace(invocation, admitted=invocation.id)


async def _none_open(executor: Executor, lineage: str, invocation: Invocation) -> None:
    asked = await executor.interrupts(lineage, namespace=invocation.branch)
    if asked and invocation.session is not None:
        keys = ", ".join(f"'{one.key}'" for one in asked)
        raise InterruptedRunError(
            f"session '{invocation.session.id}' waits for {keys}: answer with message=None and "
            f"RunOptions(answers={{...}}), or say RunOptions(abandon=True) to give the question up"
        )
