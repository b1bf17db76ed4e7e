"""The faults that others only find in production, from the command line and without a model's key."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_help import Call

FLOWS = """
from typing import Literal

from pydantic import BaseModel

from graphagent import Executor, StateGraph


class State(BaseModel):
    n: int = 0
    ok: bool | None = None


def work(state: State) -> dict[str, int]:
    return {"n": state.n + 1}


def again(state: State) -> Literal["again"]:
    return "again"


def anywhere(state: State):
    return str(state.n)


def one(name: str) -> StateGraph:
    return StateGraph(State, name=name).add_node("work", work, inline=True).set_entry_point("work")


endless = one("endless").add_conditional_edges("work", again, {"again": "work"})
asking = StateGraph(State, name="asking").add_interrupt_node("ask", prompt="ok?", answer_type=bool, key="ok")
pausing = Executor(asking.set_entry_point("ask").set_finish_point("ask").compile())
undeclared = one("undeclared").add_conditional_edges("work", anywhere)
clean = one("clean").set_finish_point("work")
"""


@pytest.mark.parametrize(
    ("graph", "status", "code"),
    [("endless", 1, "GA303"), ("pausing", 1, "GA502"), ("undeclared", 1, "GA008"), ("clean", 0, None)],
)
def test_c160_faults_are_found_offline(call: Call, folder: Path, graph: str, status: int, code: str | None) -> None:
    """A loop without a way out, a question without a store, a router without declared targets: a status other than 0
    and a report for machines; the clean graph has neither."""
    (folder / "flows.py").write_text(FLOWS, "utf-8")
    done = call("check", f"flows.py:{graph}", "--fail-on", "warning", "--format", "json")
    assert done.code == status
    found = {finding["code"] for finding in done.data["findings"]}
    assert (code in found) if code is not None else not found
