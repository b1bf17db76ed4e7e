"""What validation says of random graphs is what brute force finds and what the executor does.

`python -m tests.tools.validator_report` does the same for thousands of graphs and prints the figures.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.crosscheck import compiled, differences, stalls_at_random, untrue_traces
from support.random_documents import random_document

from graphagent.validation import Bounds, Facts, load_document, validate

GRAPHS = st.randoms(use_true_random=False)
SOME = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SMALL = Bounds(max_states=500, max_seconds=60)
FEW = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SOME
@given(GRAPHS)
def test_reduced_search_and_proofs_agree_with_brute_force(rnd):
    """Verdict of the reduced search equals that of all interleavings, and what is proved sound has no fault at all."""
    graph = compiled(random_document(rnd))
    if graph is not None:
        assert list(differences(graph, Counter())) == []


@FEW
@given(GRAPHS)
def test_traces_happen_in_the_executor(rnd):
    """Every counterexample, driven through the real eager engine, ends as it says."""
    doc = random_document(rnd)
    if compiled(doc) is not None:
        assert list(untrue_traces(doc, Counter())) == []


@FEW
@given(GRAPHS, st.integers(0, 1 << 30))
def test_sound_graphs_never_stall(rnd, seed):
    """A graph that is judged sound, run with random outcomes on either engine, always ends well."""
    doc = random_document(rnd)
    graph = compiled(doc)
    if graph is None:
        return
    report = validate(load_document(doc).builder, rules=["GA3"], facts=Facts(engine="both"), bounds=SMALL)
    if report.result == "clean":
        assert list(stalls_at_random(graph, 10, seed, Counter())) == []


@pytest.mark.parametrize("seed", [708, 26, 113, 2596])
def test_graphs_that_once_differed(seed):
    """Graphs on which two ways of judging once disagreed."""
    import random

    graph = compiled(random_document(random.Random(seed)))
    assert graph is not None
    assert list(differences(graph, Counter())) == []
