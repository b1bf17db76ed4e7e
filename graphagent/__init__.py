"""graphagent: graph-first state-machine agents, validated before they run and checkpointed at every step."""

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
from graphagent.messages import Message, RemoveMessage, ToolCall

__all__ = [
    "END",
    "START",
    "Budget",
    "CachePolicy",
    "Command",
    "CompiledGraph",
    "Executor",
    "GraphAgentError",
    "Limits",
    "MemoryCheckpoints",
    "Message",
    "MessagesState",
    "NodeCallbacks",
    "NodeContext",
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
    "union",
]
