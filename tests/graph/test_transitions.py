"""The transition function by case tables: what runs next, without an event loop.

A case is a graph, then calls of `fire` with the marking expected after each (the notation is in
`support.markings`). A call with several words is a superstep, several calls with one word each are the eager order.
"""

from __future__ import annotations

import pytest
from support.markings import Steps, completions, follow, graph_of, play, table

from graphagent.graph.marking import Activation, Marking
from graphagent.graph.transitions import enabled, finished, fire, starving


@table(
    one_entry=("a b: a>b", "a", [("a", "b"), ("b", "")]),
    entries_in_graph_order=("a b c: ^c ^a", "a@a c@c", [("c", "a@a"), ("a", "")]),
    chain_to_end=("a b: a>b b>END", "a", [("a", "b"), ("b", "END")]),
    end_beside_work=("a b c: a>b a>END b>c", "a", [("a", "b END"), ("b", "c END"), ("c", "END")]),
    entry_twice=("a b: ^a ^a a>b", "a", [("a", "b")]),
)
def test_start_and_plain_edges(text: str, begins: str, steps: Steps) -> None:
    """A run begins at its entries, in graph order, and plain edges lead on; END is noted and runs nothing."""
    follow(text, begins, steps)


@table(
    same_call_merges=("a b c d: a>b a>c b>d c>d", "a", [("a", "b@b c@c"), ("b c", "d"), ("d", "")]),
    two_calls_queue=(
        "a b c d: a>b a>c b>d c>d",
        "a",
        [("a", "b@b c@c"), ("b", "c@c d@b"), ("c", "d@b d@c"), ("d.0", "d@c")],
    ),
    unequal_lengths=("a b c e d: a>b a>c c>e b>d e>d", "a", [("a", "b@b c@c"), ("b c", "e@c d@b"), ("e d", "d@c")]),
    order_is_of_declaration=("s z y x: s>x s>y s>z", "s", [("s", "z@z y@y x@x")]),
    self_loop=("a: a>a", "a", [("a", "a"), ("a", "a")]),
)
def test_merging_and_queueing(text: str, begins: str, steps: Steps) -> None:
    """Triggers that one call makes to one node merge into one activation; across calls they queue."""
    follow(text, begins, steps)


@table(
    one_route=("a b c:", "a", [("a?c", "c"), ("c?END", "END")]),
    multi_route=("a b c d:", "a", [("a?d,b", "b@b d@d")]),
    multi_route_twice_the_same=("a b:", "a", [("a?b,b", "b")]),
    empty_route=("a b:", "a", [("a", "")]),
    route_beside_edge=("a b c: a>b", "a", [("a?c", "b@b c@c")]),
    route_to_the_target_of_the_edge=("a b: a>b", "a", [("a?b", "b")]),
    goto_replaces_edges=("a b c: a>b", "a", [("a=c", "c")]),
    goto_to_the_target_of_the_edge=("a b: a>b", "a", [("a=b", "b")]),
    goto_several=("a b c d: a>b", "a", [("a=c,d", "c@c d@d")]),
    goto_end=("a b: a>b", "a", [("a=END", "END")]),
    goto_nothing=("a b: a>b", "a", [("a=", "")]),
    goto_itself=("a b: a>b", "a", [("a=a", "a"), ("a", "b")]),
)
def test_routes_and_gotos(text: str, begins: str, steps: Steps) -> None:
    """Exactly the chosen targets run, each once; routes come beside plain edges, a goto replaces all out-edges."""
    follow(text, begins, steps)


DIAMOND = "a b c d: a>b a>c b,c=all>d"


