"""Graphs that the tests of the command line run, by what they show."""

from __future__ import annotations

import sys
import time
from datetime import date
from typing import Annotated, Any, Literal

import anyio
from pydantic import BaseModel, SecretStr

from graphagent import END, Send, StateGraph
from graphagent.engine import NodeContext, SyncContext
from graphagent.graph.reducers import append


class Order(BaseModel):
    text: str = ""
    amount: int = 0
    due: date | None = None
    key: SecretStr | None = None
    log: Annotated[list[str], append] = []
    approve: Literal["yes", "no"] | None = None
    note: str | None = None


def read(state: Order) -> dict[str, Any]:
    """Count and say what was read."""
    return {"log": [f"read {state.text}"], "amount": state.amount + 1}


def write(state: Order) -> dict[str, Any]:
    """Say what is written."""
    return {"log": [f"wrote {state.amount}"]}


def refuse(state: Order) -> dict[str, Any]:
    """Say that nothing is written."""
    return {"log": ["refused"]}


def broken(state: Order) -> dict[str, Any]:
    """Fail."""
    raise ValueError("the printer is on fire")


async def sleepy(state: Order, ctx: NodeContext) -> dict[str, Any]:
    """Wait long, but let go at once when cancelled."""
    await ctx.progress(0.5, "half way")
    await anyio.sleep(60)
    return {}


def stuck(state: Order) -> dict[str, Any]:
    """Blocks its thread, deaf to cancellation."""
    time.sleep(60)
    return {}


async def talk(state: Order, ctx: NodeContext) -> dict[str, Any]:
    """Say something in pieces."""
    await ctx.stream_text("hel")
    await ctx.stream_text("lo")
    await ctx.progress(1.0, "said")
    return {"log": ["talked"]}


plain = StateGraph(Order, name="plain").add_node("read", read).add_node("write", write).add_edge("read", "write")
plain = plain.set_entry_point("read").set_finish_point("write").compile()

approval = (
    StateGraph(Order, name="approval")
    .add_node("read", read)
    .add_interrupt_node("approve", prompt={"question": "Write it?"}, answer_type=Literal["yes", "no"])
    .add_node("write", write)
    .add_node("refuse", refuse)
    .set_entry_point("read")
    .add_edge("read", "approve")
    .add_conditional_edges("approve", lambda state: state.approve, {"yes": "write", "no": "refuse"})
    .set_finish_point("write")
    .set_finish_point("refuse")
    .compile()
)

# asks until the answer is "stop"; its answer is a text, also one that looks like a number
talkative = (
    StateGraph(Order, name="talkative")
    .add_interrupt_node("note", prompt="What next?", answer_type=str)
    .add_node("keep", lambda state: {"log": [state.note]})
    .set_entry_point("note")
    .add_edge("note", "keep")
    .add_conditional_edges(
        "keep", lambda state: "done" if state.note == "stop" else "more", {"done": END, "more": "note"}
    )
    .compile()
)

failing = StateGraph(Order, name="failing").add_node("read", read).add_node("broken", broken)
failing = failing.set_entry_point("read").add_edge("read", "broken").set_finish_point("broken").compile()

slow = StateGraph(Order, name="slow").add_node("read", read).add_node("sleepy", sleepy)
slow = slow.set_entry_point("read").add_edge("read", "sleepy").set_finish_point("sleepy").compile()

deaf = (
    StateGraph(Order, name="deaf").add_node("stuck", stuck).set_entry_point("stuck").set_finish_point("stuck").compile()
)

talking = (
    StateGraph(Order, name="talking").add_node("talk", talk).set_entry_point("talk").set_finish_point("talk").compile()
)

endless = (
    StateGraph(Order, name="endless").add_node("read", read).set_entry_point("read").add_edge("read", "read").compile()
)

starved = (
    StateGraph(Order, name="starved")
    .add_node("read", read)
    .add_node("write", write)
    .add_node("refuse", refuse)
    .set_entry_point("read")
    .add_conditional_edges("read", lambda state: "write", ["write", "refuse"])
    .add_node("meet", lambda state: {})
    .add_join_edge(["write", "refuse"], "meet")
    .set_finish_point("meet")
    .compile()
)

breakpoints = (
    StateGraph(Order, name="breakpoints")
    .add_node("read", read)
    .add_node("write", write, interrupt_before=True)
    .set_entry_point("read")
    .add_edge("read", "write")
    .set_finish_point("write")
    .compile()
)


class Batch(BaseModel):
    items: list[str] = []
    item: str = ""
    done: Annotated[list[str], append] = []


def work(state: Batch, ctx: SyncContext) -> dict[str, Any]:
    """Ask about a bad item, pass a good one."""
    answer = ctx.interrupt("fix", f"How to fix {state.item}?", str) if state.item.startswith("bad") else "fine"
    return {"done": [f"{state.item} {answer}"]}


# several questions under one key: each has to be answered by its id
batch = (
    StateGraph(Batch, name="batch")
    .add_node("split", lambda state: [Send("work", {"item": item}) for item in state.items], destinations=["work"])
    .add_node("work", work)
    .set_entry_point("split")
    .set_finish_point("work")
    .compile()
)

parent = (
    StateGraph(Order, name="parent")
    .add_subgraph_node("child", approval)
    .add_node("shout", lambda state: print("out loud") or print("aside", file=sys.stderr))
    .set_entry_point("child")
    .add_edge("child", "shout")
    .set_finish_point("shout")
    .compile()
)


def retry_or_end(state: Order) -> Literal["again", "done"]:
    """Never try again."""
    return "done"


# everything a picture can show: cycle, self-loop, labels, join, map, error edge, child graph, interrupt, jump
picture = (
    StateGraph(Batch, name='picture <all> & "more"')
    .add_node("plan", lambda state: {})
    .add_node("fetch", lambda state: {})
    .add_node("a rather long name of a node", lambda state: {}, destinations={"give up": END})
    .add_node("retry", lambda state: {})
    .add_map_node("each", lambda state: {}, over="items", item_key="item", collect="gather")
    .add_node("gather", lambda state: {})
    .add_interrupt_node("ask", prompt="?")
    .add_node("mend", lambda state: {})
    .add_node("日本語", lambda state: {})
    .set_entry_point("plan")
    .add_edge("plan", "fetch")
    .add_edge("plan", "a rather long name of a node")
    .add_join_edge(["fetch", "a rather long name of a node"], "each")
    .add_edge("gather", "ask")
    .add_conditional_edges("ask", lambda state: "no", {"again": "plan", "no, do it once more": "each", "ok": "日本語"})
    .add_error_edge("fetch", "mend", errors=(OSError,))
    .add_edge("mend", "retry")
    .add_conditional_edges("retry", retry_or_end, {"again": "retry", "done": "fetch"})
    .set_finish_point("日本語")
    .compile()
)

builder = StateGraph(Order, name="builder").add_node("read", read).set_entry_point("read").set_finish_point("read")


def make() -> StateGraph:
    """A function that makes a graph."""
    return builder


def needs_argument(one: int) -> StateGraph:
    """A function that cannot be called by itself."""
    return builder


number = 3
