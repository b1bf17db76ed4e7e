"""Short dialogues (MT-Bench-101): does any of them cost more with summaries, all of their calls counted?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.context.data import Dialogue
from benchmarks.context.figures import Figures, mean, saved
from benchmarks.context.talks import Policy, held
from runner.summary.checks import EventsOver
from runner.summary.estimate import FULL_OR_WORTH_IT, PaysBack

SIZE = 64
"""Tokens of a summary of a short dialogue."""
POLICIES = (
    Policy("every_two_turns", SIZE, (EventsOver(3),)),
    Policy("default", SIZE),
    Policy("pays_back", SIZE, (FULL_OR_WORTH_IT,)),
    Policy("pays_back_any_size", SIZE, (PaysBack(floor=0),)),
)
"""A summary every two turns as in the reference's report; the summariser's own check; the estimate beside it; the
estimate alone, for however few tokens."""


async def dialogues(
    found: Sequence[Dialogue], told: Callable[[str], None], policies: Sequence[Policy] = POLICIES
) -> Figures:
    """The figures of each policy: shares of prompt tokens saved, and of dialogues that cost more, or less."""
    figures: Figures = {"mtbench101.cases": len(found)}
    full = []
    for number, one in enumerate(found, 1):
        told(f"mtbench101: without summaries, dialogue {number} of {len(found)}")
        full.append(await held(one.turns, None))
    whole = sum(talk.prompts for talk in full)
    for policy in policies:
        talks = []
        for number, one in enumerate(found, 1):
            told(f"mtbench101: {policy.name}, dialogue {number} of {len(found)}")
            talks.append(await held(one.turns, policy))
        pairs = list(zip(full, talks, strict=True))
        name = f"mtbench101.{policy.name}"
        figures |= {
            f"{name}.saved_without_own": saved(whole, sum(talk.prompts for talk in talks)),
            f"{name}.saved": saved(whole, sum(talk.total for talk in talks)),
            f"{name}.negative_without_own": sum(talk.prompts > before.prompts for before, talk in pairs),
            f"{name}.negative": sum(talk.total > before.total for before, talk in pairs),
            f"{name}.saving": mean(talk.total < before.total for before, talk in pairs),
            f"{name}.calls": sum(talk.calls for talk in talks),
        }
    return figures
