"""How a graph runs: plan, execute, merge, checkpoint, event."""

from graphagent.engine.cache import MemoryCache, NodeCache
from graphagent.engine.context import ActivationInfo, NodeContext, SyncContext
from graphagent.engine.executor import Executor
from graphagent.engine.explain import Cause
from graphagent.engine.hooks import NodeCallbacks
from graphagent.engine.limits import Budget, Limits, Usage
from graphagent.engine.replay import Divergence, ReplayReport
from graphagent.engine.result import Interrupt, RunResult
from graphagent.engine.stream import EventStream
from graphagent.engine.timetravel import Change

__all__ = [
    "ActivationInfo",
    "Budget",
    "Cause",
    "Change",
    "Divergence",
    "EventStream",
    "Executor",
    "Interrupt",
    "Limits",
    "MemoryCache",
    "NodeCache",
    "NodeCallbacks",
    "NodeContext",
    "ReplayReport",
    "RunResult",
    "SyncContext",
    "Usage",
]
