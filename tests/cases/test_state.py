"""Public fault reports about the state of parallel branches (kind `state`): clashes, leaks, handled failures."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel
from support.graphs import says
from support.ordering import Turns

from graphagent import (
    END,
    Command,
    Executor,
    Message,
    MessagesState,
    NodeCallbacks,
    NodeContext,
    RetryPolicy,
    Send,
    StateGraph,
    add,
    append,
    merge,
)
from graphagent.errors import WriteConflict
from graphagent.messages import ToolCall

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["superstep", "eager"])
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine; the way without debug mode is the same as far as this file goes."""
    return str(request.param)


class Abc(BaseModel):
    a: int = 1
    b: int = 1000
    c: list[int] = [1, 2]


class AbcDict(TypedDict):
    a: int
    b: int
    c: list[int]


def whole(state: Any, **changed: Any) -> dict[str, Any]:
    """The whole state as an update, with some fields changed: what the report's nodes return."""
    values = dict(state) if isinstance(state, dict) else {name: getattr(state, name) for name in Abc.model_fields}
    return {**values, **changed}


def read(state: Any, name: str) -> Any:
    """A field of either kind of state."""
    return state[name] if isinstance(state, dict) else getattr(state, name)


@pytest.mark.parametrize("kind", [Abc, AbcDict])
async def test_c023_unchanged_fields_are_no_writes(store: Any, engine: Any, kind: Any) -> None:
    """Two parallel nodes that return the whole state, each with one field changed, both count."""
    graph = StateGraph(kind).set_entry_point("n1", "n2").set_finish_point("n1", "n2")
    graph.add_node("n1", lambda state: whole(state, a=read(state, "a") + 1), inline=True)
    graph.add_node("n2", lambda state: whole(state, b=read(state, "b") + 1), inline=True)
    result = await Executor(graph.compile(), store, engine).run({"a": 1, "b": 1000, "c": [1, 2]})
    final = result.unwrap()
    assert (read(final, "a"), read(final, "b"), read(final, "c")) == (2, 1001, [1, 2])


def clash(rule: bool, second: Any) -> StateGraph:
    """Two parallel nodes of which the second may write the first one's field; `rule` gives the field a merge rule."""

    class State(BaseModel):
        a: int = 0
        c: Annotated[int, add] if rule else int = 0  # type: ignore[valid-type]

    graph = StateGraph(State).add_node("n1", lambda state: {"c": 5}, inline=True)
    graph.add_node("n2", lambda state: {second: 7}, inline=True)
    return graph.set_entry_point("n1", "n2").set_finish_point("n1", "n2")


async def test_c023_a_real_clash_names_field_and_both_nodes(open_store: Any, engine: Any, lineage: str) -> None:
    """Two writers of one field fail the step naming the field and both; with a merge rule the same run goes on."""
    async with open_store() as store:
        result = await Executor(clash(False, "c").compile(), store, engine).run(lineage=lineage)
        assert isinstance(result.error, WriteConflict)
        for text in ("'n1'", "'n2'", "'c'"):
            assert text in str(result.error)
        assert (result.error.field, result.state.a) == ("c", 0)
    async with open_store() as store:
        again = await Executor(clash(True, "c").compile(), store, engine).resume(lineage)
        assert again.unwrap().c == 12


async def test_c023_a_clash_is_mended_by_another_node_after_an_edit(open_store: Any, lineage: str) -> None:
    """An edit drops the results of the open step, so that a corrected node runs again and the run goes on."""
    async with open_store() as store:
        result = await Executor(clash(False, "c").compile(), store).run(lineage=lineage)
        assert result.status == "failed"
    async with open_store() as store:
        mended = Executor(clash(False, "a").compile(), store)
        await mended.edit(lineage, None, {})
        again = await mended.resume(lineage)
        assert (again.unwrap().a, again.unwrap().c) == (7, 5)


class Shared(BaseModel):
    a: int = 1
    b: list[int] = []
    log: Annotated[list[str], append] = []
    notes: Annotated[dict[str, int], merge] = {}
    count: Annotated[int, add] = 0
    s1: str = ""
    s2: str = ""


