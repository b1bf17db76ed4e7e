"""Routing and planning: edge cases 1 to 18 and 93 of the graph specification, on every store and both engines."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from support.graphs import Trail, flow, says

from graphagent import END, START, Command, Executor, StateGraph
from graphagent.errors import GraphDefinitionError, RouteError

pytestmark = pytest.mark.anyio


def chooses(*labels: Any) -> Any:
    """A router that returns the only label, or all of several as a list."""
    return lambda state: labels[0] if len(labels) == 1 else list(labels)


async def test_e01_linear_graph_runs_in_order(store: Any, engine: Any, lineage: str) -> None:
    """a -> b -> END runs a, then b, in two steps, and completes."""
    result = await Executor(flow("START -> a -> b -> END").compile(), store, engine).run(lineage=lineage)
    assert (result.status, result.steps, result.unwrap().log) == ("completed", 2, ["a", "b"])


@pytest.mark.parametrize("size", ["short", "long"])
async def test_e02_a_route_starts_one_branch_only(store: Any, engine: Any, lineage: str, size: str) -> None:
    """Of two branches only the chosen one starts; no task event names the other."""

    def by_size(state: Trail) -> Literal["short", "long"]:
        return "short" if len(state.item) < 5 else "long"

    graph = flow("START -> a", "short, long -> END").add_conditional_edges("a", by_size).compile()
    executor = Executor(graph, store, engine)
    async with executor.stream(
        {"item": "x" * len(size) * 2 if size == "long" else ""}, lineage=lineage, modes=["tasks"]
    ) as events:
        nodes = {event.node async for event in events}
    assert nodes == {"a", size}
    assert events.result is not None
    assert events.result.unwrap().log == ["a", size]


async def test_e03_a_node_without_result_lets_its_edge_fire(store: Any, engine: Any, lineage: str) -> None:
    """A node that returns None writes nothing, and what follows runs."""

    async def silent(state: Trail) -> None:
        return None

    graph = flow("START -> a -> b -> END", a=silent).compile()
    result = await Executor(graph, store, engine).run(lineage=lineage)
    assert result.unwrap().log == ["b"]


async def test_e04_goto_beside_an_edge_to_the_same_node(store: Any, engine: Any, lineage: str) -> None:
    """A goto to the node that a plain edge leads to runs it once."""

    async def jump(state: Trail) -> Command:
        return Command(update={"log": ["a"]}, goto="x")

    graph = flow("START -> a -> x -> END", a=jump).compile()
    result = await Executor(graph, store, engine).run(lineage=lineage)
    assert result.unwrap().log == ["a", "x"]


@pytest.mark.parametrize("goto", ["approved", "publish"])
async def test_e05_goto_resolves_labels_then_ids(store: Any, engine: Any, lineage: str, goto: str) -> None:
    """A goto names a label of `destinations`, or the id of one of its targets."""

    async def decide(state: Trail) -> Command:
        return Command(goto=goto)

    builder = flow("publish, reject -> END")
    builder.add_node("review", decide, destinations={"approved": "publish", "denied": "reject"})
    graph = builder.set_entry_point("review").compile()
    result = await Executor(graph, store, engine).run(lineage=lineage)
    assert result.unwrap().log == ["publish"]


@pytest.mark.parametrize(
    ("label", "runs"),
    [
        pytest.param("b", "c", id="path_map-before-destinations-and-ids"),
        pytest.param("d", "e", id="destinations-before-ids"),
        pytest.param("e", "e", id="id-of-a-target"),
    ],
)
async def test_e06_order_in_which_a_label_resolves(
    store: Any, engine: Any, lineage: str, label: str, runs: str
) -> None:
    """A router's label is looked up in path_map, then among the node's destinations, then as an id."""
    builder = flow("b, c, d, e -> END")
    builder.add_node("a", says("a"), destinations={"b": "d", "d": "e"}).set_entry_point("a")
    graph = builder.add_conditional_edges("a", chooses(label), {"b": "c", "x": "b", "y": "e"}).compile()
    result = await Executor(graph, store, engine).run(lineage=lineage)
    assert result.unwrap().log == ["a", runs]


async def test_e07_a_multi_route_fires_each_target_once(store: Any, engine: Any, lineage: str) -> None:
    """[a, a, "", b] runs a and b once each; the empty label means no branch."""
    graph = (
        flow("START -> r", "a, b -> END")
        .add_multi_conditional_edges("r", chooses("a", "a", "", None, "b"), ["a", "b"])
        .compile()
    )
    result = await Executor(graph, store, engine).run(lineage=lineage)
    assert sorted(result.unwrap().log) == ["a", "b", "r"]


async def test_e08_a_multi_route_that_chooses_nothing(store: Any, engine: Any, lineage: str) -> None:
    """[] triggers nothing: completed where the graph has no END to reach, `end_not_reached` where it has."""
    open_ended = flow("START -> r", a=says("a")).add_multi_conditional_edges("r", lambda state: [], ["a"])
    result = await Executor(open_ended.compile(), store, engine).run(lineage=lineage)
    assert (result.status, result.unwrap().log) == ("completed", ["r"])

    with_end = flow("START -> r", "a -> END").add_multi_conditional_edges("r", lambda state: [], ["a"])
    result = await Executor(with_end.compile(), store, engine).run(lineage=lineage + "-end")
    assert (result.status, result.state.log) == ("stalled", ["r"])
    assert result.reason.startswith("end_not_reached")


async def test_e09_a_router_that_raises(store: Any, engine: Any, lineage: str) -> None:
    """The run fails and the message names the router's node and what it raised; the state is that before the step."""

    def broken(state: Trail) -> Literal["b"]:
        raise ValueError("no idea")

    graph = flow("START -> a", "b -> END").add_conditional_edges("a", broken).compile()
    result = await Executor(graph, store, engine).run(lineage=lineage)
    assert (result.status, result.state.log) == ("failed", [])
    with pytest.raises(RouteError, match="router of 'a' failed: ValueError: no idea") as caught:
        result.unwrap()
    assert caught.value.node == "a"


