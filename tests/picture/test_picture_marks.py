"""Marks: a state is told by sign and in words, and a patch turns one picture into another."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.graphs import flow
from support.pictures import badge, groups, node, texts, title

from graphagent import END, START, CompiledGraph
from graphagent.errors import UsageError
from runner.picture import STATES, Mark, edge_patch, mark_patch, picture

GRAPH: CompiledGraph = flow("START -> a -> b, c -> d -> END").compile()
MARKS = st.builds(Mark, st.sampled_from(STATES), st.integers(0, 12), st.sampled_from(["", "2/3", "a & b"]))


def signs(name: str, mark: Mark) -> list[tuple[str, str]]:
    """What the badge of a node is made of beside its ground and its text: shapes, by kind and form."""
    found = badge(node(picture(GRAPH, {name: mark}), name))
    parts = [] if found is None else [part for part in found.iter() if part.tag.endswith(("path", "circle"))]
    return [(part.tag.rsplit("}")[-1], part.get("d") or part.get("r") or "") for part in parts]


def test_every_state_has_a_sign_of_its_own() -> None:
    """No two states look the same without colour; idle has no sign."""
    found = {state: signs("a", Mark(state)) for state in STATES}
    assert found["idle"] == []
    assert len({str(sign) for sign in found.values()}) == len(STATES)


@pytest.mark.parametrize(
    ("mark", "drawn", "words"),
    [
        (Mark("idle"), None, "a, function"),
        (Mark("idle", 1), ["1"], "a, function, 1 visit"),
        (Mark("done", 1), [], "a, function, done, 1 visit"),
        (Mark("done", 3), ["3"], "a, function, done, 3 visits"),
        (Mark("waiting", 2, "2/3"), ["2 2/3"], "a, function, waiting, 2 visits, 2/3"),
        (Mark("idle", 0, "1/2"), ["1/2"], "a, function, 1/2"),
        (
            Mark("failed", 1, "no such file or directory"),
            ["no such fil…"],
            "a, function, failed, 1 visit, no such file or ",
        ),
    ],
)
def test_a_badge_says_state_visits_and_note(mark: Mark, drawn: list[str] | None, words: str) -> None:
    """The badge has a sign, visits if there were several, and the note, cut; the title has all of it in words."""
    found = node(picture(GRAPH, {"a": mark}), "a")
    assert found.get("data-state") == mark.state
    there = badge(found)
    assert (None if there is None else texts(there)) == drawn
    assert title(found) == found.get("aria-label")
    assert title(found).startswith(words)


def test_a_picture_without_marks_has_no_badges() -> None:
    """The picture of a graph alone has no state; one with empty marks has a place for every badge."""
    assert not any(group.get("class") == "badge" for name in GRAPH.names for group in node(picture(GRAPH), name))
    assert node(picture(GRAPH), "a").get("data-state") is None
    for name in (START, *GRAPH.names, END):
        found = node(picture(GRAPH, {}), name)
        assert found.get("data-state") == "idle"
        assert [part.get("class") for part in found].count("badge") == 1


def test_start_and_end_can_be_marked() -> None:
    """That the end was reached can be seen."""
    found = node(picture(GRAPH, {END: Mark("done")}), END)
    assert (found.get("data-state"), badge(found) is not None) == ("done", True)


def test_breakpoints_and_the_selection() -> None:
    """A breakpoint is a class and a description, the selected node a class and the current one."""
    drawn = picture(GRAPH, {}, breakpoints={"b", "c"}, selected="c")
    assert [node(drawn, name).get("class") for name in "abc"] == ["node", "node breakpoint", "node breakpoint selected"]
    assert [node(drawn, name).get("aria-description") for name in "abc"] == [None, "breakpoint", "breakpoint"]
    assert [node(drawn, name).get("aria-current") for name in "abc"] == [None, None, "true"]


def test_edges_that_were_taken() -> None:
    """The more often an edge was taken the thicker it is, up to a bound; the title has the count."""
    drawn = {
        (group.get("data-source"), group.get("data-target")): group
        for group in groups(picture(GRAPH, edge_marks={("a", "b"): 1, ("b", "d"): 7, ("c", "d"): 10**6}), "edge")
    }
    assert drawn["a", "c"].get("data-taken") is None
    assert title(drawn["a", "b"]) == "a to b, edge, taken 1 time"
    assert title(drawn["b", "d"]) == "b to d, edge, taken 7 times"
    width = [float((drawn[pair].get("style") or "").removeprefix("stroke-width:")) for pair in (("a", "b"), ("b", "d"))]
    assert 1.3 < width[0] < width[1] < 5
    assert drawn["c", "d"].get("style") == "stroke-width:5.0"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"state": "runing"}, "'runing' is no state of a node in a picture; did you mean 'running'?"),
        ({"state": "done", "visits": -1}, "a node can't have been visited -1 times"),
    ],
)
def test_a_mark_that_cannot_be(bad: dict[str, Any], said: str) -> None:
    """A state that isn't one, or less than no visits, is refused where the mark is made."""
    with pytest.raises(UsageError, match=re.escape(said)):
        Mark(**bad)


def test_a_patch_has_what_differs() -> None:
    """Only nodes that differ are in it; one without a mark is idle; edges likewise; it is plain data."""
    before = {"a": Mark("running", 1), "b": Mark("idle"), "c": Mark("done", 1)}
    after = {"a": Mark("done", 1), "d": Mark("next")}
    patch = mark_patch(before, after)
    assert [(change["node"], change["state"], change["words"]) for change in patch] == [
        ("a", "done", "done, 1 visit"),
        ("d", "next", "next"),
        ("c", "idle", ""),
    ]
    assert patch[2]["badge"] == ""
    assert mark_patch(after, dict(after)) == []
    assert edge_patch({("a", "b"): 1, ("a", "c"): 2}, {("a", "b"): 2, ("a", "c"): 2}) == [
        {"source": "a", "target": "b", "taken": 2, "width": 2.8, "words": ", taken 2 times"}
    ]
    assert edge_patch({("a", "b"): 1}, {})[0] | {"source": ""} == {
        "source": "", "target": "b", "taken": 0, "width": 0.0, "words": ""
    }  # fmt: skip


@given(st.dictionaries(st.sampled_from(GRAPH.names), MARKS), st.dictionaries(st.sampled_from(GRAPH.names), MARKS))
@settings(max_examples=60, deadline=None)
def test_the_layout_does_not_depend_on_marks(before: dict[str, Mark], after: dict[str, Mark]) -> None:
    """Nodes and edges stay where they are, whatever is marked: a page can change marks without drawing anew."""

    def places(marks: dict[str, Mark]) -> list[tuple[str | None, str | None]]:
        return [(group.get("data-node"), group.get("transform")) for group in groups(picture(GRAPH, marks), "node")]

    assert places(before) == places(after)
    applied = before | {change["node"]: after.get(change["node"], Mark("idle")) for change in mark_patch(before, after)}
    assert picture(GRAPH, applied) == picture(GRAPH, after)
