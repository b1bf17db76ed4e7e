"""Searches events by their words alone, where a service's own search finds nothing. Pure.

Source: spec/context, 15.4.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphagent.ledger import Event
from runner.recall.queries import keywords, tokens
from runner.recall.said import words_of

LEAST, PHRASE, SEVERAL = 0.45, 0.75, 0.15
"""The score below which an event is none; what the whole query in one piece adds; what two of its words add."""


def score(query: str, text: str) -> float:
    """How well a text fits a query: the share of its keywords that are in the text, and more if it is there as it
    stands. 1.9 at most, 0 for what doesn't fit."""
    wanted = keywords(query) or list(dict.fromkeys(tokens(query)))
    if not wanted:
        return 0.0
    low = text.lower()
    matched = sum(word in low for word in wanted)
    found = matched / len(wanted)
    if query.lower() in low:
        found += PHRASE
    if matched >= min(2, len(wanted)):
        found += SEVERAL
    return found if found >= LEAST else 0.0


def scan(events: Iterable[Event], queries: Iterable[str], limit: int) -> list[tuple[Event, float]]:
    """The events that fit, best first, equal ones newest first; later queries are for what is still wanting."""
    texts = [(event, text) for event in events if not event.is_tool_call and (text := words_of(event))]
    found: dict[str, tuple[Event, float]] = {}
    for query in queries:
        fitting = [(event, worth) for event, text in texts if (worth := score(query, text))]
        for event, worth in _ordered(fitting)[:limit]:
            if event.id not in found or found[event.id][1] < worth:
                found[event.id] = (event, worth)
        if len(found) >= limit:
            break
    return _ordered(found.values())[:limit]


def _ordered(found: Iterable[tuple[Event, float]]) -> list[tuple[Event, float]]:
    return sorted(found, key=lambda one: (-one[1], -one[0].timestamp, -one[0].seq))
