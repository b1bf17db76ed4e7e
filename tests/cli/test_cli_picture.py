"""`graphagent graph`: every format, to standard output or to a file."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

from cli_help import Call, graph


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
    assert sum(1 for group in root.iter("{http://www.w3.org/2000/svg}g") if group.get("class") == "edge") == arrows
    assert call("graph", graph("picture"), "-f", "svg").out == first


def test_a_file_that_cannot_be_written(call: Call) -> None:
    """A folder that isn't there is misuse, told with its name."""
    done = call("graph", graph("plain"), "-o", "no/such/folder.svg")
    assert (done.code, "'no/such/folder.svg' can't be written" in done.err) == (2, True)
