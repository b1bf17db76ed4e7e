"""One activation run by itself on a stored state, and nothing of it stored."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.writing import moment_at

from graphagent import Command, Executor, NodeContext, Send, StateGraph, append, merge
from graphagent.debug.alone import EffectNotRecorded, run_alone
from graphagent.errors import NodeError, StateError, UsageError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.schema import MessagesState
from graphagent.models import ScriptedModel
from graphagent.testing.compare import content

pytestmark = pytest.mark.anyio


class State(BaseModel):
    item: int = 0
    factor: int = 2
    found: Annotated[list[int], append] = []
    by_item: Annotated[dict[str, int], merge] = {}
    last: str = ""


class World:
    """What nodes do outside: `calls` with their keys."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.keys: list[str] = []

    def graph(self, bonus: int = 0, effect: str = "look") -> CompiledGraph:
        """A fan-out of workers that look something up and write; a child graph behind them."""

        async def split(state: State) -> list[Send]:
            return [Send("worker", {"item": i}) for i in (1, 2, 3)]

        async def worker(state: State, ctx: NodeContext) -> dict[str, Any]:
            self.keys.append(ctx.idempotency_key("look"))
            await ctx.step(effect, self.calls.append, f"{state.item}")
            number = state.item * state.factor + bonus
            return {"found": [number], "by_item": {f"{state.item}": number}}

        async def inside(state: State, ctx: NodeContext) -> dict[str, Any]:
            return {"last": str(await ctx.step("inside", self._sum, state.found))}

        child = StateGraph(State, name="child").add_node("inside", inside).set_entry_point("inside")
        graph = StateGraph(State).add_node("split", split, destinations=["worker"]).add_node("worker", worker)
        graph.add_subgraph_node("below", child.set_finish_point("inside").compile())
        graph.add_edge("worker", "below").set_finish_point("below")
        return graph.set_entry_point("split").compile()

    def _sum(self, numbers: list[int]) -> int:
        self.calls.append("sum")
        return sum(numbers)


@pytest.fixture
async def ran(store: Any, engine: Any, lineage: str) -> tuple[World, Executor, str, Any]:
    """A finished run: its world, executor, lineage, and what is stored of it."""
    world = World()
    executor = Executor(world.graph(), store, engine)
    assert (await executor.run(lineage=lineage)).ok
    kept = await content(store, lineage)
    world.calls.clear()
    return world, executor, lineage, kept


async def test_the_same_comes_out_and_nothing_is_stored(ran: Any, store: Any) -> None:
    """With the overlay of its Send, its recorded effects and the keys of the run; no row, effect or result is new."""
    world, executor, lineage, kept = ran
    keys = world.keys[:]
    alone = await run_alone(executor, moment_at(lineage, 1), "worker[1]/worker#2")
    assert alone.update == {"found": [4], "by_item": {"2": 4}}
    assert (alone.differs, alone.error, alone.goto) == ((), None, None)
    assert alone.compared == {"found": "same", "by_item": "same"}
    assert world.calls == []
    assert world.keys[-1] in keys
    assert await content(store, lineage) == kept


async def test_other_input_and_other_code(ran: Any, store: Any) -> None:
    """A patch over the state, and a graph with newer code: what differs from the record is named by field."""
    world, executor, lineage, kept = ran
    moment = moment_at(lineage, 1)
    patched = await run_alone(executor, moment, "worker[2]/worker#2", patch={"factor": 10})
    assert (patched.update["found"], patched.differs) == ([30], ("found", "by_item"))
    newer = Executor(world.graph(bonus=1), store, executor.engine)
    changed = await run_alone(newer, moment, "worker[2]/worker#2")
    assert (changed.update["found"], changed.differs) == ([7], ("found", "by_item"))
    with pytest.raises(StateError, match="factor"):
        await run_alone(executor, moment, "worker[2]/worker#2", patch={"factor": "many"})
    assert await content(store, lineage) == kept


