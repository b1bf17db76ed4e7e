"""What a model saw of a session when it made an answer, and why: kept with the answer's event, no model gets it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from typing import Literal

from pydantic import BaseModel, ConfigDict

Verdict = Literal["in", "out", "changed", "mixed"]


class Span(BaseModel):
    """Events that follow each other, and of which the same became.

    `first`, `last`: their ids, `count`: how many. `verdict`: they were `in` as they are stored, `out`, or in but
    `changed`; `mixed`: some of each, where there were too many spans to keep. `reasons`: codes of what was done with
    them and by which step, such as `history.dropped`.
    """

    model_config = ConfigDict(frozen=True)

    first: str
    last: str
    count: int
    verdict: Verdict
    reasons: tuple[str, ...] = ()


class ModelView(BaseModel):
    """What was in the request that an answer was made from.

    `spans`: the session's events when the run of the agent began, in order. Later answers of the run name the event
    that has them (`base`) instead. `run`: the run's own events, and whether they were in the request. `messages`: how
    many messages it had, the instructions and the like among them. `missing`: how many messages of the projection were
    not in it, since the graph took them out; `other`: how many of its history came from neither, such as what nodes of
    the graph put in or a person said meanwhile. Both are None for a run that went on from a checkpoint.
    """

    model_config = ConfigDict(frozen=True)

    spans: tuple[Span, ...] = ()
    base: str = ""
    run: tuple[Span, ...] = ()
    messages: int = 0
    missing: int | None = None
    other: int | None = None


MOST_SPANS = 64
"""Spans that are kept of one request; the oldest ones beyond are made one."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of an event, or of several in a row: what a `Span` is made of. `last`: as in `Span`."""

    first: str
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    last: str = ""
    count: int = 1


def joined(fates: Iterable[Fate]) -> tuple[Span, ...]:
    """Spans of events in order: neighbours with the same verdict and reasons are one. Not too many of them: the oldest,
    if need be, become one that is `mixed`."""
    rows = []
    for (verdict, reasons), group in groupby(fates, key=attrgetter("verdict", "reasons")):
        several = list(group)
        last = several[-1].last or several[-1].first
        rows.append(Fate(several[0].first, verdict, reasons, last, sum(fate.count for fate in several)))
    over = len(rows) - MOST_SPANS + 1
    if over > 1:
        old = rows[:over]
        codes = dict.fromkeys(code for row in old for code in row.reasons)
        one = Fate(old[0].first, "mixed", tuple(codes), old[-1].last, sum(row.count for row in old))
        rows[:over] = [one]
    return tuple(Span(**asdict(row)) for row in rows)
