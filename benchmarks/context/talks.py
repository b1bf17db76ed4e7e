"""A conversation held again, turn by turn, through a Runner: each request of agent and summariser counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.context.meter import Metered
from benchmarks.context.replay import APP, READER, USER
from benchmarks.context.standin import WINDOW, summariser
from graphagent import LLMAgent
from graphagent.models import ScriptedModel
from runner import Runner
from runner.summary.checks import SummaryCheck
from runner.summary.prefix import SkipRecent
from runner.summary.summarizer import ModelSummarizer

Turn = tuple[str, str]


class Policy(NamedTuple):
    """When a summary is made. `size`: its tokens; `checks`: None takes the summariser's own."""

    name: str
    size: int
    checks: Sequence[SummaryCheck] | None = None
    keep: SkipRecent = 0


class Talk(NamedTuple):
    """Tokens of a conversation. `prompts`: of all of the agent's requests; `own`: of the summariser's calls."""

    prompts: int
    answers: int
    own: int
    calls: int

    @property
    def total(self) -> int:
        """Requests, and all that was spent on summaries."""
        return self.prompts + self.own


async def held(turns: Sequence[Turn], policy: Policy | None, window: int = WINDOW) -> Talk:
    """The conversation with the recorded answers; without a policy without summaries. Raises RuntimeError if a turn
    ends in an error, or a summary does."""
    answering = Metered(ScriptedModel([said for _, said in turns], context_window=window, keep_requests=False))
    summing = Metered(summariser(policy.size if policy else 1))
    summarizer = None
    if policy is not None:
        words = max(1, policy.size * 3 // 4)
        summarizer = ModelSummarizer(summing, checks=policy.checks, skip_recent=policy.keep, max_words=words)
    async with Runner(APP, LLMAgent(READER, answering), summaries=summarizer) as runner:
        if runner.summaries is not None:
            await runner.summaries.close(0)  # stopped workers leave it to the turn: the outcome is the same each time
        for number, (asked, _) in enumerate(turns):
            async for event in runner.run(USER, "talk", asked):
                if event.error is not None:
                    raise RuntimeError(f"turn {number + 1} failed: {event.error.message}")
        stats = runner.summaries.rolling.stats if runner.summaries is not None else None
    if stats is not None and stats.outcomes.get("failed"):
        raise RuntimeError(f"{stats.outcomes['failed']} summaries failed")
    answered = sum(one.answered for one in answering.exchanges)
    return Talk(answering.asked, answered, summing.spent, len(summing.exchanges))
