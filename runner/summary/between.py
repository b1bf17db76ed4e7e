"""A long turn is summed up before it asks its model again."""

from __future__ import annotations

from graphagent.agents.guard import PendingCall
from graphagent.agents.invocation import Invocation
from graphagent.models.tokens import counter_for
from runner.summary.upkeep import Upkeep
from runner.summary.values import Attempt, SummaryContext


async def summarise_before_call(
    upkeep: Upkeep, invocation: Invocation, call: PendingCall, *, window: int | None = None
) -> Attempt | None:
    """Bring the summary of the agent's filter key up to date if the summariser finds it due, now and waited for; None
    without a session. `window`: None takes the model's. Raises nothing but a cancellation. The request has to be made
    anew where the attempt says `updated`. Source: spec/context, 10.4 and 13."""
    if invocation.session is None:
        return None
    forks = getattr(upkeep.rolling.summarizer, "forks", False)
    try:
        tokens: int | None = counter_for(call.model.name).request(call.request)
    except Exception:  # then the checks go by the text of the events
        tokens = None
    context = SummaryContext(
        model=call.model,
        window=window or getattr(call.model, "context_window", None),
        request_tokens=tokens,
        request_id=invocation.request_id,
        parent=call.request if forks else None,
    )
    return await upkeep.rolling.summarize(invocation.session.key, invocation.filter_key, context=context)
