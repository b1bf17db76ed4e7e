"""Scripts: traces as text, and the real executor driven along them."""

from __future__ import annotations

from typing import Any

import pytest
from support.graphs import flow

from graphagent import END, StateGraph
from graphagent.errors import UsageError
from graphagent.graph.compiled import CompiledGraph
from graphagent.testing.scripted import play, play_at_random
from graphagent.validation import Facts, load_document, validate
from graphagent.validation.catalogue import catalogue
from graphagent.validation.explore import Pick
from graphagent.validation.notation import parse_notation
from graphagent.validation.outcomes import choices
from graphagent.validation.script import parse_script
from graphagent.validation.walk import script_text

pytestmark = pytest.mark.anyio

ENDS = {"GA301": "stalled", "GA308": "stalled"}
"""Codes whose trace is a whole run, and how it ends."""


def noted(text: str) -> CompiledGraph:
    """A graph in the notation, compiled."""
    return load_document(parse_notation(text)).builder.compile(strict=False)


def labelled(*labels: Any) -> CompiledGraph:
    """A node `a` whose route has these labels, each with a node of its own."""
    graph = StateGraph(flow("START -> a").schema.state).add_node("a", lambda state: {}).set_entry_point("a")
    for i in range(len(labels)):
        graph.add_node(f"n{i}", lambda state: {}).add_edge(f"n{i}", END)
    targets = {label: f"n{i}" for i, label in enumerate(labels)}
    return graph.add_conditional_edges("a", lambda state: labels[0], targets).compile()


def _behaviour() -> list[str]:
    """Rules on graphs that compile; the example of GA309 can't be said in the notation."""
    families = ("GA1", "GA2", "GA3", "GA5")
    return [code for code, rule in catalogue().items() if rule.fails and code != "GA309" and code[:3] in families]


@pytest.mark.parametrize("code", _behaviour())
async def test_the_trace_of_every_rule_can_be_run(code: str) -> None:
    """Whatever trace a rule's own example gives, the real eager engine follows it, pick by pick, to the said end."""
    graph = noted(catalogue()[code].fails)
    for finding in validate(graph, facts=Facts(engine="eager")).findings:
        if finding.trace:
            played = await play(graph, finding.script)
            assert script_text(graph, choices(graph), played.picks) == finding.script
            assert played.result.status == ENDS.get(finding.code, played.result.status)


async def test_a_script_that_is_over_first_leaves_the_run_unfinished() -> None:
    """What was due then did not run, and the run is not called ended."""
    played = await play(flow("START -> a -> b -> END").compile(), "a")
    assert (played.ended, len(played.picks)) == (False, 1)
    played = await play(flow("START -> a -> b -> END").compile(), "a; b")
    assert (played.ended, played.result.status) == (True, "completed")


@pytest.mark.parametrize("order", ["a; b; c", "b; a; c"])
@pytest.mark.parametrize("engine", ["eager", "superstep"])
async def test_activations_end_in_the_order_of_the_script(order: str, engine: Any) -> None:
    """Eager: as written. Supersteps: the picks of one step may be written in any order."""
    graph = flow("START -> a, b").add_node("c", lambda state: {}).add_join_edge(["a", "b"], "c").add_edge("c", END)
    played = await play(graph.compile(), order, engine=engine)
    assert played.result.status == "completed"
    if engine == "eager":
        assert "; ".join(graph.compile().names[pick.node] for pick in played.picks) == order


@pytest.mark.parametrize("engine", ["eager", "superstep"])
@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("m @ w then c; w -> c; c -> END", "m=send:w*2; w; w; c"),
        ("m @ w then c; w -> c; c -> END", "m=none; c"),
        ("a ? b | c; b -> END; c -> END", "a=c; c"),
        ("a * b | c; b -> END; c -> END", "a=b+c; b; c"),
    ],
)
async def test_fans_and_routes_are_scripted(text: str, script: str, engine: Any) -> None:
    """A node says what it sends to and what its route chooses."""
    played = await play(noted(text), script, engine=engine)
    assert played.result.status == "completed", played.result.reason


async def test_an_error_edge_is_an_outcome() -> None:
    """`error:target` makes the node fail, and its error edge is taken."""
    graph = flow("START -> a -> END", "mend -> END").add_error_edge("a", "mend").compile()
    played = await play(graph, "a=error:mend; mend")
    assert (played.result.status, len(played.picks)) == ("completed", 2)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("a; x", "the script names 'x', which is not a node"),
        ("a; c", "the script runs 'c', which is not due there"),
        ("a=left", "'left'"),
        ("b", "the script runs 'b', which is not due there"),
    ],
)
async def test_a_script_that_does_not_fit_is_refused(script: str, said: str) -> None:
    """Before anything runs, with what would fit."""
    with pytest.raises(UsageError, match=said):
        await play(flow("START -> a -> b -> c -> END").compile(), script)


@pytest.mark.parametrize("engine", ["eager", "superstep"])
async def test_picks_after_the_end_are_refused(engine: Any) -> None:
    """Nothing is due once a run is over."""
    with pytest.raises(UsageError, match="'a', which is not due there"):
        await play(flow("START -> a -> END").compile(), "a; a", engine=engine)


async def test_half_a_superstep_is_refused() -> None:
    """With supersteps a script names all activations of a step."""
    with pytest.raises(UsageError, match="superstep"):
        await play(flow("START -> a, b -> END").compile(), "a", engine="superstep")


@pytest.mark.parametrize("label", ["yes; please", "a=b", "back\\slash", "two\nlines", "END", "x\\n", " spaced "])
async def test_any_label_can_be_said(label: str) -> None:
    """What a trace prints is read back as the same pick, whatever signs a label has."""
    graph = labelled(label, "other")
    options = choices(graph)
    first = next(i for i, outcome in enumerate(options.of[0]) if outcome.chosen == (graph.index["n0"],))
    picks = (Pick(graph.index["a"], first),)
    assert parse_script(script_text(graph, options, picks), graph, options) == picks
    assert (await play(graph, f"{script_text(graph, options, picks)}; n0")).result.status == "completed"


@pytest.mark.parametrize("engine", ["eager", "superstep"])
async def test_random_runs_are_the_same_for_one_seed(engine: Any) -> None:
    """Other seeds go other ways."""
    graph = noted("a ? a | b | c; b -> END; c -> END")
    runs = [[(await play_at_random(graph, seed, engine=engine)).picks for seed in range(8)] for _ in range(2)]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 2


TIED = [
    "q ? yes: s | no: r; s -> a, r; r ? yes: b | no: END as q; a & b => j; j -> END",
    "q ? yes: s | no: r; s -> a, r; r ? yes: b | no: END; a & b => j; j -> END\n"
    "never q = yes, r = no\nnever q = no, r = yes",
]


@pytest.mark.parametrize("engine", ["eager", "superstep"])
@pytest.mark.parametrize("text", TIED, ids=["same_as", "assume"])
async def test_random_runs_keep_to_tied_choices(text: str, engine: Any) -> None:
    """A graph that is sound since two routers decide alike never stalls, and stalls once the tie is gone."""
    tied, loose = noted(text), noted(text.replace(" as q", "").partition("\n")[0])
    assert validate(tied, rules=["GA301"], facts=Facts(engine="both")).result == "clean"
    ends = [{(await play_at_random(g, seed, engine=engine)).result.status for seed in range(30)} for g in (tied, loose)]
    assert ends == [{"completed"}, {"completed", "stalled"}]