def family(depth: int) -> StateGraph:
    """Subgraphs g1 and g2 in parallel under the parent's own schema, `depth` levels down; each writes its field."""

    def child(name: str, level: int) -> StateGraph:
        graph = StateGraph(Shared, name=name).set_entry_point("w").set_finish_point("w")
        if level > 1:
            return graph.add_subgraph_node("w", child(name, level - 1).compile())

        async def write(_: Any) -> dict[str, Any]:
            return {name: "done", "log": [name], "notes": {name: 1}, "count": 1}

        return graph.add_node("w", write)

    graph = StateGraph(Shared).set_entry_point("g1", "g2").set_finish_point("g1", "g2")
    for name in ("1", "2"):
        graph.add_subgraph_node(f"g{name}", child(f"s{name}", depth).compile())
    return graph


@pytest.mark.parametrize("depth", [1, 3])
async def test_c024_only_what_a_subgraph_wrote_comes_back(store: Any, engine: Any, depth: int) -> None:
    """Parallel subgraphs on the parent's schema don't clash on untouched fields; lists, maps and sums merge once."""
    given = {"a": 7, "b": [1, 2], "log": ["before"], "notes": {"old": 0}, "count": 10}
    result = await Executor(family(depth).compile(), store, engine).run(given)
    state = result.unwrap()
    assert (state.s1, state.s2, state.a, state.b) == ("done", "done", 7, [1, 2])
    assert sorted(state.log) == ["before", "s1", "s2"]
    assert state.notes == {"old": 0, "s1": 1, "s2": 1}
    assert state.count == 12


async def test_c024_a_real_clash_of_two_subgraphs_is_named(store: Any, engine: Any) -> None:
    """Two subgraphs that change the same plain field are a conflict that names the field and both nodes."""
    child = StateGraph(Shared).add_node("w", lambda state: {"a": state.a + 1}, inline=True)
    compiled = child.set_entry_point("w").set_finish_point("w").compile()
    graph = StateGraph(Shared).add_subgraph_node("g1", compiled).add_subgraph_node("g2", compiled)
    result = await Executor(graph.set_entry_point("g1", "g2").compile(), store, engine).run()
    assert isinstance(result.error, WriteConflict)
    for text in ("'g1'", "'g2'", "'a'"):
        assert text in str(result.error)


class Prompts(BaseModel):
    prompt: str = ""
    prompts: Annotated[dict[str, str], merge] = {}
    echo: Annotated[dict[str, str], merge] = {}


def prompted(how: str, order: Sequence[str]) -> StateGraph:
    """Two branches of a prep node and a model node; each prep leaves a one-time prompt for its own model.

    `how`: as an overlay of a Send, or under the model's name in a mapping. Nodes end in `order`.
    """
    turns = Turns(order)
    graph = StateGraph(Prompts).set_entry_point("prep1", "prep2").set_finish_point("model1", "model2")
    for name in ("1", "2"):

        async def prep(_: Any, name: str = name) -> Any:
            async with turns.turn(f"prep{name}"):
                if how == "overlay":
                    return Send(f"model{name}", {"prompt": f"for {name}"})
                return {"prompts": {f"model{name}": f"for {name}"}}

        async def model(state: Prompts, name: str = name) -> dict[str, Any]:
            async with turns.turn(f"model{name}"):
                prompt = state.prompt if how == "overlay" else state.prompts[f"model{name}"]
                used = {} if how == "overlay" else {"prompts": {f"model{name}": ""}}
                return {"echo": {name: prompt}, **used}

        graph.add_node(f"prep{name}", prep, destinations=[f"model{name}"]).add_node(f"model{name}", model)
        if how == "key":
            graph.add_edge(f"prep{name}", f"model{name}")
    return graph


ORDERS = [
    order
    for order in itertools.permutations(["prep1", "prep2", "model1", "model2"])
    if order.index("prep1") < order.index("model1") and order.index("prep2") < order.index("model2")
]


