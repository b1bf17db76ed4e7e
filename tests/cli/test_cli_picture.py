"""`graphagent graph`: every format, and an SVG picture in which nothing lies on anything else."""

from __future__ import annotations

import itertools
import json
import random
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from cli_help import Call, graph

from runner.cli.layout import COLUMN_GAP, NODE_HEIGHT, Edge, layout


def test_formats(call: Call) -> None:
    """Mermaid is the default; DOT, JSON and SVG are what their names say; JSON reads back as the same graph."""
    assert call("graph", graph("approval")).out.startswith("flowchart TD\n")
    assert call("graph", graph("approval"), "-f", "dot").out.startswith('digraph "approval" {')
    document = json.loads(call("graph", graph("approval"), "-f", "json").out)
    assert document == call("graph", graph("approval"), "-f", "json", "--json").data
    assert set(document["nodes"]) == {"read", "approve", "write", "refuse"}
    assert call("graph", graph("approval"), "-f", "svg", "--json").data["format"] == "svg"


def test_svg_shows_nodes_and_labels(call: Call) -> None:
    """The file is XML with every node, every label of a route, and a path for every transition; twice the same."""
    assert call("graph", graph("picture"), "-f", "svg", "-o", "picture.svg").out == "wrote picture.svg\n"
    first = Path("picture.svg").read_text("utf-8")
    root = ET.fromstring(first)
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"plan", "日本語", "a rather long name of a node", "again", "no, do it once more", "error: OSError"} <= texts
    mermaid = call("graph", graph("picture")).out
    arrows = sum(line.count("-->") + line.count("==>") + line.count("-.->") for line in mermaid.splitlines())
    assert sum(1 for path in root.iter("{http://www.w3.org/2000/svg}path") if path.get("marker-end")) == arrows
    assert call("graph", graph("picture"), "-f", "svg").out == first


def test_a_file_that_cannot_be_written(call: Call) -> None:
    """A folder that isn't there is misuse, told with its name."""
    done = call("graph", graph("plain"), "-o", "no/such/folder.svg")
    assert (done.code, "'no/such/folder.svg' can't be written" in done.err) == (2, True)


@pytest.mark.parametrize("seed", range(40))
def test_layout_of_any_graph(seed: int) -> None:
    """Random graphs with cycles and loops: nodes of a row keep their distance, edges begin and end at their nodes."""
    chance = random.Random(seed)
    names = [f"n{i}" for i in range(chance.randint(1, 25))]
    widths = {name: chance.uniform(30, 200) for name in names}
    edges = [
        Edge(chance.choice(names), chance.choice(names), chance.choice([0.0, 40.0])) for _ in range(len(names) * 2)
    ]
    made = layout(widths, edges)

    for a, b in itertools.combinations(names, 2):
        (ax, ay), (bx, by) = made.nodes[a], made.nodes[b]
        assert ay != by or abs(ax - bx) >= (widths[a] + widths[b]) / 2 + COLUMN_GAP - 0.001
    for edge, way in zip(edges, made.ways, strict=True):
        for (x, y), name in ((way[0], edge.source), (way[-1], edge.target)):
            assert abs(x - made.nodes[name][0]) <= widths[name] / 2 + 0.001
            assert abs(y - made.nodes[name][1]) <= NODE_HEIGHT / 2
    assert all(0 <= x <= made.width and 0 <= y <= made.height for x, y in made.nodes.values())
    assert made == layout(widths, edges)


def test_a_large_graph_is_drawn_quickly() -> None:
    """A chain of 300 nodes with a way back from every tenth is laid out without deep recursion."""
    names = [f"n{i}" for i in range(300)]
    edges = [Edge(a, b) for a, b in itertools.pairwise(names)]
    edges += [Edge(names[i], names[i - 9]) for i in range(10, 300, 10)]

    assert len(layout(dict.fromkeys(names, 50.0), edges).ways) == len(edges)
