"""Which nodes can be live together: examples, and the relation against every interleaving of random graphs."""

from __future__ import annotations

import random

import pytest
from support.random_documents import random_document

from graphagent.graph.checks import check_definition
from graphagent.graph.compile import build
from graphagent.validation import Bounds, Facts, concurrency, load_document
from graphagent.validation.concurrency import together
from graphagent.validation.explore import explore, explore_supersteps
from graphagent.validation.notation import parse_notation
from graphagent.validation.subject import Subject

FORK = "s -> a, b; a -> c; b & c => j; j -> END"
MANY = 60


def subject_of(document, engine="eager", bounds=None):
    """What the rules look at; None for a graph that doesn't compile."""
    builder = load_document(document).builder
    problems = [*builder.definition.problems, *check_definition(builder.definition, builder.schema)]
    if any(problem.severity == "error" for problem in problems):
        return None
    graph = build(builder.definition.snapshot(), builder.schema, (), strict=True)
    return Subject(graph, Facts(engine=engine), bounds or Bounds(), {})


def pairs(text, engine="eager"):
    """The pairs that can be live together, as words of two letters."""
    relation = together(subject_of(parse_notation(text), engine))
    names = relation.graph.names
    return " ".join(a + b for i, a in enumerate(names) for b in names[i:] if relation.pair(a, b) is not None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a -> b -> c -> END", ""),
        (FORK, "ab bc"),
        ("r ? a | b; a -> m; b -> m; m -> END", ""),
        ("r * a | b; a -> END; b -> END", "ab"),
        ("r * {a} | {b}; a -> END; b -> END", ""),
        ("entry a, b; a & b => j; j -> END", "ab"),
        ("s -> a, b; a -> c; b ? a | d; c & d => j; j -> END", "ab ac ad bc cd"),
        ("s -> a, b; a ? s | END; b -> END", "sb ab"),
        ("s * a | b; a & b =active=> j; j -> END", "ab"),
        ("s -> a, b; a & b =any=> j; j -> END", "ab aj bj"),
        ("p @ w then r; w -> r; r -> END", "ww"),
        ("p @ w then r; w ? x | y; x -> r; y -> r; r -> END", "wr wx wy ww xr yr xy"),
        ("s -> a, b; a !> h; h -> END; a -> END; b -> END", "ab bh"),
        ("s -> p, b; p @ w then r; w -> r; r -> END; b -> END", "pb wb br ww"),
    ],
    ids=[
        *("sequence", "fork", "choice", "some", "sets", "entries", "both", "loop", "active", "any", "map"),
        *("map-with-route", "error", "map-beside"),
    ],
)
def test_pairs(text, expected):
    """The pairs of small graphs; one node twice only where a fan-out starts it several times."""
    found = {"".join(sorted(pair)) for pair in pairs(text).split()}
    assert found == {"".join(sorted(pair)) for pair in expected.split()}


def test_the_trace_leads_there():
    """The evidence is a run, step by step, and whether both can share a superstep."""
    relation = together(subject_of(parse_notation(FORK), "superstep"))
    evidence = relation.pair("b", "c")
    assert evidence is not None
    assert evidence.certain
    assert [str(step) for step in evidence.trace] == ["s", "a", "'b' and 'c' run at the same time"]
    assert evidence.trace[-1].live == ("b", "c")
    assert evidence.in_step is False
    assert relation.pair("a", "b").in_step is True
    assert together(subject_of(parse_notation(FORK))).pair("a", "b").in_step is None


def test_one_relation_for_a_subject():
    """Families share the relation, and what it has found out."""
    subject = subject_of(parse_notation(FORK))
    assert together(subject) is together(subject)
    assert together(subject).pair("a", "b") is together(subject).pair("b", "a")


def wide(branches, length):
    """Parallel branches with a route each."""
    rows = ["s -> " + ", ".join(f"n{i}_0" for i in range(branches))]
    for i in range(branches):
        rows.append(f"n{i}_0 ? n{i}_1 | n{i}_{length - 1}")
        rows += [f"n{i}_{k} -> n{i}_{k + 1}" for k in range(1, length - 1)]
    last = [f"n{i}_{length - 1}" for i in range(branches)]
    return "\n".join([*rows, " & ".join(last) + " => m", "m -> END"])


def test_far_into_wide_graphs():
    """Where all interleavings are too many, the nodes looked for are kept live while the others go on."""
    relation = together(subject_of(parse_notation(wide(12, 5))))
    evidence = relation.pair("n0_3", "n11_4")
    assert evidence is not None
    assert evidence.certain
    assert {"n0_3", "n11_4"} <= set(evidence.trace[-1].live)
    assert relation.pair("n0_3", "n0_4") is None


def test_not_found_is_not_certain():
    """What the structure allows and no search could confirm is said to be just that."""
    text = wide(12, 5).replace(" => m", " =active=> m")
    subject = subject_of(parse_notation(text), bounds=Bounds(max_seconds=0.0))
    evidence = together(subject).pair("n0_3", "n11_3")
    assert evidence is not None
    assert not evidence.certain
    assert evidence.trace == ()


def judged(seed):
    """A random graph with all its interleavings and supersteps; None where they are too many or it doesn't compile."""
    subject = subject_of(random_document(random.Random(seed)), "both")
    if subject is None:
        return None
    full = explore(subject.graph, subject.choices, Bounds(3_000, 60.0), reduced=False)
    if not full.complete or full.growing:
        return None
    return subject, full, explore_supersteps(subject.graph, subject.choices, Bounds(3_000, 60.0))


def live_pairs(explored):
    """Pairs of node indices that are live in one state; one node twice if one of the two is of a fan-out."""
    found = set()
    for marking in explored.markings:
        for i, one in enumerate(marking.frontier):
            for other in marking.frontier[i + 1 :]:
                if one.node != other.node or one.group or other.group:
                    found.add((min(one.node, other.node), max(one.node, other.node)))
    return found


@pytest.mark.parametrize("few", [1, concurrency.FEW_STATES], ids=["searched", "all"])
def test_random_graphs(few, monkeypatch):
    """The relation is that of all interleavings, whichever way it is settled; the structure never says no wrongly, and
    for proved graphs never yes wrongly; sharing a superstep is told exactly."""
    monkeypatch.setattr(concurrency, "FEW_STATES", few)
    monkeypatch.setattr(concurrency, "MOST_SECONDS", 60.0)
    seen = exact = 0
    for seed in range(MANY):
        case = judged(seed)
        if case is None:
            continue
        subject, full, steps = case
        seen += 1
        relation, names = together(subject), subject.graph.names
        expected, in_steps = live_pairs(full), live_pairs(steps)
        exact += relation.exact
        for i, a in enumerate(names):
            for j in range(i, len(names)):
                where = (seed, a, names[j])
                evidence = relation.pair(a, names[j])
                assert (evidence is not None) == ((i, j) in expected), where
                assert evidence is None or (evidence.certain and evidence.trace), where
                assert (i, j) not in expected or relation.may(a, names[j]), where
                if relation.exact and i != j:
                    assert relation.may(a, names[j]) == ((i, j) in expected), where
                if evidence is not None and steps.complete:
                    assert evidence.in_step == ((i, j) in in_steps), where
    assert seen > MANY // 2
    assert exact > 5
