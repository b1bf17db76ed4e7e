"""What becomes of a memory that is to be added where something alike is remembered already.

Source: spec/context, 17.5, "Update policies"; it has figures of what each of them keeps.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from graphagent.services import Memory
from runner.memory.finding import same_event
from runner.memory.operations import Operation
from runner.memory.words import alike, tokens

Probe = Callable[[str], Awaitable[list[Memory]]]
"""What is remembered already that fits a text: three memories at most, best first; none if it can't be found out."""
UpdatePolicy = Callable[[Operation, Probe, frozenset[str]], Awaitable[Operation | None]]
"""The operation in place of one that adds; None: it is dropped. The last argument is the kinds that are allowed."""

SAME_SCORE, SAME_WORDS = 0.90, 0.70
CLOSE_SCORE, CLOSE_WORDS = 0.60, 0.40
COVERS_OLD, COVERS_NEW = 0.95, 0.70
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nothing|neither|nor|without)\b|n['\u2019]t\b|[不没沒无無未别別]", re.IGNORECASE
)


async def append_only(operation: Operation, probe: Probe, allowed: frozenset[str]) -> Operation | None:
    """Everything is added; only the very same memory is there once."""
    return operation


async def merge_similar(operation: Operation, probe: Probe, allowed: frozenset[str]) -> Operation | None:
    """What says the same is dropped, or adds its topics; what is close takes the place of what was there."""
    if "add" not in allowed:
        return operation
    ranked = []
    for memory in await probe(operation.text):
        words = alike(operation.text, memory.text)
        if memory.score >= SAME_SCORE or words >= SAME_WORDS:
            ranked.append((2, memory.score, words, memory))
        elif memory.score >= CLOSE_SCORE or words >= CLOSE_WORDS:
            ranked.append((1, memory.score, words, memory))
    ranked = [found for found in ranked if same_event(found[3], _as_memory(operation))]
    if not ranked:
        return operation
    tier, _, _, memory = max(ranked, key=lambda found: found[:3])
    return _merged(operation, memory, operation.text if tier == 1 else memory.text, allowed)


async def preserve_history(operation: Operation, probe: Probe, allowed: frozenset[str]) -> Operation | None:
    """What was there gives way only to what says all of it and little else, with the same numbers, negation, time and
    participants; else both are kept."""
    if "add" not in allowed:
        return operation
    new = tokens(operation.text)
    for memory in await probe(operation.text):
        old = tokens(memory.text)
        common = len(old & new)
        if not common or common < COVERS_OLD * len(old) or common < COVERS_NEW * len(new):
            continue
        if _agree(memory.text, operation.text) and same_event(memory, _as_memory(operation)):
            return _merged(operation, memory, memory.text if old == new else operation.text, allowed)
    return operation


def _merged(operation: Operation, memory: Memory, text: str, allowed: frozenset[str]) -> Operation | None:
    """The update of a memory to a text with the topics of both; None if that changes nothing."""
    topics = _together(memory.topics, operation.about.get("topics", ()))
    about: Any = {**operation.about, "topics": topics}
    if text == memory.text and topics == memory.topics and _says(memory, about):
        return None
    return Operation("update", memory.id, text, about) if "update" in allowed else operation


def _says(memory: Memory, about: Any) -> bool:
    """Whether a memory has all that is given besides the topics."""
    given = {key: value for key, value in about.items() if key not in ("topics", "kind")}
    return all(_plain(getattr(memory, key)) == _plain(value) for key, value in given.items())


def _plain(value: Any) -> Any:
    return set(value) if isinstance(value, tuple | list) else value


def _together(first: Iterable[str], more: Iterable[str]) -> tuple[str, ...]:
    """The first topics, then those of the others that aren't among them, whatever their case."""
    found = {topic.casefold(): topic for topic in reversed((*first, *more))}
    return tuple(dict.fromkeys(found[topic.casefold()] for topic in (*first, *more)))


def _agree(old: str, new: str) -> bool:
    """Whether two texts have the same numbers, and both or neither say no."""
    numbers = set(_NUMBER.findall(old)), set(_NUMBER.findall(new))
    return numbers[0] == numbers[1] and bool(_NEGATION.search(old)) == bool(_NEGATION.search(new))


def _as_memory(operation: Operation) -> Memory:
    about = operation.about
    return Memory(
        "",
        operation.text,
        event_time=about.get("event_time"),
        participants=tuple(about.get("participants", ())),
        location=about.get("location", ""),
    )
