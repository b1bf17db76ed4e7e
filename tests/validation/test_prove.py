"""The proof of soundness: what it says, what it refuses to judge, and that it is right.

`sound_by_search` judges a graph by every interleaving that `fire` allows, with nothing reduced. In the class of graphs
that have a free-choice net the two must agree, both ways; outside it there must be no proof.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from support.graphs import flow
from support.random_graphs import MODES, blocks, compiled, random_graphs, structured

from graphagent import Command
from graphagent.graph.compiled import CompiledGraph
from graphagent.validation import Bounds, Facts, load_document, validate
from graphagent.validation.explore import Exploration, explore
from graphagent.validation.net import Net, OutOfClassError, image
from graphagent.validation.notation import parse_notation
from graphagent.validation.outcomes import choices
from graphagent.validation.prove import Proof, prove
from graphagent.validation.rank import sound
from graphagent.validation.reduce import reduce
from graphagent.validation.subject import Subject

BOUNDS = Bounds(max_states=500, max_seconds=5)


def proof_of(graph: CompiledGraph) -> Proof | None:
    """The proof of a graph, if there is one."""
    return prove(graph, choices(graph))


def of(text: str) -> CompiledGraph:
    """A graph in the text notation."""
    return compiled(parse_notation(text))


def net_of(graph: CompiledGraph) -> Net | None:
    """The free-choice net of a graph, if it has one."""
    try:
        return image(graph, choices(graph))
    except OutOfClassError:
        return None


def sound_by_search(graph: CompiledGraph) -> bool | None:
    """Whether every run ends properly, by exploring every interleaving; None if that is too much."""
    found = explore(graph, choices(graph), BOUNDS, reduced=False)
    flaw = next(flaws(graph, found), None)
    return None if flaw is None and not found.complete else flaw is None


def flaws(graph: CompiledGraph, found: Exploration) -> Iterator[str]:
    """All that is wrong with what was explored; the last two need a complete exploration."""
    if found.growing:
        yield "grows without bound"
    for marking in found.markings:
        waiting = [join for join in marking.joins if join is not None]
        if marking.ended and (marking.frontier or waiting):
            yield "END is reached while something is left"
        if not marking.frontier and (waiting or not marking.ended):
            yield "stops short of END"
        if any(len(queue) > 1 for join in waiting for _, queue in join.arrived):
            yield "a second arrival of one source"
    yield from repeats(graph, found)
    if not found.complete:
        return
    ran = {graph.names[pick.node] for moves in found.moves for move in moves or () for pick in move.picks}
    if not subject_of(graph).reachable <= ran:
        yield "a node never runs"
    if len(leading_to(found, {*found.terminals})) < len(found.markings):
        yield "a run can't end any more"


def repeats(graph: CompiledGraph, found: Exploration) -> Iterator[str]:
    """Nodes outside every cycle that run twice on one path, members of Send groups apart."""
    begun: dict[int, set[int]] = {}
    ended: dict[int, set[int]] = {}
    for state, moves in enumerate(found.moves):
        for move in moves or ():
            for pick in move.picks:
                if graph.names[pick.node] not in subject_of(graph).cycles and not pick.grouped:
                    begun.setdefault(pick.node, set()).add(state)
                    ended.setdefault(pick.node, set()).add(move.target)
    for node, states in begun.items():
        if leading_to(found, states) & ended[node]:
            yield f"'{graph.names[node]}' runs twice"


def leading_to(found: Exploration, states: set[int]) -> set[int]:
    """The states from which one of these can be reached."""
    before: dict[int, list[int]] = {}
    for state, moves in enumerate(found.moves):
        for move in moves or ():
            before.setdefault(move.target, []).append(state)
    reached = set(states)
    queue = list(states)
    while queue:
        fresh = set(before.get(queue.pop(), ())) - reached
        reached |= fresh
        queue += fresh
    return reached


def subject_of(graph: CompiledGraph) -> Subject:
    """What the rules see of the drawing."""
    return Subject(graph, None, BOUNDS, {})  # type: ignore[arg-type]


def agrees(graph: CompiledGraph) -> None:
    """Compare proof, rank theorem with and without reduction, and search."""
    proof, net, searched = proof_of(graph), net_of(graph), sound_by_search(graph)
    if net is None:
        assert proof is None
        return
    assert sound(net) == sound(reduce(net)[0]) == (proof is not None)
    assert searched is None or searched == (proof is not None)


@settings(max_examples=100, deadline=None)
@given(random_graphs(("all",)))
def test_a_proof_says_what_every_interleaving_says(doc: dict[str, Any]) -> None:
    """In class a graph is proved exactly if no interleaving goes wrong; outside it never is."""
    agrees(compiled(doc))


@settings(max_examples=50, deadline=None)
@given(random_graphs(MODES))
def test_joins_of_other_modes_are_not_proved(doc: dict[str, Any]) -> None:
    """Whatever the modes of the joins, nothing is proved that goes wrong."""
    agrees(compiled(doc))


@settings(max_examples=100, deadline=None)
@given(structured(("all",), 30))
def test_blocks_inside_blocks_are_proved(doc: dict[str, Any]) -> None:
    """Graphs that are sound by the way they were made have a proof, by either theory."""
    net = net_of(compiled(doc))
    assert proof_of(compiled(doc)) is not None
    assert net is not None
    assert sound(net)


SOUND = {
    "one node": ("a -> END", "reduction"),
    "series": ("a -> b; b -> c; c -> END", "reduction"),
    "choice": ("r ? a | b; a -> m; b -> m; m -> END", "reduction"),
    "fork and join": ("s -> a, b; a & b => j; j -> END", "reduction"),
    "join into END": ("s -> a, b; a & b => END", "reduction"),
    "two entries": ("entry a, b; a & b => j; j -> END", "reduction"),
    "join of one": ("s -> a; a => j; j -> END", "reduction"),
    "loop": ("a -> b; b ? a | END", "reduction"),
    "loop around a fork": ("s -> a, b; a & b => j; j ? s | END", "reduction"),
    "loop in a branch": ("s -> a, b; a ? a | c; b & c => j; node c; j -> END", "reduction"),
    "forks across": ("s -> a, b; a -> c, d; b -> e, f; c & e => x; d & f => y; x & y => j; j -> END", "reduction"),
    "error edge": ("a -> b; a !> h; h -> b; b -> END", "reduction"),
    "fan-out": ("m @ w then c; w -> c; c -> END", "reduction"),
    "fan-out into a join": ("s -> m, b; m @ w then w; b & w => j; j -> END", "reduction"),
    "loop with two ways in": ("r ? a | b; a ? b | END; b ? a | END", "rank"),
    "such a loop in a branch": ("s -> r, p; r ? a | b; a ? b | x; b ? a | x; p & x => j; node x; j -> END", "rank"),
}
BROKEN = {
    "join behind a choice": "r ? a | b; a & b => j; j -> END",
    "merge behind a fork": "s -> a, b; a -> m; b -> m; m -> END",
    "branch that ends apart": "s -> a, b; a -> END; node b",
    "answer too early": "s -> a, b; a -> END; b -> c; c -> END",
    "loop without a way out": "a -> b; b -> a; c -> END; a !> b",
    "two that must agree": "s -> a, b; a ? c | d; b ? e | f; c & e => x; d & f => y; x -> END; y -> END",
    "join that waits for itself": "s -> a; a & j => j; j -> END",
    "loop that starts a branch again": "s -> a, b; a ? s | c; b & c => j; node c; j -> END",
    "source that nothing leads to": "s -> a; a & b => j; j -> END; b -> a",
    "route beside an arrival": "s -> a, b; a ? c | j; c -> a; b & a => j; j -> END",
    "fork that starts itself again": "a -> a, m, b; m @ w then c; w -> c; c & b => j; j -> END",
    "some of several": "r * a | b; a -> END; b -> END",
    "fan-out to none, in silence": "m @ w; w -> END",
}
OUT = {
    "END is not named": "a -> b; node b",
    "active join": "s -> a, b; a & b =active=> j; j -> END",
    "any join": "s -> a, b; a & b =any=> j; j -> END",
    "counted join": "s -> a, b; a & b =2=> j; j -> END",
    "targets that are not declared": "a ? ?; b -> END",
    "ways that are tied": "a ? b | c; b -> d; c -> d; d ? e | f as a; e -> END; f -> END",
    "outcomes that never meet": "a ? b | c; b -> END; c -> END; never a = b, a = c",
    "too many choices": "r * "
    + " | ".join(f"n{i}" for i in range(11))
    + "; "
    + "; ".join(f"n{i} -> END" for i in range(11)),
    "member that chooses": "m @ w then c; w ? c | d; c -> END; d -> END",
    "member that may fail": "m @ w then c; w -> c; w !> c; c -> END",
    "edge beside a join": "s -> a, b; a & b => j; a -> j; j -> END",
}


@pytest.mark.parametrize(("text", "stage"), SOUND.values(), ids=SOUND.keys())
def test_sound_graphs_are_proved_at_the_stage_that_can(text: str, stage: str) -> None:
    """What reduces to one place needs no theorem; loops with two ways in do. The search agrees."""
    graph = of(text)
    proof = proof_of(graph)
    assert proof is not None
    assert proof.stage == stage
    assert sound_by_search(graph)


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_broken_graphs_in_class_are_refused(text: str) -> None:
    """They have a net, no proof, and the search finds what is wrong."""
    graph = of(text)
    assert net_of(graph) is not None
    assert proof_of(graph) is None
    assert sound_by_search(graph) is False


@pytest.mark.parametrize("text", OUT.values(), ids=OUT.keys())
def test_what_a_net_cannot_show_is_left_to_the_search(text: str) -> None:
    """Out of class there is no proof, sound or not."""
    graph = of(text)
    assert net_of(graph) is None
    assert proof_of(graph) is None


def test_a_goto_to_the_target_of_a_join_is_an_arrival() -> None:
    """A source of a join that jumps elsewhere doesn't arrive, one that jumps to the target does: so a loop is sound."""
    doc = parse_notation("s -> a, b; c -> a; a & b => j; node b; j -> END")
    doc["nodes"]["a"] |= {"destinations": ["c", "j"], "jumps": ["goto"]}
    graph = compiled(doc)
    assert proof_of(graph) is not None
    assert sound_by_search(graph)


