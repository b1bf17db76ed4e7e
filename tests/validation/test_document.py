"""A graph as JSON: what a file of it says is validated as the graph itself would be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.graphs import Trail, flow, says

from graphagent import END, START, Command, Send, StateGraph
from graphagent.errors import UsageError
from graphagent.validation import Facts, load_document, read_document, validate

SHARED = Path(__file__).parents[2].parent / "shared"
CASES = sorted((SHARED / "validator_cases").glob("*.json"))


@pytest.mark.skipif(not CASES, reason="the folder of known graphs is not beside the project")
@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_a_known_graph_is_judged_as_expected(path: Path) -> None:
    """All findings that must be there, none that must not, and the worst severity."""
    expected = json.loads(path.read_text("utf-8"))["expected"]
    source = load_document(read_document(path), path=str(path))
    report = validate(source.builder, facts=replace(source.facts, engine="eager"))
    found = [(finding.code, set(finding.at)) for finding in report.findings]
    for must in expected["must"]:
        assert any(code == must["code"] and set(must["at"]) <= at for code, at in found), must
    assert not {code for code, _ in found} & set(expected["must_not"])
    assert (report.worst or "clean") == expected["verdict"]


async def jumps(state: Trail) -> Command:
    """Goes on to 'b' or to the end."""
    return Command(goto="b" if state.n else END)


async def sends(state: Trail) -> list[Send]:
    """Fans out to 'w'."""
    return [Send("w", {"item": text}) for text in state.log]


def jumping() -> StateGraph:
    """A node that leads on by a jump which only its function shows."""
    return flow("START -> a", "b -> END", a=jumps, b=says("b"))


def fanning() -> StateGraph:
    """A fan-out by a function, without a collector."""
    return flow("START -> p", "w -> r -> END", p=sends, w=says("w"))


def allowing() -> StateGraph:
    """A node that runs twice, with leave."""
    graph = flow("START -> s -> a, b", m=says("m"))
    graph.definition.nodes = [
        replace(node, allow=("GA302: wanted",)) if node.id == "m" else node for node in graph.definition.nodes
    ]
    return graph.add_edge("a", "m").add_edge("b", "m").add_edge("m", END)


def assuming() -> StateGraph:
    """A join that is complete only since two choices never disagree."""
    graph = flow("START -> s -> r, q", a=says("a"), b=says("b"), j=says("j"))
    graph.add_conditional_edges("r", lambda state: "a", ["a", END]).add_conditional_edges(
        "q", lambda state: "b", ["b", END]
    )
    graph.add_join_edge(["a", "b"], "j").add_edge("j", END)
    return graph.assume(r="a", q=END).assume(r=END, q="b")


def asking() -> StateGraph:
    """Interrupt and map nodes, breakpoints, an error edge."""
    graph = StateGraph(Trail).add_interrupt_node("ask", prompt="?", key="item").add_node("r", says("r"))
    graph.add_map_node("m", says("w"), over="log", item_key="item", collect="r").add_node("h", says("h"))
    graph.add_edge(START, "ask").add_edge("ask", "m").add_edge("r", END).add_error_edge("r", "h", errors=ValueError)
    return graph.add_edge("h", END).interrupt_before_nodes("r").limits(steps=2).must_pass("r", through="ask")


@pytest.mark.parametrize("build", [jumping, fanning, allowing, assuming, asking])
def test_the_json_of_a_graph_is_judged_like_the_graph(build: Any) -> None:
    """The same codes at the same nodes, whether validated from code or from what `to_json` wrote."""
    graph = build().compile()
    source = load_document(json.loads(json.dumps(graph.to_json())))
    facts = Facts(engine="eager")
    direct, read = validate(graph, facts=facts), validate(source.builder, facts=facts)
    assert {(f.code, f.at) for f in read.findings} == {(f.code, f.at) for f in direct.findings}
    assert [f.code for f in read.allowed] == [f.code for f in direct.allowed]


def test_what_a_graph_does_not_say_of_its_fields_stays_unknown() -> None:
    """Undeclared reads and writes are null in the JSON, not empty, and come back so; declared empty ones stay empty."""
    graph = StateGraph(Trail).add_node("a", says("a")).add_node("b", says("b"), reads=(), writes=("log",))
    compiled = graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", END).compile()
    nodes = compiled.to_json()["nodes"]
    assert [(nodes[name]["reads"], nodes[name]["writes"]) for name in ("a", "b")] == [(None, None), ([], ["log"])]
    again = StateGraph.from_json(compiled.to_json(), {"a": says("a"), "b": says("b")}).compile()
    assert [(node.reads, node.writes) for node in again.defs] == [(None, None), ((), ("log",))]
    assert again.to_json() == compiled.to_json()


BROKEN: list[tuple[str, str]] = [
    ("{", "can't be read as the JSON of a graph"),
    ("[]", "it has no 'nodes'"),
    ('{"entry": ["a"]}', "it has no 'nodes'"),
]


@pytest.mark.parametrize(("text", "expected"), BROKEN)
def test_a_file_that_is_no_graph_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    """The error names the file and what is missing."""
    path = tmp_path / "order.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=expected):
        read_document(path)
    with pytest.raises(UsageError, match=r"order\.json"):
        read_document(path)


@pytest.mark.parametrize(
    "broken",
    [{"edges": [["a"]]}, {"routes": [{"select": "one"}]}, {"joins": [{"to": "a"}]}, {"nodes": []}, {"limits": 3}],
    ids=["edge", "route", "join", "nodes", "limits"],
)
def test_a_malformed_document_is_refused(broken: dict[str, Any]) -> None:
    """Whatever is wrong, the error is typed and names the graph."""
    with pytest.raises(UsageError, match="graph 'shop' is malformed"):
        load_document({"name": "shop", "entry": ["a"], "nodes": {"a": {}}, **broken})


def test_the_file_of_a_graph_is_the_place_of_its_findings(tmp_path: Path) -> None:
    """A finding on a document says which file it is in; the name of the graph is that of the file by default."""
    path = tmp_path / "order.json"
    path.write_text(json.dumps({"graph": {"entry": ["a"], "nodes": {"a": {}}, "edges": [["a", "bb"]]}}))
    (finding,) = validate(load_document(read_document(path), path=str(path)).builder).findings
    assert (finding.code, finding.graph, finding.where.file) == ("GA006", "order", str(path))
