"""Model and tools nodes in graphs of one's own: what is asked, what is written, what a round of calls comes to."""

from __future__ import annotations

import random
from typing import Annotated, Any

import anyio
import pytest
from typing_extensions import TypedDict

from graphagent import (
    END,
    CachePolicy,
    Executor,
    MemoryCheckpoints,
    Message,
    MessagesState,
    NodeContext,
    StateGraph,
    ToolCall,
    tool,
)
from graphagent import messages as history
from graphagent.agents import CallLimits, ModelRequest
from graphagent.agents.requests import NO_RESULT, asked_of, open_round, paired, with_instruction
from graphagent.engine.cache import MemoryCache
from graphagent.errors import AgentError, GraphDefinitionError
from graphagent.graph.compiled import CompiledGraph
from graphagent.messages import ReplaceLastUser
from graphagent.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio
USER, SAID = Message.user("hi"), Message.assistant("hello")
CALLS = Message.assistant(tool_calls=(ToolCall(id="a", name="look"), ToolCall(id="b", name="look")))


def alone(model: Any, state: type = MessagesState, **options: Any) -> CompiledGraph:
    """A graph of one model node."""
    builder = StateGraph(state).add_llm_node("model", model, **options).set_entry_point("model")
    return builder.set_finish_point("model").compile()


@pytest.mark.parametrize(
    ("state", "asked", "update", "cleared"),
    [
        ({"one_shot_messages_by_node": {"n": [SAID]}, "one_shot_messages": [USER]}, [SAID], (), "by_node"),
        ({"one_shot_messages": [SAID], "user_input": "x", "messages": [USER]}, [SAID], (), "one_shot_messages"),
        ({"user_input": "x", "messages": [USER, SAID]}, [USER, SAID, Message.user("x")], (Message.user("x"),), "input"),
        ({"user_input": "x", "messages": [USER]}, [Message.user("x")], (ReplaceLastUser(last_user="x"),), "input"),
        ({"user_input": "hi", "messages": [USER]}, [USER], (), "input"),
        ({"user_input": "x"}, [Message.user("x")], (Message.user("x"),), "input"),
        ({"messages": [USER, SAID]}, [USER, SAID], (), None),
    ],
    ids=["own one-shot", "one-shot", "appended", "replaces", "is there", "alone", "history"],
)
def test_what_a_node_asks(state: dict[str, Any], asked: Any, update: Any, cleared: str | None) -> None:
    """The first that is there; what is used is cleared, and nothing else."""
    names = {"by_node": "one_shot_messages_by_node", "input": "user_input"}
    found = asked_of("n", MessagesState(**state), "user_input")
    assert found[:2] == (tuple(asked), update)
    assert list(found.cleared) == ([] if cleared is None else [names.get(cleared, cleared)])


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([CALLS], [CALLS, Message.tool(NO_RESULT, "a", name="look"), Message.tool(NO_RESULT, "b", name="look")]),
        (
            [
                Message.tool("lost", "z"),
                CALLS,
                Message.tool("2", "b"),
                USER,
                Message.tool("1", "a"),
                Message.tool("3", "a"),
            ],
            [CALLS, Message.tool("1", "a"), Message.tool("2", "b"), USER],
        ),
    ],
    ids=["no results", "scattered"],
)
def test_calls_and_results_are_paired(messages: list[Message], expected: list[Message]) -> None:
    """Every call has one result right behind it; results without a call are left out."""
    assert list(paired(messages)) == expected
    assert paired(expected) == tuple(expected)


def test_one_id_in_two_rounds() -> None:
    """Each result stays with its own round."""
    once = Message.assistant(tool_calls=(ToolCall(id="a", name="look"),))
    history = [once, Message.tool("1", "a"), once, Message.tool("2", "a")]
    assert list(paired(history)) == history


def test_an_instruction_joins_a_system_message() -> None:
    """It stands before all; a system message that is there already is kept behind it, and nothing is said twice."""
    summary = Message.system("Earlier: x")
    assert with_instruction([USER], "Be brief.") == (Message.system("Be brief."), USER)
    joined = with_instruction([summary, USER], "Be brief.")
    assert joined == (Message.system("Be brief.\n\nEarlier: x"), USER)
    assert with_instruction(joined, "Be brief.") == joined
    assert with_instruction([USER], "") == (USER,)


