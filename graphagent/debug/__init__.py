"""The debugger's core: stand at any point of a run, step through it, break, inspect, edit, explain."""

from graphagent.debug.breakpoints import Breakpoint, Breakpoints
from graphagent.debug.driver import Driver, ExecutorDriver
from graphagent.debug.expression import Expression
from graphagent.debug.moment import Coming, Moment
from graphagent.debug.session import DebugSession
from graphagent.debug.stopped import Stopped, Why

__all__ = [
    "Breakpoint",
    "Breakpoints",
    "Coming",
    "DebugSession",
    "Driver",
    "ExecutorDriver",
    "Expression",
    "Moment",
    "Stopped",
    "Why",
]
