"""Graphs whose runs the tests of the studio look at, by what they show."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import anyio
from pydantic import BaseModel

from graphagent import END, StateGraph, append


class Order(BaseModel):
    text: str = ""
    amount: int = 0
    log: Annotated[list[str], append] = []
    approve: Literal["yes", "no"] | None = None
    budget: int | None = None


def says(name: str) -> Any:
    """A node that writes its name to the log."""

    async def node(state: Order) -> dict[str, Any]:
        return {"log": [name]}

    return node


def read(state: Order) -> dict[str, Any]:
    """Count and say what was read."""
    return {"log": [f"read {state.text}"], "amount": state.amount + 1}


def broken(state: Order) -> dict[str, Any]:
    """Fail."""
    raise ValueError("the printer is on fire")


async def tick(state: Order) -> dict[str, Any]:
    """Take the time that GRAPHAGENT_TEST_TICK says, and count."""
    await anyio.sleep(float(os.environ.get("GRAPHAGENT_TEST_TICK", "0")))
    return {"amount": state.amount + 1}


inner = (
    StateGraph(Order, name="inner")
    .add_node("pick", says("pick"))
    .add_node("pack", says("pack"))
    .add_edge("pick", "pack")
    .set_entry_point("pick")
    .set_finish_point("pack")
    .compile()
)

order = (
    StateGraph(Order, name="order")
    .add_node("read", read, description="Counts and says what was read.")
    .add_node("price", says("price"))
    .add_node("stock", says("stock"))
    .add_node("decide", says("decide"))
    .add_subgraph_node("ship", inner)
    .add_node("close", says("close"))
    .set_entry_point("read")
    .add_edge("read", "price")
    .add_edge("read", "stock")
    .add_join_edge(["price", "stock"], "decide")
    .add_edge("decide", "ship")
    .add_edge("ship", "close")
    .set_finish_point("close")
    .compile()
)

questions = (
    StateGraph(Order, name="questions")
    .add_node("read", read)
    .add_interrupt_node("approve", prompt={"question": "Write it?"}, answer_type=Literal["yes", "no"])
    .add_interrupt_node("budget", prompt="How much may it cost?", answer_type=int)
    .add_node("write", says("write"))
    .set_entry_point("read")
    .add_edge("read", "approve")
    .add_edge("read", "budget")
    .add_join_edge(["approve", "budget"], "write")
    .set_finish_point("write")
    .compile()
)

failing = (
    StateGraph(Order, name="failing")
    .add_node("read", read)
    .add_node("broken", broken)
    .add_edge("read", "broken")
    .set_entry_point("read")
    .set_finish_point("broken")
    .compile()
)

ticking = (
    StateGraph(Order, name="ticking")
    .add_node("tick", tick)
    .add_conditional_edges(
        "tick",
        lambda state: "on" if state.amount < int(os.environ.get("GRAPHAGENT_TEST_TICKS", "40")) else "done",
        {"on": "tick", "done": END},
    )
    .set_entry_point("tick")
    .compile()
)


def wide() -> Any:
    """300 nodes: 30 rows of ten, each joined into the next one's first node; the last goes round until `amount` has
    come up to `budget`."""
    built = StateGraph(Order, name="wide")
    for row in range(30):
        for place in range(10):
            name = f"n{row}_{place}"
            built.add_node(name, tick if name == "n29_9" else says(name))
            if place:
                built.add_edge(f"n{row}_0", name)
        if row:
            built.add_join_edge([f"n{row - 1}_{place}" for place in range(1, 10)], f"n{row}_0")
    built.set_entry_point("n0_0")
    built.add_conditional_edges(
        "n29_9",
        lambda state: "again" if state.amount < (state.budget or 0) else "done",
        {"again": "n29_9", "done": END},
    )
    return built.compile(strict=False)
