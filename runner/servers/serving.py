"""Serves an app with uvicorn until the process is told to stop, and lets the runs that go on come to their end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio
import anyio.abc
import uvicorn

from runner.listening import QuietServer, address, bound
from runner.runner import Runner
from runner.servers.access import Access
from runner.servers.app import LivingPart, ServerContext, ServerPart, make_app, make_context
from runner.servers.limits import ServerLimits

AFTERWARDS = 15
"""Seconds in which the answers of runs that were cancelled go out, when the time for them is over."""
_LOOK = 0.1


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how a server is served. `port` 0: any that is free. `grace`: seconds that runs have to come to their
    end when the server stops; then they are cancelled, and can be resumed where there is a store."""

    host: str = "127.0.0.1"
    port: int = 0
    grace: float = 30.0


async def serve(
    runner: Runner,
    parts: Sequence[ServerPart],
    access: Access,
    limits: ServerLimits,
    place: Place,
    ready: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM; then no request is taken any more, and those that run have `grace` seconds. A
    second signal cancels them at once. The Runner is closed at the end.

    `ready` is called with the address. Raises UsageError for an address that can't be bound.
    """
    context = make_context(runner, access, limits)
    app = make_app(runner, parts, context=context)
    listener = bound("server", place.host, place.port)
    try:
        living = any(isinstance(part, LivingPart) for part in parts)
        config = uvicorn.Config(app, log_level="warning", lifespan="on", server_header=False,
                                ws="auto" if living else "none", ws_ping_interval=None,
                                timeout_graceful_shutdown=int(place.grace) + AFTERWARDS)  # fmt: skip
        server = QuietServer(config)
        server.ready = lambda: ready(address(place.host, listener))
        async with anyio.create_task_group() as group:
            await group.start(_stop_at_signal, server, context, place.grace)
            await server.serve([listener])
            with anyio.move_on_after(place.grace):
                await _settled(context)
            await context.runner.close()
            group.cancel_scope.cancel()
    finally:
        listener.close()


async def _settled(context: ServerContext) -> None:
    """Returns when no run goes on without a reader."""
    while True:
        if not context.slots.detached():
            return
        await anyio.sleep(_LOOK)


async def _stop_at_signal(
    server: uvicorn.Server,
    context: ServerContext,
    grace: float,
    *,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    async with anyio.create_task_group() as group:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for _ in signals:
                wait = 0.0 if server.should_exit else grace
                server.should_exit = True
                group.start_soon(_end_runs, context, wait)


async def _end_runs(context: ServerContext, wait: float) -> None:
    """Runs that are cancelled tell their readers so, which a connection that is closed could not."""
    await anyio.sleep(wait)
    await context.runner.close()
