"""The agent that most people mean: a model with an instruction and tools, as a graph of two nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphagent.agents.agent import Agent
from graphagent.agents.graph_agent import GraphAgent
from graphagent.agents.instruction import Instruction
from graphagent.agents.model import GenerationConfig, Model
from graphagent.agents.model_options import CallLimits, ModelCallbacks
from graphagent.agents.tool_options import DEFAULT_OPTIONS, ToolOptions
from graphagent.agents.toolset import ToolLike
from graphagent.agents.transfer import TransferTool
from graphagent.graph.builder import StateGraph
from graphagent.graph.names import END
from graphagent.graph.schema import MessagesState


class LLMAgent(GraphAgent):
    """A model that answers, or asks for tools until it can.

    Its graph has the nodes `model` and `tools`, and one for each of `sub_agents`, to which the model can hand the
    conversation over. `output_schema`, `output_key`, `config`, `limits`, `callbacks`: see
    `StateGraph.add_llm_node`; `tool_options`: how tools are run. `state`: the state class, a MessagesState with fields
    of your own. `interrupt_before`, `interrupt_after`: breakpoints at these nodes. `options`: those of GraphAgent.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        instruction: Instruction = "",
        tools: Iterable[ToolLike] = (),
        *,
        description: str = "",
        sub_agents: Sequence[Agent] = (),
        output_schema: Any = None,
        output_key: str | None = None,
        config: GenerationConfig | None = None,
        limits: CallLimits | None = None,
        callbacks: Iterable[ModelCallbacks] = (),
        tool_options: ToolOptions = DEFAULT_OPTIONS,
        state: type = MessagesState,
        interrupt_before: Iterable[str] = (),
        interrupt_after: Iterable[str] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.tools = tuple(tools)
        all_tools = (*self.tools, TransferTool(sub_agents, caller=name)) if sub_agents else self.tools
        asking = {
            "output_schema": output_schema,
            "output_key": output_key,
            "config": config,
            "limits": limits,
            "callbacks": tuple(callbacks),
        }
        builder = StateGraph(state, name=name).set_entry_point("model")
        builder.add_llm_node("model", model, instruction=instruction, tools=all_tools, **asking)
        _with_tools(builder, all_tools, sub_agents, tool_options)
        if (most := limits.most_calls if limits is not None else None) is not None:
            builder.limits(laps={"model": most})
        builder.interrupt_before_nodes(*interrupt_before).interrupt_after_nodes(*interrupt_after)
        super().__init__(name, builder.compile(), description=description, sub_agents=sub_agents, **(options or {}))


def _with_tools(
    builder: StateGraph, tools: tuple[ToolLike, ...], agents: Sequence[Agent], options: ToolOptions
) -> None:
    """The way round by the tools, and to the agents that may take over."""
    if not tools:
        builder.set_finish_point("model")
        return
    places = [END, *(agent.name for agent in agents)]
    builder.add_tools_node("tools", tools, tool_options=options, destinations=places)
    builder.add_tools_conditional_edges("model", "tools").add_edge("tools", "model")
    for agent in agents:
        builder.add_agent_node(agent.name, agent).set_finish_point(agent.name)
