"""One page on one run: where its cursor stands, what it has selected, what can be done, and who is told of changes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlencode

from graphagent.checkpoint.finding import RunInfo
from graphagent.checkpoint.store import CheckpointStore
from graphagent.debug.breakpoints import Breakpoint
from graphagent.debug.moment import Moment
from graphagent.debug.session import DebugSession, Stopped
from graphagent.engine.executor import Executor
from graphagent.engine.nested import graphs_by_frame
from graphagent.errors import CheckpointNotFound, GraphAgentError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.view import values_of
from graphagent.ids import parse_checkpoint_id
from runner.studio.look import moment_at
from runner.studio.rows import Rows

if TYPE_CHECKING:
    from runner.studio.app import Studio
    from runner.studio.targets import Known

Change = Literal["moment", "rows", "selected", "breakpoints", "busy", "info"]
Callback = Callable[[], Awaitable[None] | None]
Command = Literal["step", "next", "out", "run", "until", "back", "back_next", "start", "leave", "goto", "edit", "fork"]
WRITING: frozenset[str] = frozenset({"start", "answer", "edit", "fork"})
"""Commands that always write; those that go forward do so from the newest row on."""
FORWARD: frozenset[str] = frozenset({"step", "next", "out", "run", "until"})
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """What a link names. `namespace`: of the run's root frame; `checkpoint`: full id, None for the newest."""

    lineage: str
    namespace: str = ""
    checkpoint: str | None = None
    node: str | None = None

    @property
    def link(self) -> str:
        """The path and query of the page."""
        said = {"ns": self.namespace, "cp": self.checkpoint, "node": self.node}
        query = urlencode({name: value for name, value in said.items() if value})
        return f"/run/{quote(self.lineage, safe='')}" + (f"?{query}" if query else "")