@table(
    one_call=(DIAMOND, "a", [("a", "b@b c@c"), ("b c", "d"), ("d", "")]),
    one_by_one=(DIAMOND, "a", [("a", "b@b c@c"), ("c", "b@b d<c"), ("b", "d")]),
    unequal_lengths=(
        "a b c e d: a>b a>c c>e b,e=all>d",
        "a",
        [("a", "b@b c@c"), ("b c", "e@c d<b"), ("e", "d"), ("d", "")],
    ),
    starved=(DIAMOND, "a", [("a?", "b@b c@c"), ("b", "c@c d<b"), ("c=END", "END d<b")]),
    to_end=("a b c: a>b a>c b,c=all>END", "a", [("a", "b@b c@c"), ("b", "c@c __end__<b"), ("c", "END")]),
    source_comes_twice=(
        "a b c d: b,c=all>d",
        "a",
        [("a=b", "b"), ("b=b,b", "b"), ("b", "d<b")],
    ),
    leftover_waits_for_the_next_lap=(
        "a b c d: ^b ^c b>b b,c=all>d c>c",
        "b@b c@c",
        [
            ("b", "b@b/b c@c d<b"),
            ("b", "b@b/b c@c d<b"),
            ("c", "b@b/b c@c/c d d<b"),
            ("d", "b@b/b c@c/c d<b"),
            ("c", "b@b/b c@c/c d"),
        ],
    ),
    laps_of_a_loop=(
        "a b c d: a>b a>c b,c=all>d d>a",
        "a",
        [("a", "b@b c@c"), ("b c", "d"), ("d", "a"), ("a", "b@b c@c"), ("c", "b@b d<c"), ("b", "d")],
    ),
    one_source=("a d: a=all>d", "a", [("a", "d")]),
    beside_a_plain_edge=("a b c d: a>b a>c b,c=all>d b>d", "a", [("a", "b@b c@c"), ("b", "c@c d@b/d d<b")]),
)
def test_joins_of_mode_all(text: str, begins: str, steps: Steps) -> None:
    """An `all` join counts arrivals per source and takes one of each; what is left waits for the next lap."""
    follow(text, begins, steps)


@table(
    route_of_a_source_arrives=(DIAMOND, "a", [("a", "b@b c@c"), ("b?d", "c@c d<b"), ("c", "d")]),
    goto_of_a_source_arrives=(DIAMOND, "a", [("a", "b@b c@c"), ("b=d", "c@c d<b"), ("c=d", "d")]),
    goto_elsewhere_does_not=(DIAMOND, "a", [("a", "b@b c@c"), ("b=c", "c@c c@b"), ("c.0 c.1", "d<c")]),
    goto_of_another_triggers=("a b c x d: a>x b,c=all>d", "a", [("a", "x"), ("x=d", "d"), ("d", "")]),
    two_joins_on_one_target=(
        "a b c e d: ^a ^b ^c ^e a,b=all>d#one c,e=all>d#two",
        "a@a b@b c@c e@e",
        [("a b", "c@c e@e d"), ("c", "e@e d two<c"), ("e", "d d")],
    ),
    two_joins_that_fire_in_one_call=(
        "a b c e d: ^a ^b ^c ^e a,b=all>d#one c,e=all>d#two",
        "a@a b@b c@c e@e",
        [("a b c e", "d")],
    ),
    a_goto_arrives_at_both_joins=(
        "a b c d: ^a ^b ^c a,b=all>d#one a,c=all>d#two",
        "a@a b@b c@c",
        [("a=d", "b@b c@c one<a two<a"), ("b", "c@c d two<a"), ("c", "d d")],
    ),
    a_firing_merges_with_a_trigger=(
        "a b c x d: ^a ^b ^x a,b=all>d x>d",
        "a@a b@b x@x",
        [("a b x", "d"), ("d", "")],
    ),
    nested=(
        "s a b c d j k: s>a s>b a>c a>d c,d=all>j j,b=all>k",
        "s",
        [("s", "a@a b@b"), ("a b", "c@a/c d@a/d k<b"), ("c", "d@a/d j<c k<b"), ("d", "j@a k<b"), ("j", "k"), ("k", "")],
    ),
    one_source_feeds_two_joins=(
        "a b c j k: ^a ^b ^c a,b=all>j b,c=all>k",
        "a@a b@b c@c",
        [("b", "a@a c@c j<b k<b"), ("a c", "j k")],
    ),
)
def test_arrivals_and_several_joins(text: str, begins: str, steps: Steps) -> None:
    """A source arrives by edge, route or goto; other nodes trigger the target; joins count apart and may nest."""
    follow(text, begins, steps)


TRIO = "^a ^b ^c a,b,c={}>d"