@pytest.mark.parametrize("how", ["overlay", "key"])
@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
async def test_c027_each_model_gets_the_prompt_of_its_own_branch(engine: Any, how: str, order: tuple[str, ...]) -> None:
    """For every order in which preps and models can end, each model echoes its own branch's prompt (a model is a node
    that reads the prompt; all interleavings stand for the report's random delays)."""
    if engine == "superstep" and max(order.index("prep1"), order.index("prep2")) > 1:
        pytest.skip("supersteps: no model starts before both preps have ended")
    result = await Executor(prompted(how, order).compile(), engine=engine).run()
    assert result.unwrap().echo == {"1": "for 1", "2": "for 2"}
    assert result.unwrap().prompt == ""


@pytest.mark.parametrize("how", ["overlay", "key"])
async def test_c027_a_resume_between_prep_and_model_keeps_both(
    open_store: Any, engine: Any, lineage: str, how: str
) -> None:
    """A run that stopped before its models and goes on in a re-opened store gives each model its own prompt."""
    order = ["prep1", "prep2", "model1", "model2"]
    async with open_store() as store:
        stopped = prompted(how, order).interrupt_before_nodes("model1", "model2").compile()
        result = await Executor(stopped, store, engine).run(lineage=lineage)
        assert result.status == "interrupted"
    async with open_store() as store:
        again = await Executor(prompted(how, order[2:]).compile(), store, engine).resume(lineage)
        assert again.unwrap().echo == {"1": "for 1", "2": "for 2"}


class Task(BaseModel):
    order: str = ""
    heard: Annotated[list[str], append] = []
    seen: Annotated[list[str], append] = []


def dispatch() -> StateGraph:
    """A dispatcher that sends a task to each instance of an agent: a child graph that echoes its whole context."""

    async def hear(state: Task) -> dict[str, list[str]]:
        return {"heard": [state.order]}

    async def echo(state: Task, ctx: NodeContext) -> dict[str, list[str]]:
        return {"seen": [f"{state.order}|{','.join(state.heard)}"]}

    agent = StateGraph(Task, name="agent", outputs=["seen"]).add_node("hear", hear).add_node("echo", echo)
    agent.set_entry_point("hear").add_edge("hear", "echo").set_finish_point("echo")
    graph = StateGraph(Task).add_subgraph_node("agent", agent.compile())

    async def send(_: Any) -> list[Send]:
        return [Send("agent", {"order": f"order {i}"}) for i in (1, 2, 3)]

    return graph.add_node("send", send, destinations=["agent"]).set_entry_point("send").set_finish_point("agent")


async def test_c029_parallel_instances_see_their_own_task_only(store: Any, engine: Any, lineage: str) -> None:
    """Instances of one agent (a child graph per Send) each see their own order, in every turn of a lineage."""
    executor = Executor(dispatch().compile(), store, engine)
    wanted = [f"order {i}|order {i}" for i in (1, 2, 3)]
    first = await executor.run(lineage=lineage)
    assert first.unwrap().seen == wanted
    assert first.unwrap().order == ""
    second = await executor.run(lineage=lineage)
    assert second.unwrap().seen == wanted * 2


def tooled(order: Sequence[str]) -> StateGraph:
    """Two agents in parallel, each a child graph of a model and a tool node; calls and results end in `order`."""
    turns = Turns(order)

    def agent(name: str) -> StateGraph:
        async def model(state: MessagesState) -> dict[str, Any]:
            if state.messages and state.messages[-1].role == "tool":
                shown = [f"{m.role}:{m.tool_call_id or m.tool_calls[0].id}" for m in state.messages]
                return {"metadata": {name: shown}}
            async with turns.turn(f"{name} calls"):
                return {"messages": [Message.assistant("", tool_calls=[ToolCall(id=name, name="look", arguments={})])]}

        async def tool(state: MessagesState) -> dict[str, Any]:
            async with turns.turn(f"{name} gets"):
                return {"messages": [Message.tool(f"result of {name}", tool_call_id=name)]}

        graph = StateGraph(MessagesState, name=name, outputs=["metadata"]).add_node("model", model)
        graph.add_node("tool", tool).set_entry_point("model").add_edge("tool", "model")
        graph.add_conditional_edges("model", lambda s: "tool" if not s.metadata else END, ["tool"])
        return graph

    parent = StateGraph(MessagesState).set_entry_point("A", "B").set_finish_point("A", "B")
    return parent.add_subgraph_node("A", agent("A").compile()).add_subgraph_node("B", agent("B").compile())