def test_the_log_is_the_certificate() -> None:
    """The reductions of a fork with a choice in one branch, in order, by the names of the graph."""
    proof = proof_of(of("s -> a, b; a ? c | d; c -> e; d -> e; b & e => j; node e; j -> END"))
    assert proof is not None
    assert proof.log == (
        "R1 __start__, s",
        "R1 b, b&j",
        "R1 c, e",
        "R1 d, e",
        "R1 e, e&j",
        "R1 j, __end__",
        "R2 a, e",
        "R1 a, e",
        "R3 b&j, e",
        "R1 s, b&j",
        "R1 b&j, j",
    )


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("a -> END", "reduction"),
        ("r ? a | b; a ? b | END; b ? a | END", "rank"),
        ("s -> a, b; a -> m; b -> m; m -> END", "search"),
    ],
    ids=["reduction", "rank", "search"],
)
def test_the_report_says_which_stage_decided(text: str, stage: str) -> None:
    """A proof makes the search needless; without one the search decides."""
    report = validate(load_document(parse_notation(text)).builder, facts=Facts(engine="eager"))
    assert report.stats.decided_by == stage


def test_the_proof_does_not_depend_on_what_cannot_be_reached() -> None:
    """A join that hangs in a part nothing leads to doesn't count; the structure rules report it."""
    assert proof_of(of("a -> END; x -> y, z; y & z & a => w; w -> END")) is None
    assert proof_of(of("a -> END; x ? y | z; y & z => w; w -> END")) is not None


