"""Markings as they are stored: plain data by name, read by a graph whose order or node ids have changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.graphs import Trail, flow
from support.markings import graph_of, play, shown

from graphagent import Command, Executor, StateGraph
from graphagent.engine.marking_codec import decode_marking, encode_marking, overlays_of
from graphagent.errors import IncompatibleCheckpoint
from graphagent.graph.marking import Marking
from graphagent.graph.transitions import start


def test_a_lone_activation_is_its_name() -> None:
    """The common case costs a name, and is read back as the very marking the graph keeps for it."""
    graph = graph_of("a b: a>b")
    assert encode_marking(graph, play(graph, "a")) == "b"
    assert decode_marking(graph, "b", {}) is graph.singles[1]
    assert decode_marking(graph, encode_marking(graph, start(graph)), {}) == start(graph)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        pytest.param("a b c d: a>b a>c b,c=all>d", ["a", "b"], id="half-full-join"),
        pytest.param("a b c d: ^a ^b ^c a,b,c=any>d", ["b"], id="fired-lap"),
        pytest.param("a v w b d: ^a ^b w,b=all>d", ["a*w,v b", "w"], id="open-group"),
        pytest.param("a w x: w>END", ["a*w,w", "w?END"], id="group-with-end"),
        pytest.param("a b: a>b a>END", ["a"], id="ended-beside-work"),
        pytest.param("a b: b>END", ["a=b", "b"], id="nothing-left"),
    ],
)
def test_what_is_stored_comes_back(text: str, calls: list[str]) -> None:
    """Frontier, branch paths, joins, groups, END and origins go through JSON unchanged; overlays travel apart."""
    graph = graph_of(text)
    marking = play(graph, *calls)
    plain: Any = json.loads(json.dumps(encode_marking(graph, marking)))
    assert decode_marking(graph, plain, overlays_of(marking)) == marking


def test_another_order_of_declaration_reads_it() -> None:
    """Names, not indices, are stored: a graph that declares its nodes in another order goes on from the same point."""
    graph, other = graph_of("a b c d: a>b a>c b,c=all>d"), graph_of("d c a b: ^a a>b a>c b,c=all>d")
    marking = play(graph, "a", "b")
    assert shown(other, decode_marking(other, encode_marking(graph, marking), {})) == "c@c d<b"


def renamed(text: str, old: str, new: str, target: str = "d") -> tuple[Any, Marking]:
    """A marking of a graph read by one in which node `old` is called `new`, and that graph."""
    before = graph_of(text)
    builder = StateGraph(before.schema.state)
    for name in before.names:
        now = new if name == old else name
        builder.add_node(now, lambda state: None, formerly=[old] if name == old else [], inline=True)
    names = {name: new if name == old else name for name in before.names}
    builder.set_entry_point(names["a"])
    for edge in before.edges:
        builder.add_edge(names[edge.source], names[edge.target])
    for join in before.joins:
        builder.add_join_edge([names[source] for source in join.sources], names[join.target], mode=join.mode)
    graph = builder.compile()
    return graph, decode_marking(graph, encode_marking(before, play(before, "a", "b")), {})


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        pytest.param("c", "new@c d<b", id="frontier"),
        pytest.param("b", "c@c d<new", id="source-that-arrived"),
        pytest.param("d", "c@c new<b", id="target-of-the-join"),
    ],
)
def test_a_renamed_node_is_found(old: str, expected: str) -> None:
    """`formerly` maps a stored id wherever it stands: in the frontier, as a source of a join, in the join's own id."""
    graph, marking = renamed("a b c d: a>b a>c b,c=all>d", old, "new")
    assert shown(graph, marking) == expected


def test_a_renamed_splitter_still_pops_its_branch() -> None:
    """Coming back to a node that has been renamed ends the branch that it opened under its former id."""
    graph, marking = renamed("a b c: a>b a>c c>a b>a", "a", "new")
    assert [splitter for _, splitter in marking.frontier[-1].branch] == [graph.index["new"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a b x d: a>b a>x b,x=all>d", "stands at node 'c'.*formerly=", id="node"),
        pytest.param("a b c d: a>b a>c b>d c>d", "stands at join 'd'", id="join"),
        pytest.param("a b c d e: a>b a>c c,e=all>d", "source of join 'd' 'b'.*'c', 'e'", id="source"),
    ],
)
def test_what_is_gone_is_an_error(text: str, message: str) -> None:
    """A node, join or source that the graph lacks is named, with what there is and how to mend it; never a misroute."""
    before = graph_of("a b c d: a>b a>c b,c=all>d")
    with pytest.raises(IncompatibleCheckpoint, match=message):
        decode_marking(graph_of(text), encode_marking(before, play(before, "a", "b")), {})


@pytest.mark.anyio
async def test_finished_work_of_renamed_nodes_is_kept(store: Any, engine: Any, lineage: str) -> None:
    """Paused in a step, deployed with other ids: what had finished, and where it leads, is found by `formerly`."""
    calls: list[str] = []

    async def ask(state: Trail, ctx: Any) -> dict[str, Any]:
        return {"log": [f"ask={await ctx.interrupt('ok?')}"]}

    async def jumps(state: Trail) -> Command:
        calls.append("jumps")
        return Command(update={"log": ["jumps"]}, goto=names[1])

    def graph(jumping: str, there: str) -> StateGraph:
        names[:] = [jumping, there]
        former = {"jumps": "", "new_jumps": "jumps", "there": "", "new_there": "there"}
        builder = flow("START -> ask -> END", ask=ask).add_node(
            jumping, jumps, destinations=[there], formerly=filter(None, [former[jumping]])
        )
        builder.add_node(there, says_there, formerly=filter(None, [former[there]]))
        return builder.set_entry_point(jumping).set_finish_point(there)

    names: list[str] = []
    first = Executor(graph("jumps", "there").compile(), store, engine)
    assert (await first.run(lineage=lineage)).status == "interrupted"
    second = Executor(graph("new_jumps", "new_there").compile(), store, engine)
    assert sorted((await second.resume(lineage, answer=1)).unwrap().log) == ["ask=1", "jumps", "there"]
    assert calls == ["jumps"]


async def says_there(state: Trail) -> dict[str, Any]:
    """The node that is jumped to."""
    return {"log": ["there"]}
