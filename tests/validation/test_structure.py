"""The rules of shape (GA1xx): what each reports and where, near misses, and that no finding is a false alarm."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.graphs import flow
from support.random_graphs import Document, compiled, random_graphs, unstructured

from graphagent import END, Command, CompiledGraph
from graphagent.graph.marking import Marking
from graphagent.graph.transitions import starving
from graphagent.validation import Bounds, Diagnostic, Facts, Report, load_document, structure, validate
from graphagent.validation.catalogue import catalogue
from graphagent.validation.example import report
from graphagent.validation.explore import Exploration, explore
from graphagent.validation.stops import ran
from graphagent.validation.subject import Subject

SHARED = Path(__file__).parents[2].parent / "shared"
BOUNDS = Bounds(max_states=1000, max_seconds=20)
Found = list[tuple[str, tuple[str, ...]]]


def shape(found: Report) -> tuple[Diagnostic, ...]:
    """The findings of the family."""
    return tuple(finding for finding in found.findings if finding.code.startswith("GA1"))


def places(text: str) -> Found:
    """Codes and places of the family's findings on a graph in the text notation."""
    return [(finding.code, finding.at) for finding in shape(report(text))]


def subject_of(graph: CompiledGraph, facts: Facts | None = None) -> Subject:
    """What the rules look at."""
    severities = {code: rule.severity for code, rule in catalogue().items()}
    return Subject(graph, facts or Facts(engine="eager"), BOUNDS, severities)