async def test_a_state_without_a_history_is_refused() -> None:
    """A model node on a state without `messages` is a problem of the graph, not lost words; limits need a counter."""

    class Plain(TypedDict, total=False):
        text: str

    with pytest.raises(GraphDefinitionError, match=r"GA405.*'messages'"):
        alone(ScriptedModel([]), Plain)

    class Short(TypedDict, total=False):
        messages: Annotated[list[Message], history]

    with pytest.raises(GraphDefinitionError, match="'metadata'"):
        alone(ScriptedModel([]), Short, limits=CallLimits(model_calls=1))


async def test_fields_that_the_state_lacks_are_left_out() -> None:
    """A state with a history only is enough."""

    class Short(TypedDict, total=False):
        messages: Annotated[list[Message], history]

    result = await Executor(alone(ScriptedModel(["hello"]), Short)).run({"messages": [USER]})
    assert [message.text for message in result.unwrap()["messages"]] == ["hi", "hello"]


async def test_nothing_to_ask() -> None:
    """Without messages, input and instruction the node fails, and says so."""
    result = await Executor(alone(ScriptedModel([]))).run({})
    assert isinstance(result.error, AgentError)
    assert "nothing to ask" in str(result.error)


@pytest.mark.parametrize("seed", range(20))
async def test_c028_one_shot_prompts_reach_their_own_node(seed: int) -> None:
    """Two prep nodes side by side each set a prompt for their own model node: each gets its own, also after a resume
    between prep and model; the prompts are used once."""
    delays = random.Random(seed)

    def prep(letter: str) -> Any:
        async def run(state: MessagesState) -> dict[str, Any]:
            await anyio.sleep(delays.random() / 1000)
            return {"one_shot_messages_by_node": {f"ask_{letter}": [Message.user(f"prompt {letter}")]}}

        return run

    models = {letter: ScriptedModel(lambda request: request.messages[-1].text) for letter in "ab"}
    builder = StateGraph(MessagesState).set_entry_point("prep_a", "prep_b")
    for letter, model in models.items():
        builder.add_node(f"prep_{letter}", prep(letter)).add_llm_node(f"ask_{letter}", model, interrupt_before=True)
        builder.add_edge(f"prep_{letter}", f"ask_{letter}").add_edge(f"ask_{letter}", END)
    executor = Executor(builder.compile(), MemoryCheckpoints())
    assert (await executor.run({}, lineage="l")).status == "interrupted"
    state = (await executor.resume("l")).unwrap()
    assert state.node_responses == {"ask_a": "prompt a", "ask_b": "prompt b"}
    assert state.one_shot_messages_by_node == {"ask_a": [], "ask_b": []}


async def test_a_cached_model_node_is_not_asked_again() -> None:
    """The answer comes from the cache; it is an answer all the same."""
    model = ScriptedModel(["once"])
    builder = StateGraph(MessagesState).add_llm_node("model", model, cache=CachePolicy(fields=("user_input",)))
    builder.set_entry_point("model").set_finish_point("model").with_cache(MemoryCache())
    executor = Executor(builder.compile())
    for _ in range(2):
        assert (await executor.run({"user_input": "hi"})).unwrap().last_response == "once"
    assert len(model.requests) == 1


# -- the tools node --------------------------------------------------------------------------------


def acting(*tools: Any, **options: Any) -> CompiledGraph:
    """A graph of one tools node."""
    builder = StateGraph(MessagesState).add_tools_node("tools", tools, **options).set_entry_point("tools")
    return builder.set_finish_point("tools").compile()


