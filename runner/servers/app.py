"""One ASGI app from the protocols that a server speaks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute

from runner.runner import Runner
from runner.servers.access import Access, Gate
from runner.servers.health import health_routes
from runner.servers.limits import RunSlots, ServerLimits


@dataclass(frozen=True, slots=True)
class ServerContext:
    """What a part is given. `agent_name`: of the Runner's own agent; `slots`: counts the runs of all parts."""

    runner: Runner
    agent_name: str
    access: Access
    limits: ServerLimits
    slots: RunSlots


class ServerPart(Protocol):
    """A protocol that a server speaks."""

    def routes(self, context: ServerContext) -> Sequence[BaseRoute]:
        """Its routes. Each asks `context.access.identify` who sends a request, before anything else."""
        ...


@runtime_checkable
class LivingPart(ServerPart, Protocol):
    """A part that does something beside its requests while the server is up, and may speak over websockets."""

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Entered before the first request, left after the last."""
        ...


def make_context(runner: Runner, access: Access | None = None, limits: ServerLimits | None = None) -> ServerContext:
    """What the parts of one app share."""
    name = runner.agent if isinstance(runner.agent, str) else runner.agent.name
    limits = limits or ServerLimits()
    return ServerContext(runner, name, access or Access(), limits, RunSlots(runner, limits))


def make_app(
    runner: Runner,
    parts: Sequence[ServerPart],
    *,
    access: Access | None = None,
    limits: ServerLimits | None = None,
    context: ServerContext | None = None,
) -> Starlette:
    """The app with the routes of all parts, and those of health. It doesn't close the Runner. `access`: None lets
    everybody in as one user, which is for an address that only this machine reaches; `context`: instead of `access` and
    `limits`, for whoever looks at its counts."""
    context = context or make_context(runner, access, limits)
    routes: list[BaseRoute] = [*health_routes(runner)]
    for part in parts:
        routes += part.routes(context)
    gate = Middleware(Gate, origins=context.access.origins, hosts=context.access.hosts)
    pages = Middleware(
        CORSMiddleware,
        allow_origins=context.access.origins,
        allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type", "x-session-id"],
        expose_headers=["x-session-id"],
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for part in parts:
                if isinstance(part, LivingPart):
                    await stack.enter_async_context(part.lifespan())
            yield

    return Starlette(routes=routes, middleware=[gate, *([pages] if context.access.origins else [])], lifespan=lifespan)
