"""The agents of a Runner, and how a run gets its own: by name, as an object, or made for it by a factory."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace

import anyio

from graphagent.agents.agent import Agent
from graphagent.agents.invocation import RunOptions
from graphagent.errors import AgentError, alternatives
from graphagent.ledger import Session
from runner.routing import Wanted
from runner.tasks import start_task

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """For which run a factory makes an agent. `session`: as it is before the run; `name`: what it has to be called."""

    name: str
    session: Session
    request_id: str
    options: RunOptions


AgentFactory = Callable[[AgentRequest], Agent | Awaitable[Agent] | AbstractAsyncContextManager[Agent]]
"""Makes an agent for one run: a function, sync or async, or one that is an async context manager (what it opens is open
as long as the run). What a function makes is closed after the run, if it has an `aclose`."""


@dataclass(slots=True)
class Taken:
    """An agent for the time of a run. A factory that is a context manager is entered and left in a task of its own, so
    that a run that is cancelled doesn't cut short how it is left."""

    agent: Agent
    over: anyio.Event = field(default_factory=anyio.Event)
    closed: anyio.Event | None = None

    async def close(self) -> None:
        """Give it back; returns when all that was opened for it is closed."""
        self.over.set()
        if self.closed is not None:
            await self.closed.wait()


class Agents:
    """The agents that runs can be of. `default`: an agent, or the name of one of the others. Raises AgentError for a
    name that two have, or a default that is not there."""

    def __init__(self, default: Agent | str, agents: Iterable[Agent], factories: Mapping[str, AgentFactory]) -> None:
        named = [*(() if isinstance(default, str) else (default,)), *agents]
        self._known = _by_name(named)
        self._factories = dict(factories)
        for name in self._factories:
            if any(agent.name == name for agent in named):
                raise AgentError(f"'{name}' is an agent and a factory: give one of them another name")
        self._default = default if isinstance(default, str) else default.name
        if self._default not in (*self._known, *self._factories):
            raise AgentError(f"there is no agent '{self._default}': {alternatives(self._default, self.names)}")

    @property
    def names(self) -> list[str]:
        """What runs can name."""
        return [*self._factories, *(name for name in self._known if name not in self._factories)]

    def has(self, name: str) -> bool:
        """Whether a run can name it."""
        return name in self._factories or name in self._known

    async def take(self, wanted: Wanted | Agent | None, request: AgentRequest) -> Taken:
        """The agent for a run. Raises AgentError for one that is not there, and for what is no agent of that name;
        what a factory raises comes out as an AgentError that names it."""
        if wanted is None:
            wanted = Wanted(self._default)
        if not isinstance(wanted, Wanted):
            return Taken(wanted)
        name = wanted.within if wanted.within in self._factories else wanted.name
        if name not in self._factories:
            if name not in self._known:
                raise AgentError(f"there is no agent '{name}': {alternatives(name, self.names)}")
            return Taken(self._known[name])
        taken = await _made(self._factories[name], replace(request, name=name))
        below = {agent.name: agent for agent in _all_of(taken.agent)}
        if taken.agent.name == name and wanted.name in below:
            taken.agent = below[wanted.name]
            return taken
        await taken.close()
        if wanted.name == name:
            raise AgentError(f"factory '{name}' made an agent called '{taken.agent.name}': call both the same")
        raise AgentError(f"the agent of factory '{name}' has no '{wanted.name}': {alternatives(wanted.name, below)}")


async def _made(factory: AgentFactory, request: AgentRequest) -> Taken:
    """What a factory makes, entered if it is to be."""
    found: list[Taken | Exception] = []
    ready, closed = anyio.Event(), anyio.Event()

    async def host() -> None:
        try:
            made = factory(request)
            if isinstance(made, AbstractAsyncContextManager):
                async with made as agent:
                    await _lend(agent, request.name, found, ready, closed)
                return
            agent = await made if inspect.isawaitable(made) else made
            try:
                await _lend(agent, request.name, found, ready, closed)
            finally:
                if (aclose := getattr(agent, "aclose", None)) is not None:
                    await aclose()
        except Exception as error:
            if found:
                _log.exception("closing the agent of factory '%s' failed", request.name)
            found.append(error)
        finally:
            ready.set()
            closed.set()

    start_task(host(), f"agent '{request.name}'")
    try:
        await ready.wait()
    except BaseException:
        # the run was cancelled meanwhile: what is made after that is closed at once
        found.append(AgentError(f"the run was over before factory '{request.name}' had made its agent"))
        raise
    first = found[0] if found else AgentError(f"factory '{request.name}' made no agent")
    if isinstance(first, AgentError):
        raise first
    if isinstance(first, Exception):
        text = f"factory '{request.name}' failed: {type(first).__name__}: {first}"
        raise AgentError(text) from first
    return first


async def _lend(
    agent: Agent, name: str, found: list[Taken | Exception], ready: anyio.Event, closed: anyio.Event
) -> None:
    """Hand the agent over to the run, until this is over."""
    if found:
        return
    if not isinstance(agent, Agent) or isinstance(agent, type):
        raise AgentError(f"factory '{name}' made {agent!r:.60}, which is no agent (such as LLMAgent)")
    taken = Taken(agent, closed=closed)
    found.append(taken)
    ready.set()
    await taken.over.wait()


def _by_name(agents: Iterable[Agent]) -> dict[str, Agent]:
    """The agents and those below them; of two with one name below others, the first counts."""
    found: dict[str, Agent] = {}
    for agent in agents:
        if agent.name in found:
            raise AgentError(f"two agents are called '{agent.name}': give one of them another name")
        found[agent.name] = agent
    for agent in list(found.values()):
        for below in _all_of(agent):
            found.setdefault(below.name, below)
    return found


def _all_of(agent: Agent) -> Iterator[Agent]:
    """An agent and those below it, the nearest first."""
    seen: set[int] = set()
    waiting = [agent]
    while waiting:
        one = waiting.pop(0)
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += one.sub_agents
