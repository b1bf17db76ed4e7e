"""The command that steps through a run: debug."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import unquote

from anyio.from_thread import start_blocking_portal

from graphagent import Executor, MemoryCheckpoints, SqlCheckpoints
from graphagent.agents.graph_agent import GraphAgent
from graphagent.agents.invocation import Services
from graphagent.checkpoint import CheckpointStore
from graphagent.checkpoint.sql.urls import redacted
from graphagent.debug.driver import Driver, ExecutorDriver
from graphagent.debug.session import DebugSession
from graphagent.engine.frame import is_root
from graphagent.errors import UsageError
from graphagent.graph.compiled import CompiledGraph
from graphagent.ids import fresh_id
from graphagent.ledger import SessionKey
from runner.cli.agents import load_agent
from runner.cli.debug_options import DebugOptions
from runner.cli.exits import Exit
from runner.cli.opening import existing_store, known_lineage
from runner.cli.options import DB_VARIABLE
from runner.cli.output import Output
from runner.cli.target import load_graph
from runner.debugger.agent_driver import RunnerDriver
from runner.debugger.desk import Desk
from runner.debugger.reload import load_again
from runner.debugger.shell import Shell
from runner.runner import Runner
from runner.sessions import SqlSessions


def debug(options: DebugOptions, output: Output) -> int:
    """Open or start a run, then carry out commands."""
    subject = loaded(options.target)
    if not options.db:
        output.note(f"note: no --db and no {DB_VARIABLE}: the run is kept in memory, and is gone afterwards")
    with start_blocking_portal("asyncio") as portal, portal.wrap_async_context_manager(_desk(subject, options)) as desk:
        shell = Shell(desk, portal, output)
        if (status := shell.script([_first(options)], echo=False)) != Exit.COMPLETED:
            return status
        return shell.interactive() if options.command is None else shell.script(options.command)


def loaded(target: str) -> CompiledGraph | GraphAgent:
    """The graph or the agent that a target names. Raises UsageError for anything else."""
    try:
        return load_graph(target)
    except UsageError as problem:
        try:
            agent = load_agent(target)
        except UsageError:
            raise problem from None
        if not isinstance(agent, GraphAgent):
            raise UsageError(f"'{target}' is an agent that is no graph ({type(agent).__name__}): there are no steps in "
                             f"it to go through") from None  # fmt: skip
        return agent


def _first(options: DebugOptions) -> str:
    """The command that a session begins with."""
    if options.checkpoint is not None:
        return f"goto {shlex.quote(options.checkpoint)}"
    if options.message is not None:
        return f"start {shlex.quote(options.message)}"
    if options.input is not None:
        return f"start {shlex.quote(options.input)}"
    return "start" if options.lineage is None and options.session is None else "open"


@asynccontextmanager
async def _desk(subject: CompiledGraph | GraphAgent, options: DebugOptions) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        store: CheckpointStore = MemoryCheckpoints()
        services: Services | None = None
        if options.db:
            url = existing_store(options.db) if options.read_only else options.db
            store = await stack.enter_async_context(SqlCheckpoints(url))
        if isinstance(subject, GraphAgent):
            driver, services = await _agent(stack, subject, store, options)
        else:
            lineage, namespace = options.lineage or fresh_id(), options.namespace or ""
            if options.lineage is not None and options.input is None:
                await known_lineage(store, lineage)
                namespace = await _root_of(store, lineage) if options.namespace is None else namespace
            driver = ExecutorDriver(Executor(subject, store, options.engine.value), lineage, namespace)
        session = await stack.enter_async_context(DebugSession(driver, read_only=options.read_only))
        yield Desk(
            session,
            driver.executor,
            options.target,
            redacted(options.db) if options.db else "<in memory>",
            lambda: load_again(options.target, driver.executor.graph),
            services,
            options.as_json,
        )


async def _agent(
    stack: AsyncExitStack, agent: GraphAgent, store: CheckpointStore, options: DebugOptions
) -> tuple[Driver, Services]:
    sessions: SqlSessions | None = None
    if options.db:
        sessions = SqlSessions(options.db)
        stack.push_async_callback(sessions.aclose)
    key = SessionKey(options.app or agent.name, options.user, options.session or fresh_id())
    if options.lineage is not None:
        key = session_of(options.lineage)
    runner = await stack.enter_async_context(Runner(key.app, agent, sessions=sessions, checkpoints=store))
    return RunnerDriver(runner, agent, key.user, key.session), runner.services


def session_of(lineage: str) -> SessionKey:
    """The session that a lineage of an agent's runs belongs to. Raises UsageError."""
    parts = [unquote(part) for part in lineage.split("/")]
    if len(parts) != 3:
        raise UsageError(f"'{lineage}' is no lineage of a session: those of agents look like 'app/user/session'")
    return SessionKey(*parts)


async def _root_of(store: CheckpointStore, lineage: str) -> str:
    """The frame that a lineage begins with: that of an agent's run is called as the agent. Raises UsageError."""
    roots = [space for space in await store.namespaces(lineage) if is_root(space)]
    if "" in roots or len(roots) != 1:
        if roots and "" not in roots:
            raise UsageError(f"lineage '{lineage}' has runs of several agents: give --namespace, one of {roots}")
        return ""
    return roots[0]
