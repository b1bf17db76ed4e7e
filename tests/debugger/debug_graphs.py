"""Small graphs and an agent that the debugger's tests step through."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, SecretStr

from graphagent import LLMAgent, StateGraph, append, tool
from graphagent.engine.context import SyncContext
from graphagent.models import ScriptedModel


class Order(BaseModel):
    text: str = ""
    done: Annotated[list[str], append] = []
    severity: str = "low"
    approve: Literal["yes", "no"] | None = None
    key: SecretStr | None = None


def pack(state: Order) -> dict[str, object]:
    """Packs."""
    return {"done": [f"pack {state.text}"]}


def weigh(state: Order, ctx: SyncContext) -> dict[str, object]:
    """Weighs, with a side effect."""
    return {"done": [ctx.step("scale", lambda: f"weigh {state.text}")]}


def judge(state: Order) -> dict[str, str]:
    """Judges by length."""
    return {"severity": "high" if len(state.text) > 3 else "low"}


def way(state: Order) -> Literal["ask", "ship"]:
    """Asks for what is long."""
    return "ask" if state.severity == "high" else "ship"


def ship(state: Order) -> dict[str, object]:
    """Ships."""
    return {"done": ["ship"]}


def fail(state: Order) -> None:
    """Always fails."""
    raise ValueError(f"no way for {state.text}")


inner = (
    StateGraph(Order, name="inner")
    .add_node("pack", pack, inline=True)
    .add_node("weigh", weigh, inline=True)
    .set_entry_point("pack")
    .add_edge("pack", "weigh")
    .set_finish_point("weigh")
    .compile()
)


def _order() -> StateGraph:
    return (
        StateGraph(Order, name="order")
        .add_subgraph_node("prepare", inner)
        .add_node("check", lambda state: {"done": ["check"]}, inline=True)
        .add_node("judge", judge, inline=True)
        .add_interrupt_node("ask", prompt="ship it?", answer_type=Literal["yes", "no"], key="approve")
        .add_node("ship", ship, inline=True)
        .set_entry_point("prepare", "check")
        .add_join_edge(["prepare", "check"], "judge")
        .add_conditional_edges("judge", way)
        .add_edge("ask", "ship")
        .set_finish_point("ship")
    )


order = _order().compile()
broken = (
    StateGraph(Order, name="broken")
    .add_node("pack", pack, inline=True)
    .add_node("fail", fail, inline=True)
    .set_entry_point("pack")
    .add_edge("pack", "fail")
    .set_finish_point("fail")
    .compile()
)


@tool
async def look_up(name: str) -> str:
    """Look a thing up."""
    return f"{name} is red"


def helper() -> LLMAgent:
    """An agent that calls a tool and then answers."""
    model = ScriptedModel([{"tool_calls": [{"name": "look_up", "arguments": {"name": "it"}}]}, "It is red."])
    return LLMAgent("helper", model, "You look things up.", tools=[look_up])
