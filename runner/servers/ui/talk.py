"""A talk as pages show it: what was said, what is asked, what was made. Plain values; nothing of any page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from graphagent.agents.graph_agent import GraphAgent, session_lineage
from graphagent.agents.invocation import RunOptions
from graphagent.engine.result import Interrupt
from graphagent.errors import GraphAgentError
from graphagent.ids import fresh_id
from graphagent.ledger import Event, SessionKey
from runner.outcome import DISCARDED, OUTCOME
from runner.servers.app import ServerContext
from runner.tasks import start_task

Kind = Literal["said", "call", "result", "error", "note"]
STEPS = 200
"""Steps of a run that are shown, the newest."""
_SHORT = 400


@dataclass(frozen=True, slots=True)
class Line:
    """Something that was said or done. `who`: `user`, or an agent's name."""

    kind: Kind
    who: str
    text: str


@dataclass(frozen=True, slots=True)
class FileShown:
    """An artifact: its name, and its versions, the oldest first."""

    name: str
    versions: tuple[int, ...]


@dataclass
class Shown:
    """What a page shows. `live`: text that is still coming, by who says it; `steps`: the nodes of each step of the
    agent's graph, the oldest first; `outcome`: of the last run that was watched, empty before it."""

    lines: list[Line] = field(default_factory=list)
    live: dict[tuple[str, str], str] = field(default_factory=dict)
    questions: tuple[Interrupt, ...] = ()
    steps: list[tuple[int, str]] = field(default_factory=list)
    files: tuple[FileShown, ...] = ()
    outcome: str = ""
    busy: bool = False


class Talk:
    """The talk of one user in one session, for all pages that show it. A run goes on when they are closed."""

    def __init__(self, context: ServerContext, user_id: str, session_id: str) -> None:
        self.user_id, self.session_id = user_id, session_id
        self.shown = Shown()
        self._context, self._runner = context, context.runner
        self._key = SessionKey(context.runner.app_name, user_id, session_id)
        self._request = ""
        self._listeners: list[Callable[[], None]] = []

    # -- what there is ---------------------------------------------------------------------------

    async def open(self) -> None:
        """Read what is stored, unless a run is being watched. Raises ServiceError, CheckpointError."""
        if self.shown.busy:
            return
        session = await self._runner.sessions.get(self._key)
        events = () if session is None else session.events
        self.shown.lines = [line for event in events for line in lines_of(event)]
        await self._look()

    async def _look(self) -> None:
        """What is asked, which steps there were, and which files there are."""
        agent, store, shown = self._runner.agent, self._runner.services.checkpoints, self.shown
        if isinstance(agent, GraphAgent) and store is not None:
            lineage = session_lineage(self._key)
            headers = await store.history(lineage, agent.name, limit=STEPS)
            turn = next((place for place, one in enumerate(headers) if one.source == "input"), len(headers))
            rows = [one for one in headers[:turn] if one.nodes]
            shown.steps = [(one.step, ", ".join(one.nodes)) for one in reversed(rows)]
            waits = headers and headers[0].source != "end"
            asked = await agent.executor(store).interrupts(lineage, namespace=agent.name) if waits else []
            shown.questions = tuple(one for one in asked if one.kind == "ask")
        files = self._runner.services.artifacts
        if files is not None:
            names = await files.names(self._key)
            shown.files = tuple([FileShown(name, tuple(await files.versions(self._key, name))) for name in names])

    def listen(self, changed: Callable[[], None]) -> None:
        """Have a page told of changes."""
        self._listeners.append(changed)

    def leave(self, changed: Callable[[], None]) -> None:
        """A page is gone."""
        if changed in self._listeners:
            self._listeners.remove(changed)

    @property
    def idle(self) -> bool:
        """True if nothing goes on and nobody looks."""
        return not self._listeners and not self.shown.busy

    # -- what a person does ----------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Say something to the agent. While a run goes on its agent reads it before its next call of a model."""
        if self.shown.busy:
            self._runner.say(self._request, text)
            self.shown.lines.append(Line("said", "user", text))
            self._tell()
            return
        self.shown.lines.append(Line("said", "user", text))
        self._begin(text, None)

    def answer(self, answers: Mapping[str, Any]) -> None:
        """Answer questions, by their ids; the run goes on."""
        self._begin(None, dict(answers))

    async def stop(self) -> None:
        """End the run that goes on."""
        await self._runner.cancel(self._request)

    def _begin(self, text: str | None, answers: dict[str, Any] | None) -> None:
        self._request = fresh_id()
        self.shown.busy, self.shown.outcome = True, ""
        self._tell()
        start_task(self._run(text, RunOptions(request_id=self._request, answers=answers)), f"page {self._request}")

    async def _run(self, text: str | None, options: RunOptions) -> None:
        """One run, watched to its end whoever looks."""
        shown = self.shown
        try:
            with self._context.slots.hold(self._request, self.user_id):
                async for event in self._runner.run(self.user_id, self.session_id, text, options):
                    self._take(event)
                    if not event.partial:
                        await self._look()
                    self._tell()
        except GraphAgentError as error:
            shown.lines.append(Line("error", "server", str(error)))
        except Exception as error:  # an agent's own, let out against its promise: the completion has told it
            shown.lines.append(Line("error", "server", f"{type(error).__name__}: the run failed"))
        finally:
            shown.busy, shown.live = False, {}
            try:
                await self._look()
            except GraphAgentError as error:
                shown.lines.append(Line("error", "server", str(error)))
            self._tell()

    def _take(self, event: Event) -> None:
        """Put one event of the run where it is shown."""
        shown = self.shown
        speaker = (event.author, event.branch)
        if event.kind == "completion" and OUTCOME in event.extensions:
            shown.outcome = str(event.extensions[OUTCOME])
            shown.live = {}
            if event.error is not None:
                shown.lines.append(Line("error", event.author, event.error.message))
            if event.extensions.get(DISCARDED):
                shown.lines.append(Line("note", event.author, "what was said of this answer was not kept"))
        elif event.partial:
            if event.delta:
                shown.live[speaker] = shown.live.get(speaker, "") + event.delta
        else:
            shown.live.pop(speaker, None)
            shown.lines += lines_of(event)

    def _tell(self) -> None:
        for changed in tuple(self._listeners):
            changed()


class Talks:
    """The talks that pages show or that go on, one for each session of a user."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._open: dict[tuple[str, str], Talk] = {}

    def of(self, user_id: str, session_id: str) -> Talk:
        """The talk of a user in a session."""
        self._open = {key: talk for key, talk in self._open.items() if not talk.idle}
        return self._open.setdefault((user_id, session_id), Talk(self._context, user_id, session_id))


def lines_of(event: Event) -> list[Line]:
    """What a complete event says."""
    found: list[Line] = []
    for message in event.messages:
        if message.role == "tool":
            found.append(Line("result", event.author, _short(message.text)))
            continue
        if message.text:
            found.append(Line("said", "user" if message.role == "user" else event.author, message.text))
        found += [
            Line("call", event.author, f"{call.name}({_arguments(call.arguments)})") for call in message.tool_calls
        ]
    if event.error is not None and event.kind != "completion":
        found.append(Line("error", event.author, event.error.message))
    return found


def _arguments(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_short(str(value))}" for name, value in arguments.items())


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}... ({len(text):,} characters)"
