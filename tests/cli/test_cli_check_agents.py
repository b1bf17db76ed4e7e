"""`graphagent check` finds the agents of a module, and reports them under their names."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_help import Call, Done

AGENTS = """
from __future__ import annotations

from graphagent import ChainAgent, GraphAgent, Limits, LLMAgent, MessagesState, StateGraph
from graphagent.models import ScriptedModel

helper = LLMAgent("helper", ScriptedModel([]))
desk = LLMAgent("desk", ScriptedModel([]), sub_agents=[helper])
chain = ChainAgent("chain", [desk])


def note(state: MessagesState) -> dict[str, str]:
    return {"last_response": "noted"}


builder = StateGraph(MessagesState, name="lost").add_node("a", note).add_node("b", note).add_node("c", note)
builder.set_entry_point("a").add_edge("b", "c").add_edge("a", "a2").add_node("a2", note).set_finish_point("a2")
clerk = GraphAgent("clerk", builder.compile(), limits=Limits(max_steps=7))


def made(name: str = "made") -> LLMAgent:
    return LLMAgent(name, ScriptedModel([]))


def other(name: str) -> LLMAgent:
    raise SystemExit("called")
"""


def graphs(done: Done) -> list[tuple[str, str]]:
    """Target and name of each graph of a report."""
    return [(graph["source"], graph["name"]) for graph in done.data["graphs"]]


@pytest.fixture
def _agents(folder: Path) -> None:
    Path("desk.py").write_text(AGENTS, "utf-8")


@pytest.mark.usefixtures("_agents")
@pytest.mark.parametrize("target", ["desk.py", "desk", "."])
def test_agents_are_found(call: Call, target: str) -> None:
    """A module, a file and a folder stand for their agents, also those that a function makes; each once, by name."""
    done = call("check", target, "--json")
    names = [name for _, name in graphs(done)]
    assert names == ["helper", "desk", "chain", "clerk", "made"]
    findings = {(finding["code"], finding["graph"]) for finding in done.data["findings"]}
    assert ("GA101", "clerk") in findings
    assert "lost" not in done.out


@pytest.mark.usefixtures("_agents")
def test_one_agent_is_named(call: Call) -> None:
    """`module:agent` is the agent; text names it; what is no agent is refused with what could stand there."""
    done = call("check", "desk.py:desk")
    assert done.code == 0, done.out
    assert "desk.py:desk [desk]: " in done.out
    assert graphs(call("check", "desk:clerk", "--json")) == [("desk:clerk", "clerk")]
    assert graphs(call("check", "desk:made", "--json")) == [("desk:made", "made")]
    assert "or an agent such as 'LLMAgent'" in call("check", "desk:MessagesState").out
