"""Finds the agent that `module:name` or `file.py:name` names on a command line."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from graphagent.agents.agent import Agent
from graphagent.errors import GraphAgentError, UsageError, alternatives
from runner.cli.target import load_module, load_value, split_target

_HOW = "write module:name, such as 'app.agents:helper'"


def load_agent(target: str) -> Agent:
    """The agent that a target names; a function without parameters that makes one will do.

    Without `:name` the module must have one agent. Raises UsageError for a target that can't be found or imported, or
    that is no agent.
    """
    place, name = split_target(target)
    module = load_module(place)
    if not name:
        names = _agents(module)
        if len(names) != 1:
            found = f"{len(names)} agents ({', '.join(map(repr, names))})" if names else "no agent"
            raise UsageError(f"module '{place}' has {found}; {_HOW}")
        target = f"{place}:{names[0]}"
    value = load_value(module, target)
    if callable(value) and not isinstance(value, Agent):
        value = _made(value, target)
    if not isinstance(value, Agent) or isinstance(value, type):
        known = alternatives(target.partition(":")[2], _agents(module))
        raise UsageError(f"'{target}' is {value!r:.80}, not an agent (such as LLMAgent): {known}")
    return value


def _made(function: Any, target: str) -> Any:
    try:
        return function()
    except GraphAgentError:
        raise
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise UsageError(f"calling '{target}' failed: {told}; it must make an agent by itself") from error


def _agents(module: ModuleType) -> list[str]:
    """Names of the module that are agents, each agent once; agents below others don't count."""
    found: dict[int, tuple[str, Agent]] = {}
    for name, value in vars(module).items():
        if isinstance(value, Agent) and not isinstance(value, type):
            found[id(value)] = (name, value)
    below = {id(sub) for _, agent in found.values() for sub in agent.sub_agents}
    return [name for key, (name, _) in found.items() if key not in below]
