"""The command that serves an agent over HTTP."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import anyio

from graphagent import SqlCheckpoints
from graphagent.errors import UsageError
from runner.artifacts import InMemoryArtifacts, SqlArtifacts
from runner.cli.agents import load_agent
from runner.cli.exits import Exit
from runner.cli.options import DB_VARIABLE
from runner.cli.output import Output
from runner.cli.serve_options import ServeOptions
from runner.cli.target import load_module, load_value, split_target
from runner.runner import Runner
from runner.sessions import SqlSessions

if TYPE_CHECKING:
    from runner.servers.access import Access, Authenticate
    from runner.servers.app import ServerPart
    from runner.servers.limits import ServerLimits

PACKAGES = ("starlette", "uvicorn")


def serve(options: ServeOptions, output: Output) -> int:
    """Serve an agent until the process is told to stop."""
    serving = _serving()
    agent = load_agent(options.target)
    access = _access(options)
    parts = [PARTS[name](options) for name in _wanted(options)]
    limits = _limits(options)
    if not options.db:
        output.note(f"note: no --db and no {DB_VARIABLE}: sessions are forgotten when the server ends")

    def ready(address: str) -> None:
        document = {"url": address, "agent": agent.name, "protocols": _wanted(options)}
        where = "\n".join(f"  {name}: {address}{PATHS.get(name, '')}" for name in _wanted(options))
        output.line(document, f"serving '{agent.name}'\n{where}\nCtrl-C ends it")

    async def run() -> None:
        async with AsyncExitStack() as stack:
            services: dict[str, Any] = {}
            if options.db:
                services["checkpoints"] = await stack.enter_async_context(SqlCheckpoints(options.db))
                services["sessions"] = SqlSessions(options.db)
                stack.push_async_callback(services["sessions"].aclose)
                services["artifacts"] = SqlArtifacts(options.db)
                stack.push_async_callback(services["artifacts"].aclose)
            else:
                services["artifacts"] = InMemoryArtifacts()
            runner = await stack.enter_async_context(Runner(options.app or agent.name, agent, **services))
            place = serving.Place(options.host, options.port, options.grace)
            await serving.serve(runner, parts, access, limits, place, ready)

    anyio.run(run)
    return Exit.COMPLETED


def _serving() -> Any:
    """The module that serves, whose libraries need not be installed."""
    try:
        from runner.servers import serving
    except ModuleNotFoundError as error:
        if error.name not in PACKAGES:
            raise
        raise UsageError("serving needs Starlette and uvicorn: install graphagent[openai-server]") from error
    return serving


def _wanted(options: ServeOptions) -> list[str]:
    """The protocols that were named; the OpenAI one if none was."""
    return [name for name in PARTS if getattr(options, name)] or ["openai"]


def _access(options: ServeOptions) -> Access:
    from runner.servers.access import Access, anybody, checked_binding, token_auth

    if options.auth is not None and options.token is not None:
        raise UsageError("--token and --auth were both given: the hook says who may speak to the server; give one")
    hook: Authenticate | None = None
    if options.auth is not None:
        hook = _hook(options.auth)
    elif options.token is not None:
        if not options.token:
            raise UsageError("--token is empty: give a text that nobody guesses")
        hook = token_auth(options.token)
    checked_binding(options.host, hook)
    names = tuple(options.host_name or ())
    hosts = ("localhost", options.host, *names) if hook is None or names else ()
    return Access(hook or anybody, tuple(options.cors or ()), hosts)


def _hook(target: str) -> Authenticate:
    place, name = split_target(target)
    if not name:
        raise UsageError(f"--auth {target!r} names no function: write module:hook")
    found = load_value(load_module(place), target)
    if not inspect.iscoroutinefunction(found):
        raise UsageError(f"'{target}' is {found!r:.80}, not an async function from a request to an Identity or None")
    return cast("Authenticate", found)


def _openai(options: ServeOptions) -> ServerPart:
    from runner.servers.openai.parameters import PARAMETERS, GenerationLimits
    from runner.servers.openai.part import OpenAIServer

    allowed = PARAMETERS if options.parameter is None else tuple(options.parameter)
    generation = GenerationLimits(allowed, options.most_tokens)
    return OpenAIServer("cancel" if options.on_leave is None else options.on_leave.value, generation, options.model)


def _agui(options: ServeOptions) -> ServerPart:
    if find_spec("ag_ui") is None:
        raise UsageError("AG-UI needs its package: install graphagent[agui]")
    from runner.servers.agui.part import AGUIServer

    return AGUIServer("detach" if options.on_leave is None else options.on_leave.value)


def _ui(options: ServeOptions) -> ServerPart:
    from runner.servers.ui.part import ChatPages

    if find_spec("nicegui") is None:
        raise UsageError("pages need NiceGUI: install graphagent[studio]")
    return ChatPages(options.token)


PARTS: dict[str, Callable[[ServeOptions], ServerPart]] = {"openai": _openai, "agui": _agui, "ui": _ui}
"""Name of an option -> the part of the server that it wants; pages come last, since they take what no other takes."""

PATHS = {"openai": "/v1", "agui": "/agui", "ui": "/ui"}
"""Where each of them is."""


def _limits(options: ServeOptions) -> ServerLimits:
    from runner.servers.limits import ServerLimits

    return ServerLimits(
        body_bytes=options.most_bytes,
        concurrent_runs=options.most_runs,
        runs_per_user=options.most_runs_per_user,
    )
