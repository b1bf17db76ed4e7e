"""Who acts: agents, models, tools, and the graph nodes that run them."""

from graphagent.agents.agent import Agent
from graphagent.agents.agent_node import AgentNode
from graphagent.agents.agent_tool import AgentTool
from graphagent.agents.composite import ChainAgent, CycleAgent, CycleState, ParallelAgent
from graphagent.agents.function_tool import tool
from graphagent.agents.graph_agent import GraphAgent, session_lineage
from graphagent.agents.handover import HandOver
from graphagent.agents.invocation import Hooks, Invocation, RunOptions, Services
from graphagent.agents.llm_agent import LLMAgent
from graphagent.agents.llm_node import LLMNode
from graphagent.agents.model import GenerationConfig, Model, ModelRequest, Reply
from graphagent.agents.model_options import CallLimits, ModelCallbacks
from graphagent.agents.nested import AgentAnswer
from graphagent.agents.program_node import ProgramNode
from graphagent.agents.program_result import ProducedFile, ProgramResult
from graphagent.agents.tool import Tool, ToolContext, ToolResult
from graphagent.agents.tool_options import ToolCallbacks, ToolOptions
from graphagent.agents.tools_node import ToolsNode

__all__ = [
    "Agent",
    "AgentAnswer",
    "AgentNode",
    "AgentTool",
    "CallLimits",
    "ChainAgent",
    "CycleAgent",
    "CycleState",
    "GenerationConfig",
    "GraphAgent",
    "HandOver",
    "Hooks",
    "Invocation",
    "LLMAgent",
    "LLMNode",
    "Model",
    "ModelCallbacks",
    "ModelRequest",
    "ParallelAgent",
    "ProducedFile",
    "ProgramNode",
    "ProgramResult",
    "Reply",
    "RunOptions",
    "Services",
    "Tool",
    "ToolCallbacks",
    "ToolContext",
    "ToolOptions",
    "ToolResult",
    "ToolsNode",
    "session_lineage",
    "tool",
]
