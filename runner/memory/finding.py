"""Which memories a search brings: those that pass its filter, ranked, of near duplicates only the best. Pure.

Source: spec/context, 17.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphagent.services import Memory, MemoryFilter
from runner.memory.ranking import rank
from runner.memory.words import alike

NEARLY_THE_SAME = 0.8
"""Memories of which so large a share of words is common say the same."""
ENOUGH = 3
"""So many of the kind that is asked for are enough: with fewer, `MemoryFilter.fallback` lets others in."""


def find(memories: Sequence[Memory], query: str, limit: int, only: MemoryFilter) -> list[Memory]:
    """The memories that fit, with their scores, best first; those of another kind than asked for come last."""
    given = [memory for memory in memories if in_time(memory, only)]
    ranked = rank(given, query, len(given), only.min_score)
    if not only.kind:
        return distinct(ranked, limit) if only.distinct else ranked[:limit]
    found = [memory for memory in ranked if memory.kind == only.kind]
    if only.distinct:
        found = distinct(found, limit)
    if only.fallback and len(found) < ENOUGH:
        found += [memory for memory in ranked if memory.kind != only.kind]
        if only.distinct:
            found = distinct(found, limit)
    return found[:limit]


def in_time(memory: Memory, only: MemoryFilter) -> bool:
    """Whether it happened in the time that is asked for; what has no time did."""
    if memory.event_time is None:
        return True
    after, before = only.after, only.before
    return (after is None or memory.event_time >= after) and (before is None or memory.event_time <= before)


def distinct(ranked: Sequence[Memory], limit: int) -> list[Memory]:
    """The first so many, without those of which a better one says nearly the same of the same event."""
    kept: list[Memory] = []
    for memory in ranked:
        if len(kept) == limit:
            break
        if not any(same_event(one, memory) and alike(one.text, memory.text) >= NEARLY_THE_SAME for one in kept):
            kept.append(memory)
    return kept


def same_event(one: Memory, other: Memory) -> bool:
    """Whether two memories may be of one event: time, participants and place are the same, or one doesn't say."""
    pairs = (
        (one.event_time, other.event_time),
        (set(one.participants), set(other.participants)),
        (one.location.casefold(), other.location.casefold()),
    )
    return all(mine in (None, set(), "") or theirs in (None, set(), "") or mine == theirs for mine, theirs in pairs)
