"""What a graph is: state schema, merge rules, builder, compiled graph, transitions, drawings."""

from graphagent.graph.builder import StateGraph
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.fields import Transient
from graphagent.graph.names import END, START
from graphagent.graph.policies import CachePolicy, RetryPolicy
from graphagent.graph.reducers import add, any_of, append, last, merge, messages, reducer, union
from graphagent.graph.results import Command, Send
from graphagent.graph.schema import MessagesState, StateSchema

__all__ = [
    "END",
    "START",
    "CachePolicy",
    "Command",
    "CompiledGraph",
    "MessagesState",
    "RetryPolicy",
    "Send",
    "StateGraph",
    "StateSchema",
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
