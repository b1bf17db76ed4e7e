"""A long life with an assistant (LongMemEval), held again turn by turn: what summaries save, own calls counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from benchmarks.context.data import Said
from benchmarks.context.figures import Figures, saved
from benchmarks.context.talks import Policy, Turn, held
from runner.summary.checks import ContextOver, EventsOver

KEEP = 20
"""Events that stay in view: ten turns."""
MODE = "ten_turns"


def policies(size: int) -> tuple[Policy, ...]:
    """After every 10, 20 and 40 turns beyond the ten that stay; at half of the window; the summariser's own check."""
    every = {MODE: 20, "twenty_turns": 40, "forty_turns": 80}
    timed = [Policy(name, size, (EventsOver(KEEP + count),), KEEP) for name, count in every.items()]
    return (*timed, Policy("half_full", size, (ContextOver(),), KEEP), Policy("default", size, None, KEEP))


def turns_of(said: Sequence[Said]) -> list[Turn]:
    """A history as turns. Messages in a row of one side are one message; a first word of the assistant's answers a
    greeting, and a last word of the person's isn't answered, so it is left out."""
    runs = [(role, "\n\n".join(one.text for one in group)) for role, group in groupby(said, lambda one: one.role)]
    texts = [text for _, text in runs]
    if runs and runs[0][0] == "assistant":
        texts.insert(0, "Hello.")
    return list(zip(texts[::2], texts[1::2], strict=False))


async def live(
    conversations: Mapping[str, Sequence[Said]],
    size: int,
    told: Callable[[str], None],
    *,
    most: int | None = None,
    only: Sequence[str] | None = None,
) -> Figures:
    """The figures of each policy, over all conversations. `most`: turns of each; `only`: names of policies."""
    talks = [turns_of(said)[:most] for said in conversations.values()]
    figures: Figures = {"live.turns": sum(map(len, talks))}
    full = []
    for turns in talks:
        told("live: without summaries")
        full.append(await held(turns, None))
    whole = sum(talk.prompts for talk in full)
    for policy in policies(size):
        if only is not None and policy.name not in only:
            continue
        told(f"live: {policy.name}")
        found = [await held(turns, policy) for turns in talks]
        name = "live" if policy.name == MODE else f"live.{policy.name}"
        figures |= {
            f"{name}.saved_without_own": saved(whole, sum(talk.prompts for talk in found)),
            f"{name}.saved": saved(whole, sum(talk.total for talk in found)),
            f"{name}.calls": sum(talk.calls for talk in found),
        }
    return figures
