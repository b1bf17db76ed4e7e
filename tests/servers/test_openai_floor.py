"""One text out of what several agents say at once."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from runner.servers.openai.floor import Floor, Speaker


def speaker(name: str) -> Speaker:
    """An agent of a run."""
    return "run", name, name


def test_pieces_of_agents_side_by_side_do_not_mix_dev_case_C036() -> None:
    """Who began is heard out; the other's text comes behind it, with a gap, and goes on live."""
    floor, a, b = Floor(), speaker("a"), speaker("b")
    assert floor.piece(a, "one ") == "one "
    assert floor.piece(b, "two ") == ""
    assert floor.piece(a, "more") == "more"
    assert floor.whole(a, "one more") == "\n\ntwo "
    assert floor.piece(b, "too") == "too"
    assert floor.whole(b, "two too") == ""
    assert floor.rest() == ""
    assert not floor.changed


def test_final_content_is_not_repeated_services_cases_60_and_61() -> None:
    """After pieces the whole message says nothing new; without pieces it is said once."""
    floor, a = Floor(), speaker("a")
    assert floor.piece(a, "x") + floor.whole(a, "x") == "x"
    assert floor.whole(a, "y") == "\n\ny"


def test_a_message_that_differs_from_its_pieces_is_noticed() -> None:
    """A second attempt of a model says its text again."""
    floor, a = Floor(), speaker("a")
    floor.piece(a, "Hello wor")
    floor.piece(a, "Hello world")
    floor.whole(a, "Hello world")
    assert floor.changed


@given(
    texts=st.lists(st.lists(st.text("ab", min_size=1, max_size=3), max_size=4), max_size=5),
    seed=st.integers(0, 2**16),
    cut=st.booleans(),
)
def test_nothing_is_lost_or_doubled(texts: list[list[str]], seed: int, cut: bool) -> None:
    """However messages interleave, each is in the text once and in one piece; with what was cut off at the end."""
    floor, order = Floor(), random.Random(seed)
    todo = {speaker(str(number)): [*pieces] for number, pieces in enumerate(texts)}
    out = ""
    while todo:
        who = order.choice(list(todo))
        if todo[who]:
            out += floor.piece(who, todo[who].pop(0))
        else:
            del todo[who]
            if not cut or order.random() < 0.5:
                out += floor.whole(who, "".join(texts[int(who[1])]))
    out += floor.rest()
    said = sorted("".join(pieces) for pieces in texts if pieces)
    assert sorted(part for part in out.split("\n\n") if part) == said