@table(
    any_fires_at_the_first=(
        f"a b c d: {TRIO.format('any')}",
        "a@a b@b c@c",
        [("b", "a@a c@c d@b"), ("a", "c@c d@b"), ("c d", "")],
    ),
    any_in_one_call=(f"a b c d: {TRIO.format('any')}", "a@a b@b c@c", [("a b c", "d@a"), ("d", "")]),
    two_of_three=(
        f"a b c d: {TRIO.format('2')}",
        "a@a b@b c@c",
        [("c", "a@a b@b d<c"), ("a", "b@b d"), ("b d", "")],
    ),
    three_of_three=(f"a b c d: {TRIO.format('3')}", "a@a b@b c@c", [("a c", "b@b d<a,c"), ("b", "d")]),
    half_full_at_the_end=(f"a b c d: {TRIO.format('2')}", "a@a b@b c@c", [("a b=END c=END", "END d<a")]),
    a_fired_lap_is_not_half_full=("a b d: ^a ^b a,b=any>d", "a@a b@b", [("a", "b@b d@a"), ("b=END d", "END")]),
    the_same_source_again_begins_a_lap=(
        "a b d: ^a ^b a,b=any>d a>a",
        "a@a b@b",
        [("a", "a@a/a b@b d@a/d"), ("a", "a@a/a b@b d@a/d d@a/a/d")],
    ),
    a_lap_ends_when_nothing_can_come=(
        "r x y d: x,y=any>d d>r",
        "r",
        [("r?x", "x"), ("x", "d"), ("d", "r"), ("r?y", "y"), ("y", "d"), ("d", "r"), ("r?x", "x"), ("x", "d")],
    ),
    c011_both_signals_in_one_wave=(
        "r x y d: r?x,y x,y=any>d d>r",
        "r",
        [("r?x,y", "x@x y@y"), ("x y", "d@x"), ("d", "r")],
    ),
)
def test_joins_of_mode_any_and_n(text: str, begins: str, steps: Steps) -> None:
    """`any` and `n` fire once a lap; late sources are absorbed until all came, one comes again, or none can come."""
    follow(text, begins, steps)


CHOICE = "r x y z d: r?x,y,z x,y,z=active>d"


@table(
    one_taken=(CHOICE, "r", [("r?y", "y"), ("y", "d"), ("d", "")]),
    two_taken=(CHOICE, "r", [("r?x,z", "x@x z@z"), ("x", "z@z d<x"), ("z", "d")]),
    two_taken_in_one_call=(CHOICE, "r", [("r?x,z", "x@x z@z"), ("x z", "d")]),
    waits_for_what_is_on_its_way=(
        "r x y w d: r?x,w w>y x,y=active>d",
        "r",
        [("r?x,w", "x@x w@w"), ("x", "w@w d<x"), ("w", "y@w d<x"), ("y", "d")],
    ),
    fires_when_the_other_way_ends_elsewhere=(
        "r x y w d: r?x,w w?y x,y=active>d",
        "r",
        [("r?x,w", "x@x w@w"), ("x", "w@w d<x"), ("w?END", "d@x END")],
    ),
    does_not_wait_for_its_own_future=(
        "r x y d: r?x,y x,y=active>d d>r",
        "r",
        [("r?x", "x"), ("x", "d"), ("d", "r"), ("r?x,y", "x@x y@y"), ("x y", "d")],
    ),
    waits_for_another_active_join=(
        "s a b c j k: s>a s>b s?c a,c=active>j j,b=active>k",
        "s",
        [("s", "a@a b@b"), ("b", "a@a k<b"), ("a", "j@a k<b"), ("j", "k")],
    ),
    a_waiting_active_join_counts_as_running=(
        "s a b c e j k: s>a s>b s>e c?b a,c=active>j j,b=active>k e?c",
        "s",
        [("s", "a@a b@b e@e"), ("a b", "e@e j<a k<b"), ("e=END", "j@a END k<b"), ("j", "k END")],
    ),
    two_on_one_target_do_not_wait_for_each_other=(
        "r x y u v d: r?x,y,u,v x,y=active>d#one u,v=active>d#two d>r",
        "r",
        [("r?x,u", "x@x u@u"), ("x u", "d"), ("d", "r")],
    ),
    nobody_came=(CHOICE, "r", [("r", "")]),
)
def test_joins_of_mode_active(text: str, begins: str, steps: Steps) -> None:
    """An `active` join fires with what came once no running node can bring a missing source past it."""
    follow(text, begins, steps)


def test_enabled_is_the_whole_frontier_and_those_that_go_on_are_the_same_objects() -> None:
    """`enabled` hides nothing, and `fire` hands on what it was not told about as it is."""
    graph = graph_of("a b c d: a>b a>c b>d")
    marking = play(graph, "a")
    after = fire(graph, marking, completions(graph, marking, "b"))
    assert enabled(marking) == marking.frontier
    assert after.frontier[0] is marking.frontier[1]


