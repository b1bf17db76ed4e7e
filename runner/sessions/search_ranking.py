"""Which of the messages that have words of a query fit it best.

Two steps. First, from the places of the words alone, the blocks of `BLOCK` messages that hold most of the query, each
word weighed by its rarity (inverse document frequency). Then the messages of these: BM25 (Robertson and Zaragoza, "The
Probabilistic Relevance Framework", 2009) of the message itself and of the windows of `WINDOWS` messages on each side,
each scaled to 1 and added, since an answer often has none of the words of its question; and a bonus where the query
names who speaks, and for words that stand side by side. What is shown then keeps apart in a long session
(`spread`). The constants were chosen on QMSum's val split and five conversations of LoCoMo, see `benchmarks/context`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import accumulate, pairwise
from operator import sub
from typing import NamedTuple

from runner.sessions.search_text import is_named, speaker_stems
from runner.words import is_cut

BLOCK_BITS = 2
BLOCK = 1 << BLOCK_BITS
FIRST_BLOCKS = 40
WINDOWS = (0, 2, 5)
REACH = WINDOWS[-1]
K1, B = 1.0, 0.75
NAME_WEIGHT = 0.5
"""What a word of the query counts that is the name of somebody who speaks: it stands in what others say to them."""
NAMED, BESIDE = 1.3, 0.1
"""The bonus where the query names the speaker, and for two of its words side by side; a window counts up to 1."""
_SCATTER = 2654435761
"""Blocks that are as good as each other are taken from all over the sessions, not from one end: Knuth's multiplicative
hashing ("The Art of Computer Programming", 6.4) orders them."""
NEAR_BLOCKS, NEAR_WINDOWS = 20, (0, 2)
"""By meaning: how many blocks are looked at, and over how many messages on each side of one its nearness is averaged,
each then scaled to 1 and added."""
SHARE, WIDEST = 40, 20
"""Hits of a session keep apart by a `SHARE`th of its messages, at most by `WIDEST`."""


class Row(NamedTuple):
    """A message in the index. `place`: its session's key times STRIDE plus its number among the messages; `seq`: that
    of the event."""

    place: int
    seq: int
    role: str
    filter_key: str
    speakers: str
    size: int
    words: str


class Scope(NamedTuple):
    """How many messages are searched, and how many words one has on average."""

    messages: int
    mean: float


Counts = Mapping[int, Sequence[tuple[int, int]]]
"""How often a message has terms of the query: the term's number with that, by the message's place."""


class Query(NamedTuple):
    """What is looked for: the text, its terms, where each term stands, and where it is part of the name of who speaks
    (places, newest first); and how near the meaning of each message is, if that is known."""

    text: str
    terms: Sequence[str]
    places: Sequence[Sequence[int]]
    spoken: Sequence[Sequence[int]]
    near: Mapping[int, float] = {}


def best_blocks(query: Query, scope: Scope, first: int) -> Iterator[list[int]]:
    """Blocks of messages (place // BLOCK) that hold words of the query or stand beside some that do, best first: about
    so many, then the others."""
    held: dict[int, float] = {}
    weight_of = held.get
    for places, spoken in zip(query.places, query.spoken, strict=True):
        both = places if not spoken else {*places, *spoken}
        weight = rarity(len(both), scope.messages)
        for block in {place >> BLOCK_BITS for place in both}:
            held[block] = weight_of(block, 0.0) + weight
    if not held:
        return

    def summed(blocks: Iterable[int]) -> dict[int, float]:
        """What these hold, and half of what those beside them do."""
        near = {beside for block in blocks for beside in (block - 1, block, block + 1)}
        return {
            block: weight_of(block, 0.0) + (weight_of(block - 1, 0.0) + weight_of(block + 1, 0.0)) / 2 for block in near
        }

    # A sum of `least` or more takes a block with half of it: most of those with common words only needn't be summed.
    least = nlargest(first, held.values())[-1]
    sums = summed([block for block, weight in held.items() if weight >= least][:first])
    least = nlargest(first, sums.values())[-1] / 2
    sums = summed([block for block, weight in held.items() if weight >= least])
    least = nlargest(first, sums.values())[-1]
    best = [block for block, weight in sums.items() if weight >= least]
    yield _ordered(best, sums)
    sums = summed(held)
    yield _ordered(sums.keys() - set(best), sums)


def nearest_blocks(near: Mapping[int, float]) -> set[int]:
    """The blocks of the messages whose meaning is nearest."""
    best: dict[int, float] = {}
    for place, value in near.items():
        block = place >> BLOCK_BITS
        best[block] = max(value, best.get(block, value))
    return set(sorted(best, key=lambda block: (-best[block], -block))[:NEAR_BLOCKS])


def _ordered(blocks: Iterable[int], sums: Mapping[int, float]) -> list[int]:
    return sorted(blocks, key=lambda block: (-sums[block], block * _SCATTER % (1 << 32)))


def places_around(blocks: Iterable[int]) -> set[int]:
    """The places of the messages of blocks, and of those as far around as a window reaches."""
    return {
        place for block in blocks for place in range((block << BLOCK_BITS) - REACH, ((block + 1) << BLOCK_BITS) + REACH)
    }


def rarity(having: float, count: int) -> float:
    """The weight of a word that so many of `count` texts have."""
    return math.log(1 + (max(count - having, 0) + 0.5) / (having + 0.5))


def _covered(places: Sequence[int]) -> list[int]:
    """How many windows of each of WINDOWS hold a word that stands at these places, newest first."""
    gaps = list(map(sub, places, places[1:]))
    covered = []
    for half in reversed(WINDOWS):
        width = 2 * half + 1
        narrow = [gap for gap in gaps if gap < width]
        covered.append(width * (len(places) - len(narrow)) + sum(narrow))
        gaps = narrow
    return covered[::-1]


def scores(query: Query, scope: Scope, rows: Mapping[int, Row], wanted: Collection[int]) -> dict[int, float]:
    """How well each of the wanted rows fits, from 0 to 1; 0 is left out. `rows` has them and those around them."""
    counts = _counts(query.terms, rows)
    names = {name for text in {row.speakers for row in rows.values()} for name in speaker_stems(text)}
    own = [NAME_WEIGHT if term in names else 1.0 for term in query.terms]
    covered = [_covered(places) for places in query.places]
    weights = [
        [weight * rarity(some[number], scope.messages) for weight, some in zip(own, covered, strict=True)]
        for number in range(len(WINDOWS))
    ]
    found: list[dict[int, float]] = [{} for _ in WINDOWS]
    for run in runs(sorted(wanted)):
        _add_fit(found, run, weights, scope, (rows, counts))
    sums = dict.fromkeys(wanted, 0.0)
    for each in found:
        most = max(each.values(), default=0.0)
        for place, value in each.items() if most else ():
            sums[place] += value / most
    _add_bonuses(query, rows, sums, any_word=any(sums.values()))
    _add_nearness(query.near, sums)
    return _scaled(query, scope, rows, sums, counts)


def runs(places: Iterable[int]) -> list[range]:
    """Places in order as ranges of those that follow each other."""
    found: list[range] = []
    for place in places:
        if found and found[-1].stop == place:
            found[-1] = range(found[-1].start, place + 1)
        else:
            found.append(range(place, place + 1))
    return found


def _add_fit(
    found: Sequence[dict[int, float]],
    run: range,
    weights: Sequence[Sequence[float]],
    scope: Scope,
    known: tuple[Mapping[int, Row], Counts],
) -> None:
    """BM25 of each of WINDOWS around messages that follow each other. Sums up to each place make a window a difference
    of two of them."""
    rows, counts = known
    around = range(run.start - REACH, run.stop + REACH)
    sizes = _running([rows[place].size if place in rows else 0 for place in around])
    counted: dict[int, list[int]] = {}
    for at, place in enumerate(around):
        for term, count in counts.get(place, ()):
            counted.setdefault(term, [0] * len(around))[at] = count
    totals = [(term, _running(some)) for term, some in counted.items()]
    for half, weight, values in zip(WINDOWS, weights, found, strict=True):
        width = 2 * half + 1
        for begin, place in enumerate(run, REACH - half):
            end = begin + width
            damping = K1 * (1 - B + B * (sizes[end] - sizes[begin]) / (scope.mean * width))
            value = 0.0
            for term, total in totals:
                count = total[end] - total[begin]
                if count:
                    value += weight[term] * count * (K1 + 1) / (count + damping)
            values[place] = value


def _running(values: Sequence[int]) -> list[int]:
    return [0, *accumulate(values)]


def _counts(terms: Sequence[str], rows: Mapping[int, Row]) -> dict[int, list[tuple[int, int]]]:
    patterns = [term if len(term) == 1 and is_cut(term) else f" {term};" for term in terms]
    found = {}
    for place, row in rows.items():
        words = row.words
        some = [(at, words.count(pattern)) for at, pattern in enumerate(patterns) if pattern in words]
        if some:
            found[place] = some
    return found


def _add_bonuses(query: Query, rows: Mapping[int, Row], sums: dict[int, float], *, any_word: bool) -> None:
    named: dict[str, bool] = {}
    beside = [f" {one}; {other};" for one, other in pairwise(query.terms)]
    for place, value in sums.items():
        if not value and any_word:
            continue
        row = rows[place]
        if row.speakers not in named:
            named[row.speakers] = is_named(row.speakers, query.text)
        sums[place] += NAMED * named[row.speakers] + BESIDE * sum(pair in row.words for pair in beside)


def _add_nearness(near: Mapping[int, float], sums: dict[int, float]) -> None:
    for half in NEAR_WINDOWS if near else ():
        means = {}
        for place in sums:
            around = [near[one] for one in range(place - half, place + half + 1) if one in near]
            means[place] = sum(around) / len(around) if around else 0.0
        least, most = min(means.values(), default=0.0), max(means.values(), default=0.0)
        for place, value in means.items() if most > least else ():
            sums[place] += (value - least) / (most - least)


def _scaled(
    query: Query,
    scope: Scope,
    rows: Mapping[int, Row],
    sums: Mapping[int, float],
    counts: Counts,
) -> dict[int, float]:
    """The sums on a scale where the best one has as its score how much of the query's rarity its surroundings hold, or
    how near its meaning is, if that is more."""
    best = max(sums, key=lambda place: (sums[place], place), default=0)
    if not sums or not sums[best]:
        return {}
    weights = [rarity(len(places), scope.messages) for places in query.places]
    speaks = speaker_stems(rows[best].speakers)
    held = {term for near in range(best - REACH, best + REACH + 1) for term, _ in counts.get(near, ())}
    met = sum(weights[at] for at, term in enumerate(query.terms) if at in held or term in speaks)
    share = max(met / sum(weights) if weights else 0.0, query.near.get(best, 0.0))
    scale = min(1.0, share) / sums[best]
    return {place: value * scale for place, value in sums.items() if value}


def spread(found: Mapping[int, float], sizes: Mapping[int, int], limit: int, bits: int) -> list[tuple[int, float]]:
    """The best `limit` places with their scores, best first, equal ones newest first.

    What stands near one that was taken says much the same: in a session of `sizes[place >> bits]` messages its score is
    damped the more the nearer it is.
    """
    left = dict(found)
    taken: list[tuple[int, float]] = []
    while left and len(taken) < limit:
        score, place = max(zip(left.values(), left, strict=True))
        if score <= 0:
            break
        del left[place]
        taken.append((place, score))
        apart = min(WIDEST, sizes.get(place >> bits, 0) // SHARE)
        for near in range(place - apart, place + apart + 1):
            if near in left:
                left[near] *= abs(near - place) / (apart + 1)
    return taken
