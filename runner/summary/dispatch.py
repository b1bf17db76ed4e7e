"""What an event calls for: the summary of its branch, and by the cascade that of the whole session.

Source: spec/context, 10.2 and 10.3.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

import anyio

from graphagent.ledger import WHOLE, SessionKey, is_below
from runner.summary.rolling import RollingSummary
from runner.summary.values import NO_CONTEXT, Attempt, SummaryContext


async def refresh(
    rolling: RollingSummary,
    key: SessionKey,
    trigger: str,
    *,
    force: bool = False,
    context: SummaryContext = NO_CONTEXT,
) -> tuple[Attempt, ...]:
    """Bring up to date what an event with this filter key calls for; the attempts in the order of the targets.

    Where all events of the session belong to the branch, one summary serves both: it is copied. Else both are made side
    by side; not the one of the whole session where the branch's forks its agent's request, which shows the branch only.
    """
    targets = rolling.policy.targets(trigger)
    if len(targets) == 1:
        scope = trigger if targets[0] != trigger else None
        return (await rolling.summarize(key, targets[0], force=force, context=replace(context, scope=scope)),)
    if not targets:
        return ()
    if await _is_all(rolling, key, trigger):
        first = await rolling.summarize(key, trigger, force=force, context=context)
        return (first, await rolling.copy(key, trigger, context=replace(context, scope=trigger)))
    if context.parent is not None and getattr(rolling.summarizer, "forks", False):
        return (await rolling.summarize(key, trigger, force=force, context=context),)
    found: dict[str, Attempt] = {}

    async def make(target: str, given: SummaryContext) -> None:
        found[target] = await rolling.summarize(key, target, force=force, context=given)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(make, trigger, context)
        tasks.start_soon(make, WHOLE, replace(context, parent=None, parent_events=frozenset(), scope=trigger))
    return tuple(found[target] for target in targets)


async def _is_all(rolling: RollingSummary, key: SessionKey, branch: str) -> bool:
    try:
        session = await rolling.read(key)
    except Exception:  # the attempts will say so
        return False
    return all(is_below(key, branch) for key in set(map(attrgetter("filter_key"), session.events)))