def test_firing_nothing_changes_nothing() -> None:
    """The empty subset of the frontier is a subset: the marking stays."""
    for text, calls in (("a b: a>b", []), ("a b c: a>b a>c b,c=active>END", ["a"])):
        graph = graph_of(text)
        marking = play(graph, *calls)
        assert fire(graph, marking, []) == marking


def test_markings_are_values() -> None:
    """`fire` leaves the marking it is given as it was, so that any point can be gone on from again."""
    graph = graph_of("a b c d: a>b a>c b,c=all>d")
    marking = play(graph, "a", "b")
    before = Marking(*marking)
    first, second = play(graph, "a", "b", "c"), fire(graph, marking, completions(graph, marking, "c"))
    assert marking == before
    assert first == second


def test_overlay_index_and_group_travel_with_the_activation() -> None:
    """A Send's overlay, place and group are part of its activation."""
    graph = graph_of("a w: w>END")
    members = play(graph, "a*w,w").frontier
    assert [(m.overlay, m.place, m.group) for m in members] == [({"item": 0}, 0, 1), ({"item": 1}, 1, 1)]


def test_triggers_are_the_origins_of_all_that_arrived() -> None:
    """An activation remembers every completion that triggered it: of merged edges, of a join, of a group."""
    merged = graph_of("a b c d: a>b a>c b>d c>d")
    assert play(merged, "a", "b c").frontier[0].trigger == ("b!", "c!")
    join = graph_of("a b c d: a>b a>c b,c=all>d")
    assert play(join, "a", "c", "b").frontier[0].trigger == ("b!", "c!")
    group = graph_of("a w x: w>x")
    assert play(group, "a*w,w", "w w").frontier[0].trigger == ("w!", "w!")


@pytest.mark.parametrize(
    ("text", "others", "frontier"),
    [
        pytest.param("a b c d: a>b a>c", "", {"c": None, "d": "Boom: no"}, id="plain"),
        pytest.param("a b c d: a>b a>c c>d", "c", {"d": "Boom: no"}, id="merged-with-an-edge"),
        pytest.param("a b c d: a>b a>c b,c=all>d", "c", {"d": "Boom: no"}, id="arrives-at-a-join"),
        pytest.param("a b c e d: a>b a>c a>e c,e=all>d", "c e", {"d": "Boom: no"}, id="merged-with-a-join"),
    ],
)
def test_an_error_travels_to_the_node_that_handles_it(text: str, others: str, frontier: dict[str, str | None]) -> None:
    """A completion that left by an error edge hands the text of its failure to the target, whatever else arrives."""
    graph = graph_of(text)
    marking = play(graph, "a")
    (failed,) = completions(graph, marking, "b=d")
    after = fire(graph, marking, [failed._replace(error="Boom: no"), *completions(graph, marking, others)])
    assert {graph.names[a.node]: a.error for a in after.frontier} == frontier


def test_the_report_names_join_target_and_sources() -> None:
    """A starved join is reported with its id, its target, the sources it has and those it misses."""
    graph = graph_of("a b c d: ^a ^b ^c a,b,c=2>d#quorum")
    marking = play(graph, "b", "a=END", "c=END")
    (found,) = starving(graph, marking)
    assert finished(marking)
    assert str(found) == "join 'quorum' into 'd' waits for 'a', 'c', has 'b'"


def test_a_leftover_is_reported() -> None:
    """A source that came once too often is told of at the end, with what it waits for."""
    graph = graph_of("a b c d: ^b ^c b,c=all>d")
    marking = play(graph, "b=b", "b", "c=c,b", "b", "c", "d")
    assert [str(found) for found in starving(graph, marking)] == ["join 'd' into 'd' waits for 'c', has 'b'"]


def test_keys_ignore_payload_only() -> None:
    """`Marking.key()` is equal for markings that differ in branch, overlay or trigger, and differs with the future."""
    graph = graph_of("a b w x: w>x")
    one, other = play(graph, "a*w,w"), play(graph, "a*w,w,w")
    bare = one._replace(frontier=tuple(a._replace(branch=(), overlay=None, trigger=()) for a in one.frontier))
    assert bare.key() == one.key()
    assert one.key() != other.key()
    assert Marking((Activation(0),)).key() != Marking((Activation(1),)).key()
    assert Marking((), ended=True).key() != Marking(()).key()