def asking(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A history in which a model asks for these."""
    made = tuple(ToolCall(id=f"c{i}", name=name, arguments=given) for i, (name, given) in enumerate(calls))
    return {"messages": [USER, Message.assistant(tool_calls=made)]}


@tool
async def wait(seconds: float) -> str:
    """Wait, and fail at zero."""
    if not seconds:
        raise ValueError("no time")
    await anyio.sleep(seconds)
    return f"waited {seconds}"


@pytest.mark.parametrize("parallel", [False, True])
async def test_e087_results_stand_in_call_order(parallel: bool) -> None:
    """Whatever finishes first; an unknown tool and a failing one are results, and the others run all the same."""
    calls = asking(("wait", {"seconds": 0.02}), ("wait", {"seconds": 0}), ("wiat", {}), ("wait", {"seconds": 0.001}))
    state = (await Executor(acting(wait, parallel=parallel)).run(calls)).unwrap()
    texts = [message.text for message in state.messages[2:]]
    assert [message.tool_call_id for message in state.messages[2:]] == ["c0", "c1", "c2", "c3"]
    assert (texts[0], texts[3]) == ("waited 0.02", "waited 0.001")
    assert "ValueError: no time" in texts[1]
    assert "tool not found: 'wiat'" in texts[2]
    assert state.last_tool_response == "waited 0.001"


@pytest.mark.parametrize("messages", [[], [USER], [CALLS, USER]])
async def test_e087_no_calls_to_run(messages: list[Message]) -> None:
    """Without calls after the last user message the node fails, and says what it needs."""
    assert open_round(messages) is None
    result = await Executor(acting(wait)).run({"messages": messages})
    assert isinstance(result.error, AgentError)
    assert "add_tools_conditional_edges" in str(result.error)


async def test_e088_a_call_that_had_ended_is_not_run_again() -> None:
    """The second call of a round waits for approval: the first is run when the node goes on, once."""
    ran: list[str] = []

    @tool
    def first() -> str:
        """Run at once."""
        ran.append("first")
        return "1"

    @tool(needs_approval=True)
    def second() -> str:
        """Run after approval."""
        ran.append("second")
        return "2"

    @tool(reentrant=True)
    async def third(ctx: Any) -> str:
        """Ask in the middle."""
        ran.append("third")
        return str(await ctx.node.interrupt("why?", "Why?", str))

    executor = Executor(acting(first, second, third), MemoryCheckpoints())
    result = await executor.run(asking(("first", {}), ("second", {}), ("third", {})), lineage="l")
    assert [one.key for one in result.interrupts] == ["approve:second"]
    result = await executor.resume("l", {"approve:second": True})
    assert [one.key for one in result.interrupts] == ["why?"]
    state = (await executor.resume("l", {"why?": "because"})).unwrap()
    assert [message.text for message in state.messages[2:]] == ["1", "2", "because"]
    assert ran == ["first", "second", "third", "third"]


async def test_only_calls_without_a_result_are_run() -> None:
    """Results that are there already, such as those of a call that could not be read, are not made again."""
    history = [USER, CALLS, Message.tool("known", "a")]

    @tool
    def look() -> str:
        """Look."""
        return "new"

    state = (await Executor(acting(look)).run({"messages": history})).unwrap()
    assert [(message.tool_call_id, message.text) for message in state.messages[2:]] == [("a", "known"), ("b", "new")]


def test_a_graph_of_agents_from_a_document() -> None:
    """The document says which kinds the nodes are; with their functions it is the same graph again."""
    builder = StateGraph(MessagesState).add_llm_node("model", ScriptedModel([]), tools=[wait]).set_entry_point("model")
    builder.add_tools_node("tools", [wait]).add_tools_conditional_edges("model", "tools").add_edge("tools", "model")
    graph = builder.compile()
    functions: dict[str, Any] = {node.id: node.fn for node in graph.defs}
    functions["model:router"] = graph.routes[0].router
    doc = graph.to_json()
    assert {name: spec["kind"] for name, spec in doc["nodes"].items()} == {"model": "llm", "tools": "tools"}
    again = StateGraph.from_json(doc, functions, state=MessagesState).compile()
    assert (again.fingerprint, [node.kind for node in again.defs]) == (graph.fingerprint, ["llm", "tools"])
    with pytest.raises(GraphDefinitionError, match=r"'model' of kind 'llm' is bound to nothing"):
        StateGraph.from_json(doc, {**functions, "model": None}, state=MessagesState).compile()  # type: ignore[dict-item]


async def test_a_function_instead_of_an_instruction() -> None:
    """It sees the state and the context, and its words are taken as they are."""

    async def instruct(state: MessagesState, ctx: NodeContext) -> str:
        return f"{ctx.activation.node}: {{user_input}} {state.user_input}"

    seen: list[ModelRequest] = []
    model = ScriptedModel(lambda request: seen.append(request) or "ok")
    await Executor(alone(model, instruction=instruct)).run({"user_input": "hi"})
    assert seen[0].messages[0].text == "model: {user_input} hi"