CALLS = [
    order
    for order in itertools.permutations(["A calls", "A gets", "B calls", "B gets"])
    if order.index("A calls") < order.index("A gets") and order.index("B calls") < order.index("B gets")
]


@pytest.mark.parametrize("order", CALLS, ids=", ".join)
async def test_c030_interleaved_agents_keep_their_calls_and_results_paired(
    store: Any, engine: Any, order: tuple[str, ...]
) -> None:
    """However the events of two agents interleave, each model request has its own call and result as a pair and
    nothing of the other (an agent is a child graph; the history is its message list)."""
    result = await Executor(tooled(order).compile(), store, engine).run()
    assert result.unwrap().metadata == {"A": ["assistant:A", "tool:A"], "B": ["assistant:B", "tool:B"]}


class Degraded(BaseModel):
    log: Annotated[list[str], append] = []
    status: str = ""


def handled(how: str, *, beside: bool, retry: bool) -> StateGraph:
    """A node that always fails and has a handler that writes 'degraded', alone or beside a healthy one."""

    async def fails(_: Any) -> None:
        raise ConnectionError("down")

    policy = RetryPolicy(max_attempts=2, initial=0, jitter=False) if retry else None
    graph = StateGraph(Degraded).add_node("x", fails, retry=policy).add_node("y", says("y"))
    if how == "edge":
        graph.add_node("mend", lambda _: {"status": "degraded"}, inline=True).add_error_edge("x", "mend")
        graph.set_finish_point("mend")
    else:

        def after(ctx: Any, state: Any, result: Any, error: Exception | None) -> Any:
            if error is None:
                return None
            return {"status": "degraded"} if how == "after" else Command({"status": "degraded"}, goto=END)

        graph.with_node_callbacks(NodeCallbacks(after=after), node="x")
    graph.set_entry_point("x", *(["y"] if beside else [])).set_finish_point("x", "y")
    return graph


@pytest.mark.parametrize("how", ["edge", "after", "after with goto"])
@pytest.mark.parametrize("on_failure", ["drain", "cancel"])
@pytest.mark.parametrize("beside", [False, True])
async def test_c033_a_handled_error_stays_handled_beside_a_sibling(
    store: Any, engine: Any, how: str, on_failure: Any, beside: bool
) -> None:
    """A failure with a handler has one outcome, alone or beside a healthy node: both results, and success."""
    graph = handled(how, beside=beside, retry=beside)
    graph = graph if beside else graph.add_edge("x", "y")  # 'y' is reachable then; x never takes this edge
    result = await Executor(graph.compile(), store, engine, on_failure=on_failure).run()
    assert result.status == "completed", result.reason
    assert result.state.status == "degraded"
    assert ("y" in result.state.log) is (beside or how == "after")
    assert result.error is None


async def test_c033_a_handled_error_stays_handled_beside_a_failing_sibling(open_store: Any, lineage: str) -> None:
    """Beside a sibling that fails for good, the handled failure keeps its outcome: resume runs the sibling only."""
    runs: list[str] = []
    broken = [True]

    def graph() -> Any:
        async def handled_one(_: Any) -> None:
            runs.append("x")
            raise ConnectionError("down")

        async def sibling(_: Any) -> dict[str, list[str]]:
            runs.append("y")
            if broken[0]:
                raise ValueError("no")
            return {"log": ["y"]}

        built = StateGraph(Degraded).add_node("x", handled_one).add_node("y", sibling).add_node("mend", says("mend"))
        built.add_error_edge("x", "mend", errors=ConnectionError).set_entry_point("x", "y")
        return built.set_finish_point("mend", "y").compile()

    async with open_store() as store:
        result = await Executor(graph(), store).run(lineage=lineage)
        assert result.status == "failed"
        assert "'y'" in result.reason
    broken[0] = False
    async with open_store() as store:
        again = await Executor(graph(), store).resume(lineage)
        assert again.unwrap().log == ["y", "mend"]
    assert sorted(runs) == ["x", "y", "y"]
