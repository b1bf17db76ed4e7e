"""Money: what model calls cost, in events, in the usage of a run, and against a budget."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from support.run_agents import APP, all_of, outcome, stored

from graphagent import Budget, Executor, LLMAgent, MessagesState, StateGraph
from graphagent.agents import AgentTool
from graphagent.agents.model import Delta, ModelRequest
from graphagent.ledger import TokenUsage
from graphagent.models import ScriptedModel
from runner import Runner

pytestmark = pytest.mark.anyio
DEAR = TokenUsage(input_tokens=10, output_tokens=5, cost=0.5)
UNKNOWN = TokenUsage(input_tokens=10, output_tokens=5)
CALL = {"tool_calls": [{"name": "inner", "arguments": {"request": "?"}}]}


@pytest.mark.parametrize(
    ("inner", "cost"), [(DEAR, 1.5), (UNKNOWN, None), (TokenUsage(cost=0.0), 1.0)], ids=["known", "not known", "free"]
)
async def test_the_cost_of_a_run(inner: TokenUsage, cost: float | None) -> None:
    """The completion has the sum over all agents, an agent that is a tool included; one call without a price makes it
    not known, which is not 0. Each answer in the session has its own."""
    tool = AgentTool(LLMAgent("inner", ScriptedModel(["In."], usage=inner)))
    outer = LLMAgent("outer", ScriptedModel([CALL, "Out."], usage=DEAR), tools=[tool])
    async with Runner(APP, outer) as runner:
        last = (await all_of(runner))[-1]
        assert last.usage is not None
        assert last.usage.cost == cost
        assert last.usage.input_tokens == 20 + inner.input_tokens
        costs = [event.usage.cost for event in (await stored(runner)).events if event.usage is not None]
        assert costs == [0.5, inner.cost, 0.5]


async def test_a_budget_of_money() -> None:
    """What was paid is held against it, and ends the run as a limit."""
    agent = LLMAgent("outer", ScriptedModel([CALL, CALL, "Out."], usage=DEAR), tools=[_Inner()])
    async with Runner(APP, agent) as runner:
        events = await all_of(runner, budget=Budget(cost=0.9))
    assert outcome(events) == "limit_reached"
    assert events[-1].usage is not None
    assert events[-1].usage.cost == 1.0


class _Inner(AgentTool):
    def __init__(self) -> None:
        super().__init__(LLMAgent("inner", ScriptedModel(lambda request: "In.", usage=TokenUsage(cost=0.0))))


async def test_a_budget_that_can_not_count_says_so() -> None:
    """A result tells of calls whose price nobody knows: their cost is None, and the budget of cost warns."""
    graph = StateGraph(MessagesState).add_llm_node("ask", ScriptedModel(["hi"], usage=UNKNOWN))
    graph.set_entry_point("ask").set_finish_point("ask")
    result = await Executor(graph.compile()).run({"user_input": "hello"}, budget=Budget(cost=1.0))
    assert (result.usage.cost, result.usage.unpriced, result.usage.calls) == (None, 1, 1)
    assert result.warnings == ("the price of 1 model calls is not known: the budget of cost did not count them",)


class Pieces:
    """A model that counts as it goes."""

    name = "pieces"
    context_window = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Usage comes twice, growing."""
        yield Delta(text="hi", usage=TokenUsage(input_tokens=10, cost=0.1))
        yield Delta(finish_reason="stop", usage=TokenUsage(input_tokens=10, output_tokens=5, cost=0.3))


async def test_a_count_that_grows_is_counted_once() -> None:
    """The largest number stands, of money too."""
    async with Runner(APP, LLMAgent("echo", Pieces())) as runner:
        last = (await all_of(runner))[-1]
    assert last.usage == TokenUsage(input_tokens=10, output_tokens=5, cost=0.3)