async def test_e10_a_router_that_names_no_node(store: Any, engine: Any, lineage: str) -> None:
    """The run fails naming node, label and the known labels; the graph is what it was."""
    graph = (
        flow("START -> a", "build, test -> END")
        .add_conditional_edges("a", chooses("biuld"), ["build", "test"])
        .compile()
    )
    before = graph.to_json()
    result = await Executor(graph, store, engine).run(lineage=lineage)
    assert result.status == "failed"
    for part in ("'a'", "'biuld'", "did you mean 'build'?", "'test'"):
        assert part in result.reason
    assert graph.to_json() == before


async def test_e11_a_goto_to_no_node(store: Any, engine: Any, lineage: str) -> None:
    """A goto to an unknown node is an error that names it and the nearest node, never a silent end."""

    async def jump(state: Trail) -> Command:
        return Command(goto=state.item)

    builder = flow("publish -> END").add_node("a", jump, destinations=["publish"]).set_entry_point("a")
    result = await Executor(builder.compile(), store, engine).run({"item": "pubish"}, lineage=lineage)
    assert result.status == "failed"
    assert "node 'a' jumps (goto) to 'pubish', which is not a node: did you mean 'publish'?" in result.reason


async def test_e11_a_goto_to_an_undeclared_node(store: Any, engine: Any, lineage: str) -> None:
    """A goto to a node that `destinations` leaves out is an error that says how to declare it."""

    async def jump(state: Trail) -> Command:
        return Command(goto=state.item)

    builder = flow("b, c -> END").add_node("a", jump, destinations=["b"]).set_entry_point("a")
    result = await Executor(builder.compile(), store, engine).run({"item": "c"}, lineage=lineage)
    assert result.status == "failed"
    assert "add destinations=['c']" in result.reason


@pytest.mark.parametrize(
    ("chains", "runs"),
    [
        pytest.param(["START -> a, b", "a -> c", "b -> x -> c", "c -> END"], 2, id="different-steps"),
        pytest.param(["START -> a, b -> c -> END"], 1, id="same-step"),
    ],
)
async def test_e12_unjoined_parents_in_supersteps(store: Any, lineage: str, chains: list[str], runs: int) -> None:
    """Plain edges fire on any: parents of different steps run the child twice, of one step once."""
    result = await Executor(flow(*chains).compile(), store).run(lineage=lineage)
    assert result.unwrap().log.count("c") == runs


async def test_e12_unjoined_parents_in_the_eager_engine(store: Any, lineage: str) -> None:
    """Completions are fired one by one, so two unjoined parents always run the child twice, one run at a time."""
    result = await Executor(flow("START -> a, b -> c -> END").compile(), store, "eager").run(lineage=lineage)
    assert sorted(result.unwrap().log) == ["a", "b", "c", "c"]


async def test_e13_join_over_branches_of_unequal_length(store: Any, engine: Any, lineage: str) -> None:
    """The join node runs once, after both branches, however long each is."""
    graph = flow("START -> a, b", "b -> b2 -> b3", "j -> END").add_join_edge(["a", "b3"], "j").compile()
    result = await Executor(graph, store, engine).run(lineage=lineage)
    log = result.unwrap().log
    assert (log.count("j"), log[-1], sorted(log)) == (1, "j", ["a", "b", "b2", "b3", "j"])


async def test_e14_a_join_into_end(store: Any, engine: Any, lineage: str) -> None:
    """A join may lead to END: the run has reached it when all sources have ended."""
    graph = flow("START -> a, b").add_join_edge(["a", "b"], END).compile()
    result = await Executor(graph, store, engine).run(lineage=lineage)
    assert (result.status, sorted(result.unwrap().log)) == ("completed", ["a", "b"])