async def test_effects_without_a_record_are_not_carried_out(ran: Any, store: Any) -> None:
    """An effect that the ledger doesn't know is a typed error that says how to allow it; then it is carried out."""
    world, executor, lineage, kept = ran
    newer = Executor(world.graph(effect="new"), store, executor.engine)
    moment, who = moment_at(lineage, 1), "worker[0]/worker#2"
    refused = (await run_alone(newer, moment, who)).error
    assert isinstance(refused, EffectNotRecorded)
    assert (refused.name, world.calls) == ("new", [])
    assert "effects='missing'" in str(refused)
    assert (await run_alone(newer, moment, who, effects="missing")).error is None
    assert world.calls == ["1"]
    await run_alone(executor, moment, who, effects="missing")
    assert world.calls == ["1"]
    await run_alone(executor, moment, who, effects="run")
    assert world.calls == ["1", "1"]
    assert await content(store, lineage) == kept


async def test_a_child_graph_runs_apart(ran: Any, store: Any) -> None:
    """A subgraph node runs its child in a store of its own, with the effects that the child has recorded."""
    world, executor, lineage, kept = ran
    (last,) = [header for header in await executor.history(lineage) if header.nodes == ("below",)]
    moment, name = moment_at(lineage, last.seq - 1), f"below#{last.step}"
    alone = await run_alone(executor, moment, name)
    assert alone.error is None
    assert (alone.update, alone.differs, world.calls) == ({"last": "12"}, (), [])
    ended = await run_alone(executor, moment_at(lineage, last.seq), name, effects="run")
    assert (ended.update, world.calls) == ({"last": "12"}, ["sum"])
    assert await content(store, lineage) == kept


async def test_what_is_not_there_is_named(ran: Any) -> None:
    """An activation that isn't due, or a word that isn't known, is an error with what there is."""
    _, executor, lineage, _ = ran
    with pytest.raises(UsageError, match=r"no activation 'worker#9' is due"):
        await run_alone(executor, moment_at(lineage, 1), "worker#9")
    with pytest.raises(UsageError, match="effects='recordd' is unknown: did you mean 'recorded'"):
        await run_alone(executor, moment_at(lineage, 1), "worker[0]/worker#2", effects="recordd")  # type: ignore[arg-type]


async def test_failures_jumps_and_questions(store: Any, lineage: str) -> None:
    """What an activation ends with besides an update: a jump, a question, an error; answers of the run are used."""

    async def choose(state: State, ctx: NodeContext) -> Command:
        if await ctx.interrupt("go on?", None, bool):
            return Command(update={"last": "yes"}, goto="fail")
        return Command(goto="fail")

    async def fail(state: State) -> None:
        raise ValueError(f"not {state.last}")

    graph = StateGraph(State).add_node("choose", choose, destinations=["fail"]).add_node("fail", fail)
    executor = Executor(graph.set_entry_point("choose").compile(), store)
    await executor.run(lineage=lineage)
    asked = await run_alone(executor, moment_at(lineage, 1), "choose#1")
    assert ([question.key for question in asked.asked], asked.update, asked.recorded) == (["go on?"], {}, None)
    await executor.resume(lineage, answer=True)
    newest = (await executor.history(lineage))[0].seq
    jumped = await run_alone(executor, moment_at(lineage, newest - 2), "choose#1")
    assert (jumped.goto, jumped.update, jumped.differs) == (("fail",), {"last": "yes"}, ())
    failed = await run_alone(executor, moment_at(lineage, newest), "fail#2", patch={"last": "no"})
    assert isinstance(failed.error, NodeError)
    assert "not no" in str(failed.error)


async def test_models_are_asked_only_if_that_is_said(store: Any, lineage: str) -> None:
    """A model's answer is an effect: taken from the ledger, or asked for again, and then the request is there."""
    model = ScriptedModel(["first", "second"])
    graph = StateGraph(MessagesState).add_llm_node("ask", model, instruction="Be brief.")
    executor = Executor(graph.set_entry_point("ask").set_finish_point("ask").compile(), store)
    await executor.run({"user_input": "hello"}, lineage=lineage)
    again = await run_alone(executor, moment_at(lineage, 0), "ask#1")
    assert (again.update["last_response"], again.requests, again.differs) == ("first", (), ())
    anew = await run_alone(executor, moment_at(lineage, 0), "ask#1", effects="run")
    assert anew.update["last_response"] == "second"
    assert [message.text for message in anew.requests[0].messages] == ["Be brief.", "hello"]
    assert "last_response" in anew.differs
