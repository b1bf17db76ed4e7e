"""Graphs whose runs are reported: one of each ending, a child graph, and a state that is no friend of HTML."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel

from graphagent import StateGraph, append


class Note(BaseModel):
    text: str = ""
    log: Annotated[list[str], append] = []
    answer: str | None = None


def write(state: Note) -> dict[str, Any]:
    """Adds a line to the log."""
    return {"log": [f"wrote {state.text}"]}


def fail(state: Note) -> None:
    """Always fails."""
    raise ValueError(f"can't go on with {state.text}")


def _flow(name: str) -> StateGraph:
    return StateGraph(Note, name=name).add_node("write", write, inline=True).set_entry_point("write")


child = _flow("child").set_finish_point("write").compile()
completed = _flow("completed").add_subgraph_node("more", child).add_edge("write", "more").set_finish_point("more")
completed = completed.compile()
failed = (
    _flow("failed").add_node("fail", fail, inline=True).add_edge("write", "fail").set_finish_point("fail").compile()
)
interrupted = (
    _flow("interrupted")
    .add_interrupt_node("ask", prompt="go <on>?", answer_type=str, key="answer")
    .add_edge("write", "ask")
    .set_finish_point("ask")
    .compile()
)
endless = _flow("endless").add_edge("write", "write").compile()
GRAPHS = {"completed": completed, "failed": failed, "interrupted": interrupted, "limit_reached": endless}
