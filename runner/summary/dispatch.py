"""Which summaries a new event calls for: that of its branch, and that of the whole session by the cascade.

Source: spec/context, 10.2 and 10.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio

from graphagent.ledger import WHOLE, SessionKey, is_below, keys_match
from runner.summary.rolling import RollingSummary
from runner.summary.values import NO_CONTEXT, Attempt, SummaryContext


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPolicy:
    """`allow`: filter keys that get summaries, with those above and below them (None: all; the whole session always
    does). `cascade`: the summary of the whole session follows those of branches."""

    allow: Sequence[str] | None = None
    cascade: bool = True

    def targets(self, trigger: str) -> tuple[str, ...]:
        """The filter keys whose summaries are looked at when an event with this key came."""
        if trigger == WHOLE:
            return (WHOLE,)
        allowed = [entry.strip() for entry in self.allow or () if entry.strip()]
        own = self.allow is None or any(keys_match(trigger, entry) for entry in allowed)
        return (*([trigger] if own else ()), *([WHOLE] if self.cascade else ()))


async def refresh(
    rolling: RollingSummary,
    key: SessionKey,
    trigger: str,
    policy: SummaryPolicy,
    *,
    force: bool = False,
    context: SummaryContext = NO_CONTEXT,
) -> tuple[Attempt, ...]:
    """Bring up to date what an event with this filter key calls for; the attempts in the order of the targets.

    Where all events of the session belong to the branch, one summary serves both: it is copied. Else both are made side
    by side; not the one of the whole session where the branch's forks its agent's request, which shows the branch only.
    """
    targets = policy.targets(trigger)
    if len(targets) == 1:
        scope = trigger if targets[0] != trigger else None
        return (await rolling.summarize(key, targets[0], force=force, context=replace(context, scope=scope)),)
    if not targets:
        return ()
    if await _is_all(rolling, key, trigger):
        first = await rolling.summarize(key, trigger, force=force, context=context)
        return (first, await _copied(rolling, key, trigger, context))
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
    return all(is_below(event.filter_key, branch) for event in session.events)


async def _copied(rolling: RollingSummary, key: SessionKey, branch: str, context: SummaryContext) -> Attempt:
    """The branch's summary as that of the whole session, where it is ahead of it; without one an attempt of its own."""
    try:
        session = await rolling.read(key)
    except Exception:
        return await rolling.summarize(key, WHOLE, context=replace(context, scope=branch))
    own, whole = session.summaries.get(branch), session.summaries.get(WHOLE)
    if own is None:
        return await rolling.summarize(key, WHOLE, context=replace(context, scope=branch))
    behind = whole is None or whole.boundary.seq < own.boundary.seq or whole.text != own.text
    ahead = [e for e in session.events if e.seq <= own.boundary.seq and not is_below(e.filter_key, branch)]
    if not behind or ahead:  # what others said meanwhile is not in the branch's text
        return Attempt(key=key, filter_key=WHOLE, outcome="nothing_new", reason="it is that of the branch")
    copy = own.model_copy(update={"boundary": own.boundary.model_copy(update={"filter_key": WHOLE})})
    stored = await rolling.sessions.put_summary(key, WHOLE, copy, after=whole)
    reason = f"a copy of that of '{branch}'"
    return Attempt(key=key, filter_key=WHOLE, outcome="updated" if stored else "overtaken", reason=reason, summary=copy)