@pytest.mark.parametrize("sources", [[], ["", "  "]])
def test_e14_a_join_without_sources(sources: list[str]) -> None:
    """Empty or blank sources are a build error that names the target."""
    builder = flow("START -> a", "j -> END").add_join_edge(sources, "j")
    with pytest.raises(GraphDefinitionError, match="GA010 error: the join into 'j' has no sources"):
        builder.compile()


@pytest.mark.parametrize("chosen", ["a+b c", "a b+c"])
async def test_e15_joins_whose_source_names_look_alike(store: Any, engine: Any, lineage: str, chosen: str) -> None:
    """["a+b", "c"] and ["a", "b+c"] are joins of their own: arrivals at one never count at the other."""
    builder = flow("START -> r", "left, right -> END", **{name: says(name) for name in ("a+b", "c", "a", "b+c")})
    builder.add_multi_conditional_edges("r", lambda state: chosen.split(), ["a+b", "c", "a", "b+c"])
    builder.add_join_edge(["a+b", "c"], "left").add_join_edge(["a", "b+c"], "right")
    result = await Executor(builder.compile(), store, engine).run(lineage=lineage)
    log = result.unwrap().log
    assert [name for name in log if name in ("left", "right")] == ["left" if "+b " in chosen else "right"]


async def test_e16_a_join_in_a_loop_fires_each_round(store: Any, engine: Any, lineage: str) -> None:
    """Three laps through a join run its target three times, each lap's arrivals used once."""

    async def count(state: Trail) -> dict[str, Any]:
        return {"log": ["j"], "n": state.n + 1}

    def again(state: Trail) -> Literal["split", "__end__"]:
        return "split" if state.n < 3 else "__end__"

    graph = (
        flow("START -> split -> a, b", j=count)
        .add_join_edge(["a", "b"], "j")
        .add_conditional_edges("j", again)
        .compile()
    )
    result = await Executor(graph, store, engine).run(lineage=lineage)
    log = result.unwrap().log
    assert [log.count(name) for name in ("split", "a", "b", "j")] == [3, 3, 3, 3]


def skipping(mode: Any) -> StateGraph:
    """A join over a and b of which the router lets only a run."""
    builder = flow("START -> r", "a, b", "j -> END")
    return builder.add_conditional_edges("r", chooses("a"), ["a", "b"]).add_join_edge(["a", "b"], "j", mode=mode)


async def test_e17_a_starved_join_stalls(store: Any, engine: Any, lineage: str) -> None:
    """A join that a route starved ends the run `stalled`, with the join and what it misses in the reason."""
    result = await Executor(skipping("all").compile(), store, engine).run(lineage=lineage)
    assert (result.status, result.state.log) == ("stalled", ["r", "a"])
    assert result.reason == "join 'j' into 'j' waits for 'b', has 'a'"


@pytest.mark.parametrize("mode", ["active", "any", 1])
async def test_e17_joins_that_can_do_without(store: Any, engine: Any, lineage: str, mode: Any) -> None:
    """An `active`, `any` or counting join fires once with the source that came."""
    result = await Executor(skipping(mode).compile(), store, engine).run(lineage=lineage)
    assert result.unwrap().log == ["r", "a", "j"]


async def test_e18_a_plain_edge_beside_a_route(store: Any, engine: Any, lineage: str) -> None:
    """Both targets run; the compile warns (GA013) unless `with_edges` says it is meant."""
    for with_edges, codes in ((False, ["GA013"]), (True, [])):
        builder = flow("START -> a -> b", "b, c -> END")
        graph = builder.add_conditional_edges("a", chooses("c"), ["c"], with_edges=with_edges).compile()
        assert [problem.code for problem in graph.warnings] == codes
        result = await Executor(graph, store, engine).run(lineage=f"{lineage}-{with_edges}")
        assert sorted(result.unwrap().log) == ["a", "b", "c"]


async def test_e93_nodes_may_be_declared_last(store: Any, engine: Any, lineage: str) -> None:
    """Edges, routes, joins and finish points may name nodes that are declared after them."""
    builder = StateGraph(Trail).add_edge(START, "a").set_finish_point("d")
    builder.add_multi_conditional_edges("a", chooses("b", "c"), ["b", "c"]).add_join_edge(["b", "c"], "d")
    for name in "abcd":
        builder.add_node(name, says(name))
    result = await Executor(builder.compile(), store, engine).run(lineage=lineage)
    assert sorted(result.unwrap().log) == ["a", "b", "c", "d"]


def test_e90_build_problems_are_reported_together() -> None:
    """Two bad edges and a node added twice are one compile error; what was refused leaves nothing behind."""
    builder = flow("START -> a -> END").add_edge("a", "nowhere").add_edge("ghost", "a").add_node("a", says("other"))
    with pytest.raises(GraphDefinitionError) as caught:
        builder.compile()
    assert [problem.code for problem in caught.value.problems] == ["GA003", "GA006", "GA005"]
    assert "'nowhere'" in str(caught.value)
    assert "'ghost'" in str(caught.value)
    assert [node.id for node in builder.definition.nodes] == ["a"]
