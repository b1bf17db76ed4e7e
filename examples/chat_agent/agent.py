"""The agent: a model, an instruction, two tools. `graphagent chat examples.chat_agent.agent:agent` talks with it."""

from __future__ import annotations

from examples.chat_agent.script import script
from examples.chat_agent.tools import days_between, weekday
from examples.models import scripted
from graphagent import LLMAgent
from graphagent.agents import CallLimits, Model

NAME = "calendar"
INSTRUCTION = "You answer questions about dates. Never reckon yourself: call the tools, and answer in one sentence."


def make_agent(model: Model) -> LLMAgent:
    """The agent, with this model; it may go round by the tools five times a turn."""
    return LLMAgent(NAME, model, INSTRUCTION, [days_between, weekday], limits=CallLimits(tool_rounds=5))


agent = make_agent(scripted(script))