class StudioRun:
    """A run as a page has it. `session` None: nothing is known of its graph, or another page sits at the session; then
    the page only looks, by itself. Callbacks are called in the page's context; what they raise is logged."""

    def __init__(self, studio: Studio, place: Place, known: Known, page: str) -> None:
        self.studio, self.lineage, self.namespace, self.page = studio, place.lineage, place.namespace, page
        self.known = known
        self.rows = Rows(studio.store, place.lineage, place.namespace)
        self.session: DebugSession | None = None
        self.stopped: Stopped | None = None
        self.info: RunInfo | None = None
        self.selected: str | None = place.node
        self.busy: str | None = None
        self.following = False
        self.taken_elsewhere = False
        self.within: AbstractContextManager[Any] = nullcontext()
        self._moment: Moment | None = None
        self._joined = False  # the session has its cursor where ours is; it reads what is stored when it first has to
        self._callbacks: list[tuple[frozenset[str], Callback]] = []
        self._say: Callable[[str, str], None] = lambda text, kind: None
        self._graphs: Mapping[str, CompiledGraph | None] = {}
        self._graphs_of = -1

    # -- what there is ---------------------------------------------------------------------------

    @property
    def store(self) -> CheckpointStore:
        """The store of the studio."""
        return self.studio.store

    @property
    def graph(self) -> CompiledGraph | None:
        """The graph of the root frame, also if only its document is known."""
        return self.known.graph

    @property
    def executor(self) -> Executor | None:
        """An executor of the run's graph on the store; None if the graph was not given to the studio."""
        return self.studio.executor(self.known.target) if self.known.target is not None else None

    @property
    def moment(self) -> Moment:
        """Where the cursor stands."""
        assert self._moment is not None
        return self._moment

    @property
    def why_read_only(self) -> str | None:
        """Why nothing can be run or changed from this page, with what would allow it; None if all can."""
        if reason := self.studio.why_read_only:
            return reason
        if self.known.target is None:
            return "its graph was not given: start the studio with module:graph to step and to change it"
        if self.taken_elsewhere:
            return "another page has this run open for stepping: close it and reload this one"
        return None

    @property
    def at_newest(self) -> bool:
        """Whether the cursor stands at the newest row of all frames."""
        newest = self.rows.newest
        return newest is None or newest.id == self.moment.id or bool(self.session and self.session.live)

    @property
    def place(self) -> Place:
        """What a link to here names."""
        return Place(self.lineage, self.namespace, self.moment.id, self.selected)

    @property
    def breakpoints(self) -> Iterable[Breakpoint]:
        """The breakpoints of the session; none without one."""
        return () if self.session is None else tuple(self.session.breakpoints)

    def graph_of(self, namespace: str) -> CompiledGraph | None:
        """The graph of a frame; None if it isn't known."""
        if self.graph is None:
            return None
        if self._graphs_of != self.rows.version or namespace not in self._graphs:
            self._graphs = graphs_by_frame(self.graph, {self.namespace, namespace, *self.rows.by_frame})
            self._graphs_of = self.rows.version
        return self._graphs.get(namespace)

    async def values(self, moment: Moment | None = None) -> dict[str, Any]:
        """The state at a moment (None: here): typed where the graph was given, else plain data."""
        moment = moment or self.moment
        executor = self.executor
        if executor is not None and moment.namespace == self.namespace:
            try:
                return dict(values_of(await executor.state(self.lineage, moment.seq, namespace=moment.namespace)))
            except GraphAgentError as error:
                _log.info("the state of '%s' is shown as plain data: %s", moment.id, error)
        loaded = await self.store.load(self.lineage, moment.namespace, moment.seq)
        return {} if loaded is None else dict(loaded.values)

    # -- telling ---------------------------------------------------------------------------------

    def on_change(self, callback: Callback, *kinds: Change) -> None:
        """Call back after a change of one of the kinds; without any after every one but `busy`. `moment`: the cursor
        has moved, `rows`: there are new checkpoints, `selected`: another node, `breakpoints`, `info`: the status,
        `busy`: a command begins or ends."""
        self._callbacks.append((frozenset(kinds or ("moment", "rows", "selected", "breakpoints", "info")), callback))

    def on_message(self, say: Callable[[str, str], None]) -> None:
        """Where messages go: text and kind (`warning`, `negative`, `info`)."""
        self._say = say

    def say(self, text: str, kind: str = "info") -> None:
        """Tell the user something."""
        self._say(text, kind)

    async def changed(self, *kinds: Change) -> None:
        """Tell all that wait for one of these changes."""
        for wanted, callback in list(self._callbacks):
            if wanted.isdisjoint(kinds):
                continue
            try:
                with self.within:
                    result = callback()
                    if result is not None:
                        await result
            except Exception:
                _log.exception("a panel of run '%s' failed", self.lineage)
                self.say("a panel could not be shown; see the log of the studio", "negative")

    # -- doing -----------------------------------------------------------------------------------

    async def open(self, checkpoint: str | None = None) -> None:
        """Read the checkpoints, sit down at the session if there can be one, and stand at a checkpoint (None: where the
        session stands, else the newest). Raises CheckpointNotFound."""
        await self.rows.refresh()
        self.session = await self.studio.session_for(self)
        self.taken_elsewhere = self.session is None and self.graph is not None
        await self.look_up()
        if self.session is not None and self.session.live and checkpoint in (None, self.session.moment.id):
            self._moment, self._joined = self.session.moment, True
        else:
            self._moment = await self._look(checkpoint)
        self.following = bool(self.info and self.info.status == "running" and not (self.session and self.session.live))

    async def look_up(self) -> None:
        """Ask the store again how the run stands."""
        self.info = await self.studio.info(self.lineage, self.namespace)

    async def do(self, command: str, *args: Any, **named: Any) -> bool:
        """Carry out a command of the session; errors are told to the user. False if it could not be done."""
        if refused := self.refusal(command):
            self.say(refused, "warning")
            return False
        if self.busy and command != "leave":
            self.say(f"'{self.busy}' goes on; pause it first", "info")
            return False
        before, self.busy = self.busy, command
        await self.changed("busy")
        try:
            await self._carry_out(command, *args, **named)
        except GraphAgentError as error:
            self.say(str(error), "negative")
            return False
        finally:
            self.busy = before
            grown = await self.rows.refresh()
            await self.look_up()
            await self.changed("busy", "moment", "info", *(("rows",) if grown else ()))
        return True

    def refusal(self, command: str) -> str | None:
        """Why a command can't be done from here; None if it can."""
        writes = command in WRITING or (command in FORWARD and self.at_newest)
        if writes and (reason := self.why_read_only):
            return f"read-only: {reason}"
        if self.session is None and command != "goto" and command not in ("back", "back_next", *FORWARD):
            return "read-only: there is no session"
        return None

    async def goto(self, checkpoint: str) -> bool:
        """Move the cursor to a checkpoint."""
        return await self.do("goto", checkpoint)

    async def answer(self, key: str, value: Any) -> bool:
        """Answer a question; the answer is used when the run goes on. Returns False, and tells why, for a bad one."""
        if refused := self.refusal("answer"):
            self.say(refused, "warning")
            return False
        assert self.session is not None
        try:
            await self._join(self.session)
            await self.session.answer(key, value)
        except GraphAgentError as error:
            self.say(str(error), "negative")
            return False
        return True

    async def select(self, node: str | None) -> None:
        """Select a node of the frame that is shown."""
        if node != self.selected:
            self.selected = node
            await self.changed("selected")

    async def toggle_breakpoint(self, node: str) -> None:
        """Set a breakpoint before a node, or remove those it has."""
        if self.session is None:
            self.say(f"no breakpoint can be set: {self.why_read_only}", "warning")
            return
        found = [point.id for point in self.session.breakpoints if point.node == node and point.kind == "before"]
        try:
            for number in found:
                self.session.breakpoints.remove(number)
            if not found:
                self.session.breakpoints.add("before", node=node)
        except GraphAgentError as error:
            self.say(str(error), "negative")
        await self.changed("breakpoints")

    async def refresh(self) -> bool:
        """Look for what others have written; True if there was something. Follows the newest row if that is wanted."""
        if self.busy or not await self.rows.refresh():
            return False
        if self.session is not None and self._joined:
            await self.session.refresh()
        await self.look_up()
        newest = self.rows.newest
        if self.following and newest is not None and newest.id != self.moment.id:
            await self._carry_out("goto", newest.id)
            await self.changed("rows", "moment", "info")
        else:
            await self.changed("rows", "info")
        return True

    async def look_again(self) -> None:
        """Ask how the run stands, and tell if that has changed."""
        before = self.info
        await self.look_up()
        if self.info != before:
            await self.changed("info")

    async def come_back(self) -> None:
        """The page has a connection (again): sit down at the session if it is free now, as after a reload."""
        before = self.session
        self.session = await self.studio.session_for(self)
        self.taken_elsewhere = self.session is None and self.graph is not None
        if self.session is not before:
            session = self.session
            self._joined = session is not None and session.live and session.moment.id == self.moment.id
            await self.changed("info", "busy", "breakpoints", "moment")

    def leave(self) -> None:
        """The page is gone, or has lost its connection; its session is free for another."""
        self.studio.free(self)

    # -- inside ----------------------------------------------------------------------------------

    async def _carry_out(self, command: str, *args: Any, **named: Any) -> None:
        if self.session is not None and (self._joined or command != "goto"):
            if command != "start":
                await self._join(self.session)
            stopped = await getattr(self.session, command)(*args, **named)
            self._joined = True
            if command == "leave" and not self.session.running and self.busy == "leave":
                stopped = await self.session.open()  # the pause is a row of its own
            if isinstance(stopped, Stopped):
                self._take(stopped)
            return
        order = self._walk()
        here = order.index(self.moment.id) if self.moment.id in order else len(order) - 1
        if command == "goto":
            self._moment = await self._look(args[0])
        elif order:
            ahead = {"back": here - 1, "back_next": here - 1, "run": len(order) - 1}.get(command, here + 1)
            self._moment = await self._look(order[min(max(ahead, 0), len(order) - 1)])

    async def _join(self, session: DebugSession) -> None:
        if not self._joined:
            session.stored.know(self.rows.by_frame)
            await session.open(self.moment.id)
            self._joined = True

    def _walk(self) -> list[str]:
        """Ids of the rows of all frames in the order in which they were written."""
        rows = [row for frame in self.rows.by_frame.values() for row in frame]
        return [row.id for row in sorted(rows, key=lambda row: (row.created_at, -len(row.namespace), row.seq))]

    def _take(self, stopped: Stopped) -> None:
        self.stopped, self._moment = stopped, stopped.moment

    async def _look(self, checkpoint: str | None) -> Moment:
        newest = self.rows.newest
        if checkpoint is None and newest is not None:
            namespace, seq = newest.namespace, newest.seq
        else:
            place = parse_checkpoint_id(checkpoint or "", self.lineage)
            if place is None:
                raise CheckpointNotFound(f"'{checkpoint}' is no checkpoint of '{self.lineage}'")
            namespace, seq = place
        graphs = {namespace: self.graph_of(namespace)}
        return await moment_at(self.store, graphs, self.lineage, namespace, seq)
