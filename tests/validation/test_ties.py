"""Choices that are tied: `same_as` and `assume`, whichever of the nodes comes first."""

from __future__ import annotations

import pytest
from support.crosscheck import compiled

from graphagent.testing.scripted import play_at_random
from graphagent.validation import Facts, load_document, validate
from graphagent.validation.notation import parse_notation

pytestmark = pytest.mark.anyio
ALIKE = "s -> q, r\nq ? yes: a | no: END\nr ? yes: b | no: END as q\na & b => j\nj -> END"


def codes(text: str, engine: str) -> set[str]:
    """The codes of warnings and errors on a graph in the text notation."""
    report = validate(load_document(parse_notation(text)).builder, facts=Facts(engine=engine))  # type: ignore[arg-type]
    return {finding.code for finding in report.findings if finding.severity != "info"}


@pytest.mark.parametrize("engine", ["eager", "superstep", "both"])
def test_routes_that_decide_alike_never_starve_their_join(engine):
    """A join behind two routes tied by same_as is sound, whichever of them decides first."""
    assert codes(ALIKE, engine) == set()
    assert "GA301" in codes(ALIKE.replace(" as q", ""), engine)


def test_outcomes_that_never_meet_are_left_out():
    """A stall that needs two outcomes which are declared never to meet is no finding."""
    loose = "s -> q, r\nq ? a | END\nr ? b | END\na -> j\nb -> j\nj -> END"
    assert "GA302" in codes(loose, "eager")
    assert "GA302" not in codes(loose + "\nnever q = a, r = b", "eager")


async def test_the_leader_is_free_in_every_lap():
    """In a loop the leader chooses anew each lap and the follower goes with it, in the search as in random runs."""
    text = "s -> q, r\nq ? yes: a | no: c\nr ? yes: b | no: d as q\na & b => j\nc & d => k\nj ? s | END\nk ? s | END"
    assert codes(text, "both") == set()
    graph = compiled(parse_notation(text))
    for seed in range(60):
        played = await play_at_random(graph, seed, engine="eager" if seed % 2 else "superstep", max_steps=60)
        assert played.result.status in ("completed", "limit_reached")
