"""The agent that most people mean: a model with an instruction and tools, as a graph of two nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from graphagent.agents.agent import Agent
from graphagent.agents.graph_agent import GraphAgent
from graphagent.agents.handover import TO_ALL, HandOver, Place, Ways
from graphagent.agents.instruction import Instruction
from graphagent.agents.model import GenerationConfig, Model
from graphagent.agents.model_options import CallLimits, ModelCallbacks
from graphagent.agents.tool_options import DEFAULT_OPTIONS, ToolOptions
from graphagent.agents.toolset import ToolLike
from graphagent.agents.transfer import TransferTool
from graphagent.engine.limits import Limits
from graphagent.graph.builder import StateGraph
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.names import END
from graphagent.graph.schema import MessagesState

LANDING = "landing"
"""The node that answers when a limit cuts a turn off."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What the graph of an LLMAgent is made of. `asking`: options of its model node."""

    model: Model
    instruction: Instruction
    tools: tuple[ToolLike, ...]
    sub_agents: tuple[Agent, ...]
    asking: Mapping[str, Any]
    tool_options: ToolOptions
    hand_over: HandOver
    state: type
    landing: str | None
    breakpoints: tuple[tuple[str, ...], tuple[str, ...]]


class LLMAgent(GraphAgent):
    """A model that answers, or asks for tools until it can.

    Its graph has the nodes `model` and `tools`, and one for each of `sub_agents`, to which the model can hand the
    conversation over. `output_schema`, `output_key`, `config`, `limits`, `callbacks`: see
    `StateGraph.add_llm_node`; `tool_options`: how tools are run; `hand_over`: to whom it may hand over. `landing`: when
    the steps or the budget of a turn are used up, the model is asked once more, without tools and with this text behind
    the messages, so that the turn ends with an answer; its outcome is `limit_reached` all the same. `state`: the state
    class, a MessagesState with fields of your own. `interrupt_before`, `interrupt_after`: breakpoints at these nodes.
    `options`: those of GraphAgent.
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
        hand_over: HandOver = TO_ALL,
        landing: str | None = None,
        state: type = MessagesState,
        interrupt_before: Iterable[str] = (),
        interrupt_after: Iterable[str] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.tools = tuple(tools)
        self.hand_over = hand_over
        asking = {
            "output_schema": output_schema,
            "output_key": output_key,
            "config": config,
            "limits": limits,
            "callbacks": tuple(callbacks),
        }
        self._parts = _Parts(
            model,
            instruction,
            self.tools,
            tuple(sub_agents),
            asking,
            tool_options,
            hand_over,
            state,
            landing,
            (tuple(interrupt_before), tuple(interrupt_after)),
        )
        graph = _built(self._parts, Place(name, description))
        given = dict(options or {})
        if landing is not None:
            given["limits"] = replace(given.get("limits") or Limits(), landing=LANDING)
        super().__init__(name, graph, description=description, sub_agents=sub_agents, **given)

    def among(self, around: Sequence[Place]) -> LLMAgent:
        """The agent as a part of another one, where it can hand over to agents around it too; the same if there are
        none, or its state has no place to leave that in."""
        if not around or "metadata" not in self.graph.schema.fields:
            return self
        member = copy(self)
        member.graph = _built(self._parts, Place(self.name, self.description), around)
        member._executors = {}
        return member


def _built(parts: _Parts, itself: Place, around: Sequence[Place] = ()) -> CompiledGraph:
    """The graph of an agent. `around`: to whom it can hand over beside those below it."""
    below = parts.sub_agents if parts.hand_over.sub_agents else ()
    tools = parts.tools
    if below or around:
        tools = (*tools, TransferTool(below, caller=itself.name, elsewhere=around))
    builder = StateGraph(parts.state, name=itself.name).set_entry_point("model")
    builder.add_llm_node("model", parts.model, instruction=parts.instruction, tools=tools, **parts.asking)
    if tools:
        written = ("messages", "last_tool_response", "user_input", "metadata")
        more: dict[str, Any] = {}
        if around:
            more["writes"] = [name for name in written if name in builder.schema.fields]
        places = [END, *(agent.name for agent in below)]
        builder.add_tools_node("tools", tools, tool_options=parts.tool_options, destinations=places, **more)
        builder.add_tools_conditional_edges("model", "tools").add_edge("tools", "model")
    else:
        builder.set_finish_point("model")
    for agent in below:
        _add_member(builder, agent, below, itself, parts.hand_over.most)
    if parts.landing is not None:
        last = {**parts.asking, "limits": CallLimits(model_calls=1, final=parts.landing)}
        seen = "GA101: the engine runs it when a limit cuts a turn off"
        builder.add_llm_node(LANDING, parts.model, instruction=parts.instruction, allow=(seen,), **last)
        builder.set_finish_point(LANDING)
    limits: CallLimits | None = parts.asking["limits"]
    if (most := limits.most_calls if limits is not None else None) is not None:
        builder.limits(laps={"model": most})
    before, after = parts.breakpoints
    return builder.interrupt_before_nodes(*before).interrupt_after_nodes(*after).compile()


def _add_member(builder: StateGraph, agent: Agent, family: Sequence[Agent], above: Place, most: int) -> None:
    """The node of a sub-agent, with the ways to those to whom it may hand over."""
    ways: dict[str, str] = {}
    member = agent
    if isinstance(agent, LLMAgent):
        own = {one.name for one in agent.sub_agents} | {agent.name}
        peers = [Place(one.name, one.description) for one in family if one.name not in own]
        around = [*(peers if agent.hand_over.peers else ()), *([above] if agent.hand_over.parent else ())]
        member = agent.among([place for place in around if place.name not in own])
        if member is not agent:
            ways = {place.name: "model" if place is above else place.name for place in around}
    builder.add_agent_node(agent.name, member, hand_over=Ways(ways, most) if ways else None)
    builder.set_finish_point(agent.name)