CASES: dict[str, tuple[str, Found]] = {
    # GA101: the first of a chain is named, and what is behind it with it
    "lost_chain": ("a -> END\nb -> c -> d -> END", [("GA101", ("b", "c", "d"))]),
    "two_lost_nodes": ("a -> END\nb -> d\nc -> d\nd -> END", [("GA101", ("b", "d")), ("GA101", ("c",))]),
    "lost_loop": ("a -> END\nb -> c -> b", [("GA101", ("b", "c"))]),
    "lost_loop_with_itself": ("a -> END\nb -> b", [("GA101", ("b",))]),
    "lost_behind_a_lost_loop": ("a -> END\nb -> c -> b\nc -> d -> END", [("GA101", ("b", "c", "d"))]),
    "an_error_edge_leads_there": ("a -> END\na !> h\nh -> END", []),
    "a_fan_out_leads_there": ("a @ w then c\nw -> c -> END", []),
    "a_join_leads_there": ("a -> b, c\nb & c => j\nj -> END", []),
    # GA103, GA102: a dead end, and the node behind which there is nothing else
    "dead_end": ("a ? b | c\nc -> END\nnode b", [("GA103", ("b",))]),
    "no_end_named": ("a -> b\nnode b", []),
    "a_join_is_a_way_out": ("a -> b, c\nb & c => j\nj -> END", []),
    "only_an_error_edge": ("a ? b | c\nb !> c\nc -> END", [("GA103", ("b",))]),
    "wrong_turn": (
        "a ? b | END\nb -> c -> d\nnode d",
        [("GA102", ("b", "c")), ("GA103", ("d",))],
    ),
    "wrong_turn_to_two_ends": (
        "a ? b | END\nb ? c | d\nnode c; node d",
        [("GA102", ("b",)), ("GA103", ("c",)), ("GA103", ("d",))],
    ),
    "two_wrong_turns": (
        "a ? b | c | END\nb -> d; c -> d\nnode d",
        [("GA102", ("b",)), ("GA102", ("c",)), ("GA103", ("d",))],
    ),
    "a_loop_before_a_dead_end_is_left_alone": (
        "a ? b | END\nb -> c\nc ? b | d\nnode d",
        [("GA103", ("d",))],
    ),
    "failing_leads_to_the_end": ("a ? b | END\nb -> c\nb !> h\nh -> END\nnode c", [("GA103", ("c",))]),
    # GA104, GA105: loops that can't be left
    "closed_loop": ("a ? b | END\nb -> c -> b", [("GA104", ("b", "c"))]),
    "closed_loop_with_itself": ("a ? b | END\nb -> b", [("GA104", ("b",))]),
    "closed_loop_with_choices": ("a ? b | END\nb ? c | d\nc -> b; d -> b", [("GA104", ("b", "c", "d"))]),
    "left_only_by_failing": ("a ? b | END\nb -> c -> b\nc !> h\nh -> END", [("GA104", ("b", "c"))]),
    "the_handler_goes_back": ("a ? b | END\nb -> c -> b\nc !> h\nh ? b | END", [("GA104", ("b", "c"))]),
    "the_lap_beside_the_exit": ("a -> b\nb -> a, END", [("GA105", ("a", "b"))]),
    "a_lap_beside_the_choice": ("a -> b\nb -> a\nb ? c | d with edges\nc -> END; d -> END", [("GA105", ("a", "b"))]),
    "any_of_them": ("a -> b\nb * a | END", []),
    "sets_that_all_go_round": ("a -> b\nb * {a} | {a, END}", [("GA105", ("a", "b"))]),
    "sets_of_which_one_leaves": ("a -> b\nb * {a} | {a, END} | {END}", []),
    "another_choice_leads_out": ("a ? b | c\nb -> a\nc ? a | END", []),
    "two_routes_that_both_go_round": ("a -> b\nb ? a | c\nb ? a | d\nc -> END; d -> END", []),
    "one_loop_in_another": ("a -> b\nb -> c -> b\nc ? a | END with edges", [("GA105", ("a", "b", "c"))]),
    "a_loop_through_a_join": ("s -> a, b\na & b => j\nj ? s | END", []),
    "a_loop_through_a_join_without_exit": (
        "s ? x | END\nx -> a, b\na & b => j\nj -> x",
        [("GA104", ("x", "a", "b", "j"))],
    ),
    "an_absorbed_arrival_ends_the_loop": ("s -> a, x\nx & b =any=> t\nt -> b\na -> END\nnode b", []),
    "a_fan_out_that_may_be_empty": ("a -> m\nm @ w\nw -> m\na -> END", []),
    "a_fan_out_that_is_collected_in_the_loop": (
        "s ? m | END\nm @ w then c\nw -> c -> m",
        [("GA104", ("m", "w", "c"))],
    ),
    # GA106: only where all that decide say what they read
    "no_counter": (
        "state done: bool = false\na -> b\nb ? a | END\nb reads done\na writes done",
        [("GA106", ("a", "b"))],
    ),
    "bounded_by_limits": ("state done: bool = false\nlimit laps b 3\na -> b\nb ? a | END\nb reads done", []),
    "a_counter_by_add": ("state n: int add = 0\na -> b\nb ? a | END\nb reads n\na writes n", []),
    "a_counter_by_hand": ("state n: int = 0\na -> b\nb ? a | END\nb reads n\na reads n; a writes n", []),
    "a_number_that_is_only_set": (
        "state n: int = 0\na -> b\nb ? a | END\nb reads n\na writes n",
        [("GA106", ("a", "b"))],
    ),
    "reads_not_known": ("state n: int = 0\na -> b\nb ? a | END\nb reads ?", []),
    "reads_not_said": ("a -> b\nb ? a | END", []),
    # GA107
    "no_way_to_the_end": ("a -> b\nnode b\nc -> END", [("GA101", ("c",)), ("GA107", (END, "c")), ("GA103", ("b",))]),
    # GA108
    "behind_the_join": ("a & b => j\nj -> b -> END", [("GA108", ("b", "j"))]),
    "far_behind_the_join": ("a & c => j\nj -> b -> c -> END", [("GA108", ("c", "j"))]),
    "its_own_source": ("a & j => j id x\na -> END\nj -> END", [("GA108", ("j",))]),
    "the_target_has_another_way": ("a -> j\na & b => j\nj -> b -> END", []),
    "the_loop_head_forks_and_joins": ("j * {a, b} | {END}\na & b => j", []),
    "any_of_the_sources": ("a & b =any=> j\nj ? b | END", []),
    "two_of_two": ("a & b =2=> j\nj ? b | END", [("GA108", ("b", "j"))]),
    # GA109
    "entered_at_two_nodes": ("s ? a | b\na -> b\nb ? a | END\nlimit laps a 3", [("GA109", ("a", "b"))]),
    "entered_at_two_nodes_and_laps_do_not_matter": ("s ? a | b\na -> b\nb ? a | END", []),
    "entered_beside_a_join": (
        "s ? a | b\na -> x, y\nx & y => b\nb ? a | END",
        [("GA109", ("a", "b", "x", "y"))],
    ),
    "entered_at_one_node": ("s -> a -> b\nb ? a | END", []),
    "started_at_two_nodes": ("entry a, b\na -> b\nb ? a | END\nlimit laps b 3", [("GA109", ("a", "b"))]),
    "loops_in_a_loop": ("s -> a -> b -> c\nc ? b | d\nd ? a | END", []),
    "an_inner_loop_with_two_entries": (
        "s -> h\nh ? a | b\na -> b\nb ? a | c\nc ? h | END\nlimit laps a 3",
        [("GA109", ("a", "b"))],
    ),
    # GA110
    "into_the_middle": (
        "s ? a1 | a2\na1 -> a2 -> END\nregion A: a1, a2 from a1 to a2",
        [("GA110", ("s", "a2"))],
    ),
    "out_of_the_middle": (
        "s -> a1\na1 ? a2 | END\na2 -> END\nregion A: a1, a2 from a1 to a2",
        [("GA110", ("a1", END))],
    ),
    "started_in_the_middle": (
        "entry s, a2\ns -> a1 -> a2 -> END\nregion A: a1, a2 from a1 to a2",
        [("GA110", ("a2",))],
    ),
    "a_region_in_a_region": (
        "s -> o -> a1 -> a2 -> p -> END\nregion A: a1, a2 from a1 to a2\nregion O: o, a1, a2, p from o to p",
        [],
    ),
    "failing_out_of_a_region": (
        "s -> a1 -> a2 -> END\na1 !> h\nh -> END\nregion A: a1, a2 from a1 to a2",
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_reported(name: str) -> None:
    """Codes and places, each once, and nothing else of the family."""
    text, expected = CASES[name]
    assert places(text) == expected


def test_what_follows_is_said_with_its_root() -> None:
    """An unreachable chain is one finding; the rest of it is in `related`, not in findings of its own."""
    (found,) = shape(report("a -> END\nb -> c -> d -> END"))
    assert found.related == ("'c', 'd' can only be reached through 'b'",)
    assert found.severity == "error"
    (turn, _) = shape(report("a ? b | END\nb -> c -> d\nnode d"))
    assert turn.related == ("the same holds for 'c', which come after 'b'",)


def test_many_names_are_cut_short() -> None:
    """A message names eight nodes at most, the places all of them."""
    (found,) = shape(report("a -> END\n" + " -> ".join(f"b{i}" for i in range(12)) + " -> b0"))
    assert "'b7' and 4 more" in found.message
    assert len(found.at) == 12


@pytest.mark.parametrize("code", ["GA101", "GA103", "GA104", "GA105", "GA108", "GA110"])
def test_the_cases_of_the_specification(code: str) -> None:
    """What the file of the rule says must be found is found, and no other code of the family than it lists."""
    path = SHARED / "validator_cases" / f"{code}.json"
    if not path.exists():
        pytest.skip("the cases of the specification are not here")
    case = json.loads(path.read_text("utf-8"))
    source = load_document(case["graph"])
    found = shape(validate(source.builder, facts=replace(source.facts, engine="eager")))
    for wanted in case["expected"]["must"]:
        if wanted["code"].startswith("GA1"):
            assert any(f.code == wanted["code"] and {*wanted["at"]} <= {*f.at} for f in found)
    assert {f.code for f in found} <= {*case["expected"]["all_codes"]}


def test_c159_unreachable_nodes_and_dead_ends_are_reported_by_name() -> None:
    """C159: of five nodes one has no way in and one no way out; both are named, under ids that can be left out."""
    builder = flow("START -> a -> b -> END", "a -> stuck", "lost -> b", "START -> c -> b")
    found = {finding.code: finding for finding in shape(validate(builder, facts=Facts(engine="eager")))}
    assert {code: finding.at for code, finding in found.items()} == {"GA101": ("lost",), "GA103": ("stuck",)}
    assert "'lost'" in found["GA101"].message
    assert "'stuck'" in found["GA103"].message
    assert shape(validate(builder, ignore=["GA101", "GA103"])) == ()
    assert [finding.code for finding in validate(builder, rules=["GA103"]).findings] == ["GA103"]


def test_a_finding_has_the_place_of_the_call() -> None:
    """It points to what is at fault: the lost node, the way out that is no choice, the join."""
    builder = flow("START -> a -> b -> a", "e -> END", "j -> k -> END")
    first = inspect.currentframe().f_lineno  # type: ignore[union-attr]
    builder.add_node("lost", lambda state: None)
    builder.add_edge("b", "e")
    builder.add_join_edge(["b", "k"], "j", id="knot")
    places = {finding.code: finding.where for finding in shape(validate(builder))}
    assert {where.file for where in places.values()} == {__file__}
    assert {code: where.line - first for code, where in places.items()} == {"GA101": 1, "GA105": 2, "GA108": 3}


def test_an_undeclared_router_may_lead_anywhere() -> None:
    """With `strict=False` a router without labels makes every node reachable and no loop inescapable."""
    builder = flow("START -> a -> b -> a", "c -> END").add_conditional_edges("b", lambda state: "c", with_edges=True)
    codes = [finding.code for finding in shape(validate(builder.compile(strict=False)))]
    assert "GA101" not in codes
    assert "GA107" not in codes


def test_a_jump_is_a_way_out() -> None:
    """A node that goes on by `Command(goto=...)` only is no dead end, and what it names is reachable."""

    def jump(state: Any) -> Any:
        return Command(goto="far")

    builder = flow("START -> a", "far -> END", a=jump)
    assert shape(validate(builder)) == ()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_no_finding_is_a_false_alarm(data: st.DataObject) -> None:
    """Against every interleaving: what GA101 names never runs; what GA108 names never runs; once a loop of GA104 or
    GA105 runs, no run ends with nothing left."""
    graph = compiled(data.draw(random_graphs()))
    findings = list(structure.check(subject_of(graph)))
    assume(findings)
    found = explore(graph, subject_of(graph).choices, BOUNDS, reduced=False)
    assume(found.complete)
    seen = {graph.names[node] for node in ran(found)}
    for finding in findings:
        if finding.code == "GA101":
            assert seen.isdisjoint(finding.at)
        elif finding.code == "GA108":
            assert seen.isdisjoint(finding.at[:-1])
        elif finding.code in ("GA104", "GA105") and not graph.error_edges:
            assert not any(_clean(graph, found, state, {*finding.at}) for state in range(len(found.markings)))


def _clean(graph: CompiledGraph, found: Exploration, state: int, loop: set[str]) -> bool:
    """Whether a run that has a node of the loop in its frontier ends here with nothing left over."""
    marking: Marking = found.markings[state]
    if marking.frontier or starving(graph, marking):
        return False
    return any(graph.names[pick.node] in loop for hop in found.path(state) for pick in hop.picks)


@given(unstructured(modes=("all",)))
@settings(max_examples=60, deadline=None)
def test_without_joins_every_livelock_is_a_loop_that_cannot_be_left(doc: Document) -> None:
    """Where nothing waits, the search finds a state that no end follows exactly if a loop is reported."""
    doc = {**doc, "joins": [], "errors": []}
    graph = compiled(doc)
    subject = subject_of(graph)
    reported = any(f.code in ("GA104", "GA105") for f in structure.check(subject))
    found = explore(graph, subject.choices, BOUNDS)
    assume(found.complete and not found.growing)
    assert reported == bool(_without_end(found))


def _without_end(found: Exploration) -> set[int]:
    """The states from which no end can be reached."""
    before: dict[int, list[int]] = {}
    for state, moves in enumerate(found.moves):
        for move in moves or ():
            before.setdefault(move.target, []).append(state)
    good = {*found.terminals}
    todo = [*good]
    while todo:
        new = [state for state in before.get(todo.pop(), ()) if state not in good]
        good.update(new)
        todo += new
    return {*range(len(found.markings))} - good
