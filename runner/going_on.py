"""Where a run goes on that nothing new is said to: at its newest checkpoint, or with a turn that nobody began."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphagent.agents.graph_agent import GraphAgent, lineage_of
from graphagent.agents.invocation import Invocation
from graphagent.ledger import Event


async def taken_up(invocation: Invocation) -> Invocation:
    """The invocation as one of the turn that it goes on with: agents that begin only now are asked what the person
    asked, under its request id. One with a message is returned as it is.

    Where the process died after the person's words were stored and before the agent's first checkpoint, there is
    nothing to resume, so the turn begins now.
    """
    session = invocation.session
    if invocation.message is not None or session is None or not isinstance(invocation.agent, GraphAgent):
        return invocation
    here = [event for event in session.events if event.branch == invocation.branch]
    if here and here[-1] is session.events[-1] and not invocation.options.answers:
        said = here[-1]
        if _from_outside(said, session.events) and not await _has_begun(said, invocation):
            options = replace(invocation.options, answers=None)
            ids = said.invocation_id, said.request_id
            return replace(invocation, message=said.messages[-1], options=options, id=ids[0], request_id=ids[1])
    asked = next((event for event in reversed(here) if event.is_user), None)
    if asked is None:
        return invocation
    return replace(invocation, message=asked.messages[-1], request_id=asked.request_id)


async def _has_begun(said: Event, invocation: Invocation) -> bool:
    """Whether there is a checkpoint of this turn: one that is not older than the words. One process wrote both."""
    checkpoints, lineage = invocation.services.checkpoints, lineage_of(invocation)
    if checkpoints is None or lineage is None:
        return True
    newest = await checkpoints.history(lineage, invocation.branch, limit=1)
    return bool(newest) and newest[0].created_at >= said.timestamp


def _from_outside(event: Event, events: Sequence[Event]) -> bool:
    """Whether a person said it, or it is what somebody else answered to a call of an external tool."""
    external = {call for one in events for call in one.long_running_tool_ids}
    answered = {message.tool_call_id for message in event.messages}
    return event.is_user or (event.is_tool_result and answered <= external)
