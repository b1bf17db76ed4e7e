"""Which messages fit a query best: the quick ways of `search_ranking` find what plain ones would."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.sessions.search_ranking import (
    BLOCK_BITS,
    K1,
    REACH,
    WINDOWS,
    B,
    Query,
    Row,
    Scope,
    _add_fit,
    _covered,
    best_blocks,
    rarity,
    runs,
)

PLACES = st.lists(st.lists(st.integers(0, 400), unique=True, max_size=60), min_size=1, max_size=5)


@given(PLACES, st.integers(1, 12))
def test_the_best_blocks_are_those_of_all(found: list[list[int]], first: int) -> None:
    """Each block counts for what it holds and half of what those beside it do: the first ones are the best of all that
    hold a word or stand beside one, the others follow, and none is left out."""
    places = [sorted(some, reverse=True) for some in found]
    scope = Scope(500, 5.0)
    held: dict[int, float] = {}
    for some in places:
        for block in {place >> BLOCK_BITS for place in some}:
            held[block] = held.get(block, 0.0) + rarity(len(some), scope.messages)
    sums = {
        block: held.get(block, 0.0) + (held.get(block - 1, 0.0) + held.get(block + 1, 0.0)) / 2
        for one in held
        for block in (one - 1, one, one + 1)
    }
    query = Query("", [str(at) for at in range(len(places))], places, [[] for _ in places])
    portions = list(best_blocks(query, scope, first))
    if not held:
        assert portions == []
        return
    best, others = portions
    assert sorted([*best, *others]) == sorted(sums)
    assert len(best) >= min(first, len(sums))
    weights = [sums[block] for block in (*best, *others)]
    assert weights == sorted(weights, reverse=True)


@given(st.lists(st.integers(0, 300), unique=True, max_size=60))
def test_windows_that_hold_a_word(places: list[int]) -> None:
    """As many as there are messages with the word, or with one near, counted one by one."""
    for half, count in zip(WINDOWS, _covered(sorted(places, reverse=True)), strict=True):
        assert count == len({place + step for place in places for step in range(-half, half + 1)})


@given(st.lists(st.integers(0, 60), unique=True, max_size=30))
def test_runs_are_the_places_again(places: list[int]) -> None:
    """In order, each run as long as it can be."""
    found = runs(sorted(places))
    assert [place for run in found for place in run] == sorted(places)
    assert all(one.stop < other.start for one, other in pairwise(found))


@given(st.dictionaries(st.integers(0, 25), st.tuples(st.integers(1, 9), st.integers(0, 3), st.integers(0, 2))))
def test_a_window_is_scored_as_if_alone(known: dict[int, Any]) -> None:
    """BM25 of all words of the messages that are there, of any window, is what it is by its definition."""
    rows = {place: Row(place, place, "user", "", "", size, "") for place, (size, _, _) in known.items()}
    counts = {place: [(term, count) for term, count in enumerate(some) if count] for place, (_, *some) in known.items()}
    scope, weights = Scope(100, 4.0), [[1.5, 0.5], [1.0, 0.4], [0.7, 0.3]]
    found: list[dict[int, float]] = [{} for _ in WINDOWS]
    for run in runs(sorted(known)):
        _add_fit(found, run, weights, scope, (rows, counts))
    for half, weight, values in zip(WINDOWS, weights, found, strict=True):
        assert values.keys() == known.keys()
        for place in known:
            near = [known[one] for one in range(place - half, place + half + 1) if one in known]
            damping = K1 * (1 - B + B * sum(size for size, *_ in near) / (scope.mean * (2 * half + 1)))
            sums = [sum(one[at] for one in near) for at in (1, 2)]
            expected = sum(w * n * (K1 + 1) / (n + damping) for w, n in zip(weight, sums, strict=True))
            assert values[place] == pytest.approx(expected)
    assert max(WINDOWS) == REACH