def test_a_goto_that_is_not_drawn_may_close_no_cycle() -> None:
    """An unseen goto of a graph that isn't strict makes a loop that the drawing lacks: rules would misread a proof."""

    def jumping(state: Any) -> Any:
        return Command(goto=state.item)

    builder = flow("START -> a -> b -> END", a=jumping)
    assert proof_of(builder.compile(strict=False)) is None
    assert proof_of(flow("START -> a -> b -> END").compile()) is not None


@pytest.mark.parametrize("size", [250, 1000])
def test_large_structured_graphs_reduce_to_one_place(size: int) -> None:
    """Series, choices, forks and loops, nested, of some hundred nodes."""
    proof = proof_of(compiled(blocks(random.Random(size), size)))
    assert proof is not None
    assert proof.stage == "reduction"


@pytest.mark.parametrize("loops", [False, True], ids=["routers", "loops"])
def test_parallel_branches_reduce_whatever_is_in_them(loops: bool) -> None:
    """Twelve branches of five nodes, each with a router or a loop: no product of their states."""
    inner = "b{0} -> c{0}; c{0} ? b{0} | d{0}; " if loops else "b{0} ? c{0} | x{0}; c{0} -> d{0}; x{0} -> d{0}; "
    branches = "".join(("a{0} -> b{0}; " + inner + "d{0} -> e{0}; node e{0}; ").format(i) for i in range(12))
    fork = ", ".join(f"a{i}" for i in range(12))
    join = " & ".join(f"e{i}" for i in range(12))
    proof = proof_of(of(f"s -> {fork}; {branches}{join} => j; j -> END"))
    assert proof is not None
    assert proof.stage == "reduction"
