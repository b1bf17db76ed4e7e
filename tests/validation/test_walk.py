"""Random walks: how they end, what they see, and that what they say happened is what `fire` does."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.crosscheck import compiled
from support.graphs import flow
from support.random_documents import random_document

from graphagent.errors import UsageError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.joins import arrive, close_lap
from graphagent.graph.marking import Arrival
from graphagent.graph.transitions import start
from graphagent.testing.scripted import play
from graphagent.validation import load_document
from graphagent.validation.coverage import Coverage, coverage_text, percent
from graphagent.validation.notation import parse_notation
from graphagent.validation.outcomes import choices
from graphagent.validation.taken import take
from graphagent.validation.walk import CUT_OFF, RULED_OUT, simulate

ENGINES: Any = ("superstep", "eager")
SOME = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def noted(text: str) -> CompiledGraph:
    """A graph in the notation, compiled."""
    return load_document(parse_notation(text)).builder.compile(strict=False)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sound_graph_is_covered_whole(engine: Any) -> None:
    """Every node, edge, label and join is seen, and all walks complete."""
    done = simulate(noted("s -> a, b; a ? x: c | y: c; c & b => j; j -> END"), 50, 3, engine=engine)
    assert dict(done.coverage.ended) == {"completed": 50}
    assert {name: seen == every for name, (seen, every) in done.coverage.seen.items()} == dict.fromkeys(
        ("nodes", "edges", "labels", "joins"), True
    )
    assert percent([done.coverage]) == 100
    assert sum(count for label, count in done.coverage.labels.items() if label.source == "a") == 50


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("r ? a | b; a & b => j; j -> END", {"stalled at 'j'"}),
        ("a ? b | END; node b", {"completed", "END not reached"}),
        ("a -> b; b -> a", {CUT_OFF}),
        ("a ? x: b | y: b; b ? x: c | y: d; c -> END; d -> END; never a = x, b = x; never a = x, b = y",
         {"completed", RULED_OUT}),
    ],
    ids=["stalled", "end not reached", "endless", "ruled out"],
)  # fmt: skip
@pytest.mark.parametrize("engine", ENGINES)
def test_ends_are_told_apart(text: str, ends: set[str], engine: Any) -> None:
    """Which join starved, that END was not reached, that a walk was cut off, that no outcome was left for it."""
    done = simulate(noted(text), 40, engine=engine, max_activations=100)
    assert set(done.coverage.ended) == ends
    assert sum(done.coverage.ended.values()) == 40
    assert done.went_wrong == sum(n for end, n in done.coverage.ended.items() if end.startswith(("stalled", "END")))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_seed_walks_the_same_ways(engine: Any) -> None:
    """Figures and examples are equal for one seed, and not for all seeds."""
    graph = noted("s * a | b | c; a ? a | END; b -> END; c ? s | END")
    runs = [simulate(graph, 20, seed, engine=engine) for seed in (1, 1, 2)]
    assert runs[0].coverage.to_json() == runs[1].coverage.to_json()
    assert runs[0].examples == runs[1].examples
    assert runs[0].coverage.to_json() != runs[2].coverage.to_json()


@pytest.mark.anyio
@pytest.mark.parametrize("engine", ENGINES)
async def test_examples_happen_in_the_executor(engine: Any) -> None:
    """The script of each end leads the real executor to that end."""
    graph = noted("s -> a, b; a ? c | END; c & b => j; b -> m; a -> m; j -> END; m -> END")
    done = simulate(graph, 50, engine=engine)
    for end, script in done.examples.items():
        played = await play(graph, script, engine=engine)
        assert end.split()[0] == played.result.status


def test_what_never_happens_is_listed() -> None:
    """Nodes, edges, labels and joins that no walk took, by name, as text and as data."""
    done = simulate(noted("r ? a | b; a & b => j; j -> END"), 30).coverage
    assert [str(part) for parts in done.missing.values() for part in parts] == ["j", "j -> END", "j"]
    assert done.starved["j"] == 30
    text = coverage_text(done)
    assert "nodes never run:\n    j" in text
    assert "joins never filled:\n    j" in text
    assert "join 'j' starved at the end: 30" in text
    assert done.to_json()["missing"]["nodes"] == ["j"]


def test_late_arrivals_are_counted() -> None:
    """An `any` join fires once a lap and absorbs the others."""
    done = simulate(noted("s -> a, b, c; a & b & c =any=> j; j -> END"), 10, engine="eager").coverage
    assert (done.joins["j"], done.late["j"], done.starved["j"]) == (10, 20, 0)


def test_labels_that_lead_to_one_target_are_told_apart() -> None:
    """Each is drawn in its turn; the default counts as `otherwise`, alone."""
    seen = simulate(noted("a ? low: b | lower: b | high: c else b; b -> END; c -> END"), 200).coverage.labels
    assert {label.label: bool(count) for label, count in seen.items()} == {
        "low": True, "lower": True, "high": True, "otherwise": True,
    }  # fmt: skip
    seen = simulate(noted("a * x: b | y: c else c; b -> END; c -> END"), 200).coverage.labels
    assert all(seen.values())
    assert sum(seen.values()) > 200


def test_a_fan_of_a_map_is_walked() -> None:
    """None, one and two items; the edges of members are taken when their group has ended."""
    done = simulate(noted("m @ w then c; w -> c; c -> END"), 60)
    assert not [part for parts in done.coverage.missing.values() for part in parts]
    assert done.coverage.nodes["c"] == 60
    assert done.coverage.nodes["w"] > 20


def test_counts_of_several_runs_are_added() -> None:
    """Also those of another version: parts that are gone are left out, and counted as such."""
    graph = flow("START -> a -> b -> END").compile()
    one, other = Coverage(graph), simulate(graph, 5).coverage
    assert one.add(other.to_json()) == 0
    assert one.add(other.to_json()) == 0
    assert (one.nodes["a"], one.ended["completed"], percent([one])) == (10, 10, 100.0)
    newer = Coverage(flow("START -> a -> c -> END").compile())
    assert newer.add(other.to_json()) == 3
    assert str(newer.missing["edges"][0]) == "a -> c"


@pytest.mark.parametrize("document", [{}, {"nodes": []}, {"nodes": {}, "edges": [1], "labels": [], "joins": {}}])
def test_what_is_no_coverage_is_refused(document: Any) -> None:
    """With the form that is expected."""
    with pytest.raises(UsageError, match="no coverage of schema 1"):
        Coverage(flow("START -> a -> END").compile()).add(document)


def test_undeclared_targets_are_said() -> None:
    """A node that may lead anywhere is walked anywhere, which the result says."""
    done = simulate(noted("a ? ?; b -> END; a -> END"), 30)
    assert done.undeclared == ("a",)


@SOME
@given(st.randoms(use_true_random=False), st.sampled_from(ENGINES))
def test_what_is_said_to_happen_is_what_fire_does(rnd: random.Random, engine: str) -> None:
    """On random graphs every new activation has an edge that was taken, or a join that fired, behind it."""
    graph = compiled(random_document(rnd))
    if graph is None:
        return
    options, marking = choices(graph), start(graph)
    for _ in range(30):
        if not marking.frontier or len(marking.frontier) > 20:
            return
        every = range(len(marking.frontier))
        places = [rnd.choice(every)] if engine == "eager" else list(every)
        done = [rnd.choice(options.of[marking.frontier[place].node]).completion(place) for place in places]
        taken = take(graph, marking, done)
        left = [activation for place, activation in enumerate(marking.frontier) if place not in places]
        new = [activation.node for activation in taken.after.frontier if activation not in left]
        behind = {way.target for way in taken.ways} | {graph.join_tables[join].target for join in taken.fired}
        assert set(new) <= behind
        marking = taken.after


def test_firings_and_late_arrivals_are_those_of_the_joins() -> None:
    """The rules of one join, applied by hand to the same arrivals, count the same."""
    graph = noted("s -> a, b, c; a & b & c =2=> j; j -> END")
    table, marking, state = graph.join_tables[0], start(graph), None
    marking = take(graph, marking, [choices(graph).of[0][0].completion(0)]).after
    fired = late = 0
    for slot in range(3):
        place = next(i for i, a in enumerate(marking.frontier) if a.node == table.sources[slot])
        taken = take(graph, marking, [choices(graph).of[table.sources[slot]][0].completion(place)])
        held = state
        state, firings = arrive(table, held, [(slot, Arrival())])
        fired, late = fired + len(taken.fired), late + len(taken.late)
        assert len(taken.fired) == len(firings)
        marking = taken.after
    assert (fired, late) == (1, 1)
    assert state is None or close_lap(table, state)[0] is None
