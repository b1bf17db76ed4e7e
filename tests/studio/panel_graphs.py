"""Graphs and an agent whose runs have what the studio's data panels show."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from graphagent import END, LLMAgent, StateGraph, append, tool
from graphagent.models import ScriptedModel


class Address(BaseModel):
    street: str
    number: int = Field(ge=1)


class Order(BaseModel):
    """What is ordered."""

    colour: Literal["red", "green", "blue", "black", "white"]
    quantity: int = Field(ge=1, description="How many are sent")
    gift: bool
    address: Address
    note: str | None = None
    tags: list[str] = []


class Ticket(BaseModel):
    text: str = ""
    amount: int = 0
    address: Address = Address(street="Elm", number=1)
    items: Annotated[list[dict[str, Any]], append] = []
    order: Order | None = None
    go: bool = False


def fetch(state: Ticket) -> dict[str, Any]:
    """Bring what the ticket is about."""
    return {"amount": state.amount + 1, "items": [{"name": f"thing {i}", "size": i} for i in range(250)]}


async def pay(state: Ticket, ctx: Any) -> dict[str, Any]:
    """Pay, once."""
    paid = await ctx.step("pay", lambda: {"receipt": f"r{state.amount}"})
    return {"text": f"paid {paid['receipt']}"}


ticket = (
    StateGraph(Ticket, name="ticket")
    .add_node("fetch", fetch)
    .add_node("pay", pay)
    .add_node("close", lambda state: {"go": True})
    .set_entry_point("fetch")
    .add_edge("fetch", "pay")
    .add_edge("pay", "close")
    .set_finish_point("close")
    .compile()
)

ask = (
    StateGraph(Ticket, name="ask")
    .add_interrupt_node("order", prompt={"question": "What is ordered?", "customer": "ann"}, answer_type=Order)
    .set_entry_point("order")
    .set_finish_point("order")
    .compile()
)

decided = (
    StateGraph(Ticket, name="decided")
    .add_node("fetch", lambda state: {"amount": state.amount})
    .add_node("small", lambda state: {"text": "small"})
    .add_node("large", lambda state: {"text": "large"})
    .set_entry_point("fetch")
    .add_conditional_edges(
        "fetch", lambda state: "more" if state.amount > 10 else "less", {"more": "large", "less": "small"}
    )
    .add_edge("small", END)
    .add_edge("large", END)
    .compile()
)

stalled = (
    StateGraph(Ticket, name="stalled")
    .add_node("one", lambda state: {"text": "one"})
    .add_node("two", lambda state: {"go": True})
    .add_node("both", lambda state: {})
    .set_entry_point("one")
    .add_conditional_edges("one", lambda state: "end" if not state.go else "two", {"end": END, "two": "two"})
    .add_join_edge(["one", "two"], "both")
    .set_finish_point("both")
    .compile(strict=False)
)


@tool
async def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


def made() -> LLMAgent:
    """An agent that calls a tool, then answers; its model answers once."""
    call = {"tool_calls": [{"name": "weather", "arguments": {"city": "Bern"}}]}
    return LLMAgent(
        name="helper",
        model=ScriptedModel([call, "Take an umbrella."]),
        instruction="You are a helper who says what to wear.",
        tools=[weather],
    )


helper = made()
