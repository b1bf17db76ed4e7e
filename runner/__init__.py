"""What surrounds a run: `from runner import Runner`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.agents import AgentFactory, AgentRequest
    from runner.plugins import Plugin
    from runner.run_state import RunStatus
    from runner.runner import Runner, RunnerPolicy

__all__ = ["AgentFactory", "AgentRequest", "Plugin", "RunStatus", "Runner", "RunnerPolicy"]

_PLACES = {
    "AgentFactory": "runner.agents",
    "AgentRequest": "runner.agents",
    "Plugin": "runner.plugins",
    "RunStatus": "runner.run_state",
    "Runner": "runner.runner",
    "RunnerPolicy": "runner.runner",
}


def __getattr__(name: str) -> Any:  # the command line is in this package too: its help must not load the engine
    if name not in _PLACES:
        raise AttributeError(f"module 'runner' has no '{name}'")
    import importlib

    return getattr(importlib.import_module(_PLACES[name]), name)
