"""What is being projected: a session, who reads it, and the view of it that the steps make. Values only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from graphagent.errors import AgentError
from graphagent.ledger import Event, Session, Summary
from graphagent.messages import Message

if TYPE_CHECKING:
    from graphagent.agents.invocation import Invocation

Action = Literal["kept", "dropped", "added", "changed", "moved", "ignored"]
Branch = Literal["prefix", "subtree", "exact", "all"]
Timeline = Literal["all", "request", "invocation"]
Contents = Literal["session", "invocation"]
Mode = Literal["system", "user"]
BlockKind = Literal["memory", "summary", "recall"]

SEED_HISTORY = "seed_history"
"""The extension of an event that stands for history from elsewhere: it is never taken for the current turn."""


class Note(NamedTuple):
    """What a step did, and why. `event`: the id of the event that it did it to, empty for the projection as a whole."""

    step: str
    action: Action
    text: str
    event: str = ""


class Line(NamedTuple):
    """One message of the view. `event`: where it comes from, as it is stored; `place`: the event's place
    among the projection's events, -1 for a message that isn't stored. `current`: what the reader was asked, never to be
    left out. `also`: the places of other events that went into this message. `resumed`: a summary covers it, and it is
    in view for the model to go on from."""

    message: Message
    event: Event
    place: int
    current: bool = False
    also: tuple[int, ...] = ()
    resumed: bool = False


class Block(NamedTuple):
    """A text beside the history: preloaded memories, a summary, recalled evidence; `mode`: the role it comes in."""

    kind: BlockKind
    text: str
    mode: Mode = "system"


class Budget(NamedTuple):
    """Tokens that all messages together may take, and how those of one are counted."""

    tokens: int
    count: Callable[[Message], int]


class Compacted(NamedTuple):
    """What compaction has done: how many results of tools it changed, and about how many tokens that saved."""

    results: int = 0
    tokens: int = 0


NOTHING_COMPACTED = Compacted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """For whom a projection is made. `message`: what it was asked; `now`: seconds since the epoch; `tools`: the names
    of those that it is offered."""

    agent: str = ""
    description: str = ""
    filter_key: str = ""
    branch: str = ""
    request_id: str = ""
    invocation_id: str = ""
    message: Message | None = None
    now: float = 0.0
    tools: frozenset[str] = frozenset()

    @classmethod
    def of(cls, invocation: Invocation, *, now: float = 0.0, tools: frozenset[str] = frozenset()) -> Reader:
        """The reader of an agent's run."""
        return cls(
            agent=invocation.agent.name,
            description=invocation.agent.description,
            filter_key=invocation.filter_key,
            branch=invocation.branch,
            request_id=invocation.request_id,
            invocation_id=invocation.id,
            message=invocation.message,
            now=now,
            tools=tools,
        )

    def in_run(self, event: Event) -> bool:
        """True if the event belongs to the reader's own run."""
        return event.request_id == self.request_id and event.invocation_id == self.invocation_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the caller adds. `instruction`: takes the place of the agent's. `values`: of `{invocation:key}`; `runtime`:
    of `{runtime:key}`; `artifacts`: texts of `{artifact.name}`. `examples` and `context`: messages before the history;
    `late`: messages right before the last one of the user. `blocks`: preloaded memories and evidence. `own_run_only`:
    the reader sees its own run and nothing else of the session."""

    instruction: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    runtime: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[Message, ...] = ()
    context: tuple[Message, ...] = ()
    late: tuple[Message, ...] = ()
    blocks: tuple[Block, ...] = ()
    own_run_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A session on its way to a model. Steps return a new one; events are never changed.

    `events`, `summaries`, `state`: the session's. `head`: messages before the history. `lines`: the history in view.
    `blocks`: texts that go in beside it. `branch`, `timeline`, `contents`: which events the visibility step let in.
    `summarised`: whether summaries may stand for events. `compacted`: which results of tools were shortened.
    `budget`: None for no bound. `earlier`: how many events of the session come before `events`, and `earlier_why` the
    step for which they can't be in view.
    """

    reader: Reader
    events: tuple[Event, ...] = ()
    summaries: Mapping[str, Summary] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    given: Given = Given()
    budget: Budget | None = None
    head: tuple[Message, ...] = ()
    lines: tuple[Line, ...] = ()
    blocks: tuple[Block, ...] = ()
    branch: Branch = "prefix"
    timeline: Timeline = "all"
    contents: Contents = "session"
    summarised: bool = False
    compacted: Compacted = NOTHING_COMPACTED
    notes: tuple[Note, ...] = ()
    earlier: int = 0
    earlier_why: str = ""

    @classmethod
    def of(
        cls, session: Session | None, reader: Reader, *, given: Given | None = None, budget: Budget | None = None
    ) -> Projection:
        """The projection before any step; without a session there is only what the reader was asked."""
        given = given or Given()
        if session is None:
            return cls(reader=reader, given=given, budget=budget)
        return cls(
            reader=reader,
            events=tuple(session.events),
            summaries=dict(session.summaries),
            state=dict(session.state),
            given=given,
            budget=budget,
        )

    def noted(self, notes: Iterable[Note], **changes: Any) -> Projection:
        """The same with changed fields and more notes."""
        return replace(self, notes=(*self.notes, *notes), **changes)


Step = Callable[[Projection], Projection]
"""A step of the chain. It must be pure: same projection, same result."""


def one_of(policy: str, name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise AgentError if a policy's option has a value that it doesn't know."""
    if value not in allowed:
        known = ", ".join(f"'{word}'" for word in allowed)
        raise AgentError(f"'{policy}({name}=...)' got '{value}'; it takes {known}")
