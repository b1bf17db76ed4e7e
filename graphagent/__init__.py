"""graphagent: graph-first state-machine agents, validated before they run and checkpointed at every step."""

from graphagent.agents import ChainAgent, CycleAgent, GraphAgent, LLMAgent, ParallelAgent, tool
from graphagent.checkpoint import MemoryCheckpoints, SqlCheckpoints
from graphagent.engine import Budget, Executor, Limits, NodeCallbacks, NodeContext, RunResult, SyncContext
from graphagent.errors import GraphAgentError
from graphagent.events import RunEvent
from graphagent.graph import (
    END,
    START,
    CachePolicy,
    Command,
    CompiledGraph,
    MessagesState,
    RetryPolicy,
    Send,
    StateGraph,
    Transient,
    add,
    any_of,
    append,
    last,
    merge,
    messages,
    reducer,
    union,
)
from graphagent.ledger import Event
from graphagent.messages import Message, RemoveMessage, ToolCall

__all__ = [
    "END",
    "START",
    "Budget",
    "CachePolicy",
    "ChainAgent",
    "Command",
    "CompiledGraph",
    "CycleAgent",
    "Event",
    "Executor",
    "GraphAgent",
    "GraphAgentError",
    "LLMAgent",
    "Limits",
    "MemoryCheckpoints",
    "Message",
    "MessagesState",
    "NodeCallbacks",
    "NodeContext",
    "ParallelAgent",
    "RemoveMessage",
    "RetryPolicy",
    "RunEvent",
    "RunResult",
    "Send",
    "SqlCheckpoints",
    "StateGraph",
    "SyncContext",
    "ToolCall",
    "Transient",
    "add",
    "any_of",
    "append",
    "last",
    "merge",
    "messages",
    "reducer",
    "tool",
    "union",
]
