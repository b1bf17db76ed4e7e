"""How well a remembered text fits a query: 0.40 coverage + 0.25 rarity + 0.25 strength + 0.10 ordered phrase.

The parts, each from 0 to 1: how much of the query is met; how much of its rarity (inverse document frequency) is; how
strongly, by BM25 (doubled and cut at 1: once in a text of mean length is nearly all there is); and how long a run of
the query's words stands in the text in order. A word that only the topics have counts `TOPIC_WEIGHT`. A text that
holds the whole query scores at least `PHRASE_FLOOR`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphagent.services import Memory
from runner.memory.words import words
from runner.words import is_cut

MIN_SCORE = 0.3
TOPIC_WEIGHT = 0.65
PHRASE_FLOOR = 0.35
NO_WORD = 0.3
"""What a piece of Chinese or Japanese that no text has counts: it is likely made of the ends of two words."""
K1, B = 1.2, 0.75
"""BM25 as Robertson and Zaragoza give it ("The Probabilistic Relevance Framework", 2009)."""


def rank(memories: Sequence[Memory], query: str, limit: int, min_score: float = MIN_SCORE) -> list[Memory]:
    """The memories that fit, with their scores, best first; equal ones: the last changed first."""
    wanted = dict(words(query))
    phrase = " ".join(query.lower().split())
    documents = [_counts(memory) for memory in memories]
    for word in wanted:
        if is_cut(word) and not any(word in counts for counts in documents):
            wanted[word] *= NO_WORD
    rarity = {word: _rarity(sum(word in counts for counts in documents), len(documents)) for word in wanted}
    mean = sum(sum(counts.values()) for counts in documents) / len(documents) if documents else 0.0
    scored = []
    for memory, counts in zip(memories, documents, strict=True):
        score = _score(wanted, rarity, counts, mean) + 0.10 * _ordered(wanted, memory.text)
        if phrase and phrase in " ".join(memory.text.lower().split()):
            score = max(score, PHRASE_FLOOR)
        if score >= min_score:
            scored.append(memory._replace(score=score))
    scored.sort(key=lambda memory: (-memory.score, -memory.updated_at, memory.id))
    return scored[:limit]


def _counts(memory: Memory) -> dict[str, float]:
    """How often a text has each word, those of its topics by their weight."""
    counts: dict[str, float] = {}
    for word, _ in words(memory.text):
        counts[word] = counts.get(word, 0.0) + 1.0
    for topic in memory.topics:
        for word, _ in words(topic):
            counts[word] = counts.get(word, 0.0) + TOPIC_WEIGHT
    return counts


def _rarity(having: int, count: int) -> float:
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


def _score(wanted: dict[str, float], rarity: dict[str, float], counts: dict[str, float], mean: float) -> float:
    met = {word: weight * min(1.0, counts[word]) for word, weight in wanted.items() if word in counts}
    if not met:
        return 0.0
    length = sum(counts.values()) / mean
    damping = K1 * (1 - B + B * length)
    full = sum(weight * rarity[word] for word, weight in wanted.items())
    rare = sum(weight * rarity[word] for word, weight in met.items())
    strong = sum(weight * rarity[word] * counts[word] / (counts[word] + damping) for word, weight in met.items())
    return 0.40 * sum(met.values()) / sum(wanted.values()) + (0.25 * rare + 0.25 * min(full, 2 * strong)) / full


def _ordered(wanted: dict[str, float], text: str) -> float:
    """The longest run of the query's words that the text has in order, as a share of the query."""
    sought, place = list(wanted), {word: at for at, word in enumerate(wanted)}
    best = run = 0
    before = -1
    for word, _ in words(text):
        at = place.get(word, -1)
        run = 0 if at < 0 else run + 1 if run and at == before + 1 else 1
        before, best = at, max(best, run)
    return best / len(sought) if best > 1 or len(sought) == 1 else 0.0
