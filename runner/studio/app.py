"""What the pages of a studio share: the store, the graphs, the sessions, and whether anything may be changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import unquote

from anyio.abc import TaskGroup

from graphagent.agents.graph_agent import GraphAgent, session_lineage
from graphagent.checkpoint.finding import RunInfo, RunQuery
from graphagent.checkpoint.sql.urls import redacted
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.debug.driver import Driver, ExecutorDriver
from graphagent.debug.session import DebugSession
from graphagent.engine.executor import Executor
from graphagent.errors import CheckpointNotFound, UsageError, alternatives
from graphagent.ledger import SessionKey
from runner.debugger.agent_driver import RunnerDriver
from runner.runner import Runner
from runner.sessions import SqlSessions
from runner.studio.model import Place, StudioRun
from runner.studio.seats import Seats
from runner.studio.targets import Known, Target, Targets


class Studio:
    """One store in the browser. `url` is shown without its password; `refused`: why runs may not be stepped and
    changed, with what would allow it."""

    def __init__(
        self, store: SqlCheckpoints, url: str, targets: Targets, refused: str | None, group: TaskGroup
    ) -> None:
        self.store, self.url, self.targets = store, redacted(url), targets
        self._url = url
        self.why_read_only = refused
        self.seats = Seats(group)
        self._executors: dict[int, Executor] = {}

    def executor(self, target: Target) -> Executor:
        """An executor of a graph that was given, on the store."""
        known = self._executors.get(id(target))
        if known is None:
            known = self._executors[id(target)] = Executor(target.graph, self.store, self.targets.engine)
        return known

    async def find(self, query: RunQuery) -> list[RunInfo]:
        """The runs that are wanted, newest first. Raises LoadError."""
        return await self.store.find_runs(query)

    async def info(self, lineage: str, namespace: str) -> RunInfo | None:
        """How a run stands; None if nothing is stored of it."""
        for found in await self.find(RunQuery(prefix=lineage, text=lineage, limit=200)):
            if (found.lineage, found.namespace) == (lineage, namespace):
                return found
        return None

    async def run(self, place: Place, page: str) -> StudioRun:
        """A page's own view of a run; opened. Raises CheckpointNotFound for a lineage, frame or checkpoint that isn't
        there."""
        if place.namespace == "" and place.checkpoint is None:
            place = await self._root_of(place)
        headers = await self.store.history(place.lineage, place.namespace, limit=1)
        if not headers:
            known = [info.lineage for info in await self.find(RunQuery(limit=200))]
            raise CheckpointNotFound(f"nothing is stored of '{place.lineage}': {alternatives(place.lineage, known)}")
        known_graph = await self.targets.of(self.store, headers[0].fingerprint, place.namespace)
        run = StudioRun(self, place, known_graph, page)
        await run.open(place.checkpoint)
        return run

    async def session_for(self, run: StudioRun) -> DebugSession | None:
        """The debug session of a run for a page; None if its graph isn't known, or another page sits at it."""
        known, place = run.known, (run.lineage, run.namespace)
        if known.graph is None:
            return None
        return await self.seats.take(place, run.page, lambda: self._opened(known, place))

    async def start(self, target: Target, lineage: str, input: Any, page: str) -> None:
        """Begin a run, held before its first step, for the next page on it. `lineage` of an agent's run is that of a
        session (see `session_lineage`). Raises UsageError, and what `Executor.run` raises."""
        if self.why_read_only:
            raise UsageError(f"read-only: {self.why_read_only}")
        place = (lineage, target.namespace)
        session = await self.seats.take(place, page, lambda: self._opened(Known(target.graph, target), place))
        if session is None:
            raise UsageError(f"another page has run '{lineage}' open")
        try:
            await session.start(input)
        finally:
            self.seats.free(place, page)

    @asynccontextmanager
    async def _opened(self, known: Known, place: tuple[str, str]) -> AsyncIterator[DebugSession]:
        """A session, and what it stands on. Without the graph's code, and for a frame of an agent that is no session's,
        it only looks."""
        (lineage, namespace), target = place, known.target
        async with AsyncExitStack() as stack:
            driver: Driver | None = None
            if target is not None and target.agent is not None:
                driver = await self._agent_driver(stack, target.agent, lineage)
            elif target is not None:
                driver = ExecutorDriver(self.executor(target), lineage, namespace)
            read_only = driver is None or self.why_read_only is not None
            if driver is None:
                assert known.graph is not None
                driver = ExecutorDriver(Executor(known.graph, self.store), lineage, namespace)
            yield await stack.enter_async_context(DebugSession(driver, read_only=read_only))

    async def _agent_driver(self, stack: AsyncExitStack, agent: GraphAgent, lineage: str) -> Driver | None:
        parts = [unquote(part) for part in lineage.split("/")]
        if len(parts) != 3 or session_lineage(SessionKey(*parts)) != lineage:
            return None
        app, user, session = parts
        sessions = SqlSessions(self._url)
        stack.push_async_callback(sessions.aclose)
        runner = await stack.enter_async_context(Runner(app, agent, sessions=sessions, checkpoints=self.store))
        return RunnerDriver(runner, agent, user, session)

    def free(self, run: StudioRun) -> None:
        """The page of a run is gone."""
        self.seats.free((run.lineage, run.namespace), run.page)

    async def _root_of(self, place: Place) -> Place:
        """Where a lineage has no rows without a namespace, as that of an agent, the frame that it has."""
        spaces = [name for name in await self.store.namespaces(place.lineage) if "@" not in name]
        if spaces and "" not in spaces:
            return Place(place.lineage, spaces[0], place.checkpoint, place.node)
        return place
