"""The picture as a file: XML that needs nothing else, with a group for each node and each edge."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.graphs import Trail, flow, says
from support.pictures import SVG, edges, groups, node, texts, title
from support.random_graphs import Document, compiled, random_graphs

from graphagent import END, START, Command, CompiledGraph, StateGraph
from graphagent.errors import UsageError
from graphagent.graph.draw import lines
from runner.picture import Mark, picture


def asking() -> CompiledGraph:
    """A graph with a question, a route with labels, a loop and an error edge."""

    def choose(state: Any) -> Literal["yes", "again"]:
        return "yes"

    builder = flow("START -> read -> check", "write -> END", "mend -> END")
    builder.add_interrupt_node("approve", prompt="?", answer_type=bool).add_edge("check", "approve")
    builder.add_conditional_edges("approve", choose, {"yes": "write", "again": "approve"})
    return builder.add_error_edge("check", "mend", errors=(OSError,)).compile()


@given(random_graphs(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_c162_a_picture_of_any_graph(doc: Document, live: bool) -> None:
    """C162: the picture is XML with exactly the lines of the graph and a group for each node; twice the same."""
    graph = compiled(doc)
    drawn = picture(graph, {} if live else None)
    assert edges(drawn) == [(line.source, line.target) for line in lines(graph)]
    ends = {END} if any(line.target == END for line in lines(graph)) else set()
    assert {group.get("data-node") for group in groups(drawn, "node")} == {START, *graph.names, *ends}
    assert drawn == picture(graph, {} if live else None)


def test_c161_no_edge_that_is_not_declared() -> None:
    """C161: a node that may jump to two nodes has these two edges in the picture, and none to the end."""
    builder = flow("START -> plan -> turn", "one, two -> END")
    graph = builder.add_node("leap", lambda state: Command(goto="one"), destinations=["one", "two"]).compile()
    assert {target for source, target in edges(picture(graph)) if source == "leap"} == {"one", "two"}


def test_a_node_is_a_button_with_a_name() -> None:
    """Each node can be reached by the keyboard and says what it is; start and end are no buttons."""
    drawn = picture(asking())
    found = node(drawn, "approve")
    assert (found.get("data-kind"), found.get("tabindex"), found.get("role")) == ("interrupt", "0", "button")
    assert found.get("aria-label") == title(found) == "approve, interrupt"
    for name, kind in ((START, "start"), (END, "end")):
        assert (node(drawn, name).get("role"), node(drawn, name).get("data-kind")) == (None, kind)
    root = ET.fromstring(drawn)
    assert (root.get("role"), root.get("aria-label")) == ("group", asking().name)


def test_an_edge_names_its_ends_and_its_label() -> None:
    """Source, target, kind and label are attributes, the label is drawn, and the title says all of it."""
    found = {(group.get("data-target"), group.get("data-kind")): group for group in groups(picture(asking()), "edge")}
    error, loop, plain = found["mend", "error"], found["approve", "route"], found["check", "edge"]
    assert (error.get("data-source"), error.get("data-label")) == ("check", "error: OSError")
    assert texts(error) == ["error: OSError"]
    assert title(loop) == "approve to approve, route 'again'"
    assert (plain.get("data-label"), texts(plain), title(plain)) == ("", [], "read to check, edge")


def test_the_file_needs_nothing_else() -> None:
    """It loads no other file, has no program and no id that a second picture in the same page could take away."""
    drawn = picture(asking(), {})
    assert not re.search(r"<script|@import|url\(|href=|\sid=", drawn)
    assert re.findall(r'"(https?:[^"]*)"', drawn) == ["http://www.w3.org/2000/svg"]
    for element in ET.fromstring(drawn).iter(f"{SVG}style"):
        selectors = re.findall(r"(?:^|\}|\{)([^{}]*)\{", (element.text or "").replace("\n", ""))
        each = [part for selector in selectors for part in selector.split(",") if not part.startswith("@media")]
        assert each
        assert all(".ga-picture" in part for part in each)


@pytest.mark.parametrize("theme", [None, "light", "dark"])
def test_a_theme_is_chosen_on_the_root(theme: Any) -> None:
    """Without one the reader's scheme decides; a chosen one is an attribute of the root."""
    assert ET.fromstring(picture(asking(), theme=theme)).get("data-theme") == theme


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("a" * 60, "a" * 35 + "…", id="long"),
        pytest.param("日本" * 20, "日本" * 8 + "日…", id="wide"),
        pytest.param('<b> & "c"', '<b> & "c"', id="signs of XML"),
        pytest.param("two\nlines\tand tabs", "two lines and tabs", id="line breaks"),
        pytest.param("bell\x07 \ufffe", "bell\ufffd \ufffd", id="what XML can't have"),
        pytest.param("e\u0301" * 36, "e\u0301" * 36, id="accents of their own take no room"),
    ],
)
def test_names_of_all_sorts(name: str, shown: str) -> None:
    """A long name is cut on the node and whole in the attribute; what XML can't have is replaced, the rest is kept."""
    graph = StateGraph(Trail).add_node(name, says("a")).set_entry_point(name).set_finish_point(name).compile()
    groups_of = [group for group in groups(picture(graph, {}), "node") if group.get("role")]
    assert [group.get("data-node") for group in groups_of] == [re.sub("[\x07\ufffe]", "\ufffd", name)]
    assert texts(groups_of[0]) == [shown]


def test_texts_fit_their_boxes() -> None:
    """A node is wider than its name and a label no wider than its ground, also with the widest letters."""
    graph = flow("START -> " + " -> ".join(["W" * n for n in range(1, 50, 7)]) + " -> END").compile()
    for group in groups(picture(graph), "node"):
        if group.get("role"):
            box = group.find(f"{SVG}rect[@class='box']")
            assert box is not None
            assert float(box.get("width", 0)) >= 7.23 * len(texts(group)[0]) + 20


def test_a_node_is_as_wide_as_its_edges_need() -> None:
    """Twelve branches leave and meet side by side, with room for the head of each arrow."""
    names = ", ".join(f"b{i}" for i in range(12))
    drawn = picture(flow(f"START -> fork -> {names} -> meet -> END").compile())
    tips = [group.find(f"{SVG}path[@class='tip']") for group in groups(drawn, "edge")]
    heads = sorted({float((tip.get("d", "") if tip is not None else "")[1:].split()[0]) for tip in tips[-13:-1]})
    assert min(b - a for a, b in itertools.pairwise(heads)) >= 8


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"marks": {"aprove": Mark("done")}},
            "'aprove' is no node of the graph in the picture; did you mean 'approve'?",
        ),
        ({"breakpoints": {"chek"}}, "'chek' is no node of the graph in the picture; did you mean 'check'?"),
        ({"selected": "wrote"}, "'wrote' is no node of the graph in the picture; did you mean 'write'?"),
        (
            {"edge_marks": {("read", "chek"): 1}},
            "no edge from 'read' to 'chek' is in the picture; did you mean 'check'?",
        ),
        ({"theme": "dusk"}, "'dusk' is no theme of a picture; known: 'light', 'dark'"),
    ],
)
def test_what_is_not_in_the_graph_is_refused(more: dict[str, Any], said: str) -> None:
    """A mark, breakpoint, selection, count or theme for what isn't there is misuse, told with what may be meant."""
    with pytest.raises(UsageError, match=re.escape(said)):
        picture(asking(), **more)
