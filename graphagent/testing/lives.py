"""How a process of a test takes part in a run: it goes on from wherever the one before it came to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphagent.engine.executor import Executor
from graphagent.engine.result import RunResult
from graphagent.errors import CheckpointNotFound, EffectUnknown, UsageError, alternatives

MAX_QUESTIONS = 1000
"""Rounds of questions after which a graph is taken to ask for ever."""


async def finish(executor: Executor, lineage: str, input: Any, answers: Mapping[str, Any]) -> RunResult:
    """Resume a lineage, or run it if nothing of it is stored, and answer its questions until it ends.

    `answers` are by key, and given as often as the key is asked. Breakpoints are passed. Raises UsageError for a key
    without an answer, or if there is no end to the questions.
    """
    try:
        result = await executor.resume(lineage)
    except CheckpointNotFound:
        result = await executor.run(input, lineage=lineage)
    for _ in range(MAX_QUESTIONS):
        if result.status != "interrupted":
            return result
        asked = [interrupt for interrupt in result.interrupts if interrupt.kind == "ask"]
        for interrupt in asked:
            if interrupt.key not in answers:
                raise UsageError(f"no answer is given for '{interrupt.key}': {alternatives(interrupt.key, answers)}")
        result = await executor.resume(lineage, {interrupt.id: answers[interrupt.key] for interrupt in asked})
    raise UsageError(f"lineage '{lineage}' still asks after {MAX_QUESTIONS} rounds of answers")


def unknown_effects(error: BaseException | None) -> list[EffectUnknown]:
    """The effects of unknown outcome that a run failed with."""
    if isinstance(error, EffectUnknown):
        return [error]
    if isinstance(error, BaseExceptionGroup):
        return [found for part in error.exceptions for found in unknown_effects(part)]
    return []
