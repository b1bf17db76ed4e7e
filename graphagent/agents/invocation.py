"""One run of one agent: what it was asked, in which session, with what around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from graphagent.engine.limits import Budget
from graphagent.execution import CodeExecutor
from graphagent.ids import fresh_id
from graphagent.ledger import Event, Session
from graphagent.messages import Message
from graphagent.services import ArtifactService, MemoryService, SessionService
from graphagent.skills import SkillRepository

if TYPE_CHECKING:
    from graphagent.agents.agent import Agent
    from graphagent.agents.guard import ContextGuard
    from graphagent.agents.model_options import ModelCallbacks
    from graphagent.agents.projector import Projector
    from graphagent.agents.tool_options import ToolCallbacks
    from graphagent.checkpoint.store import CheckpointStore
    from graphagent.engine.context import NodeContext


@dataclass(frozen=True, slots=True)
class Services:
    """What surrounds a run; None where there is none."""

    sessions: SessionService | None = None
    memory: MemoryService | None = None
    artifacts: ArtifactService | None = None
    checkpoints: CheckpointStore | None = None
    projector: Projector | None = None
    guard: ContextGuard | None = None
    executor: CodeExecutor | None = None
    skills: SkillRepository | None = None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of one run. `request_id`: None takes a fresh one. `filter_key`: None takes the app's name. `history`:
    seed messages for a session without events. `answers`: resume an interrupted run with these. `max_seconds`: wall
    time. `detached`: the run goes on when its reader leaves. `plugins`: of a Runner, for this run only."""

    request_id: str | None = None
    agent: Agent | str | None = None
    filter_key: str | None = None
    history: tuple[Message, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    instruction: str | None = None
    answers: Mapping[str, Any] | None = None
    abandon: bool = False
    budget: Budget | None = None
    max_seconds: float | None = None
    model: Any = None
    tool_filter: Callable[[str], bool] | None = None
    detached: bool = False
    plugins: tuple[Any, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hooks:
    """Callbacks around each call of a model and of a tool in a run, whichever agent makes it. They come before those of
    the agent itself, with which they make one chain."""

    model: tuple[ModelCallbacks, ...] = ()
    tool: tuple[ToolCallbacks, ...] = ()


@dataclass(frozen=True, slots=True)
class Invocation:
    """`agent`: who runs; `message`: what it was asked; `session`: a snapshot, reread by the projector; `branch`: path
    of agents; `filter_key`: decides which events it sees and marks those it makes. `persist`: stores an event before
    the activation that made it counts as finished (None: nothing is stored). `queued`: takes what the person has said
    while the run was going on; a model node asks before each request, and the messages go into its history. `node`:
    the activation that this run is a part of, for an agent that another one runs (None: it is a run of its own).
    `hooks`: of the whole run, its children's calls included. `as_tool`: it answers an agent that called it as a tool,
    not a person. `admitted`: the id of the invocation of which a Runner has seen, holding the session, that no question
    is open."""

    agent: Agent
    message: Message | None
    session: Session | None = None
    id: str = field(default_factory=fresh_id)
    request_id: str = field(default_factory=fresh_id)
    parent_id: str = ""
    branch: str = ""
    filter_key: str = ""
    options: RunOptions = RunOptions()
    services: Services = Services()
    persist: Callable[[Event], Awaitable[None]] | None = None
    queued: Callable[[], Awaitable[tuple[Message, ...]]] | None = None
    node: NodeContext | None = None
    hooks: Hooks = Hooks()
    as_tool: bool = False
    admitted: str = ""

    def child(self, agent: Agent, message: Message | None, *, scope: str | None = None, branch: str = "") -> Invocation:
        """The invocation of a sub-agent. `scope` adds a segment to the filter key (None: it stays the same)."""
        path = "/".join(part for part in (self.branch, branch, agent.name) if part)
        key = self.filter_key if scope is None else "/".join(part for part in (self.filter_key, scope) if part)
        return replace(
            self, agent=agent, message=message, id=fresh_id(), parent_id=self.id, branch=path, filter_key=key
        )
