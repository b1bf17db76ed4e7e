"""The routes of the OpenAI-compatible server."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from graphagent.errors import UsageError, alternatives
from runner.servers.access import Identity
from runner.servers.app import ServerContext
from runner.servers.limits import json_body
from runner.servers.openai.errors import ApiError, api_error
from runner.servers.openai.parameters import GenerationLimits
from runner.servers.openai.prepare import check_model, prepared
from runner.servers.openai.respond import completed, streamed
from runner.servers.streaming import unless_left

OnLeave = Literal["cancel", "detach"]
Handler = Callable[[Request, Identity], Awaitable[Response]]
SESSION_HEADER = "x-session-id"


@dataclass(frozen=True, slots=True)
class OpenAIServer:
    """The part of a server that speaks the OpenAI chat protocol. `on_leave`: what becomes of a run whose client closes
    the connection before the end: it is cancelled, or goes on (`detach`). `generation`: what clients may ask of the
    models. `model`: the name under which the agent is listed; None: its own. Raises UsageError for another `on_leave`.
    """

    on_leave: OnLeave = "cancel"
    generation: GenerationLimits = field(default_factory=GenerationLimits)
    model: str | None = None

    def __post_init__(self) -> None:
        if self.on_leave not in get_args(OnLeave):
            known = alternatives(str(self.on_leave), get_args(OnLeave))
            raise UsageError(f"on_leave={self.on_leave!r} is unknown: {known}")

    def routes(self, context: ServerContext) -> Sequence[BaseRoute]:
        """`/v1/models`, `/v1/models/NAME` and `/v1/chat/completions`; what else is below `/v1` is 404 in the API's own
        shape."""
        name = self.model or context.agent_name
        listed = {"id": name, "object": "model", "created": int(time.time()), "owned_by": context.runner.app_name}

        async def models(request: Request, user: Identity) -> Response:
            return JSONResponse({"object": "list", "data": [listed]})

        async def model(request: Request, user: Identity) -> Response:
            check_model(request.path_params["name"], name)
            return JSONResponse(listed)

        async def chat(request: Request, user: Identity) -> Response:
            return await self._chat(context, name, request, user)

        async def unknown(request: Request, user: Identity) -> Response:
            raise ApiError(f"there is no '{request.method} {request.url.path}' here", status=404, code="unknown_url")

        ways: list[tuple[str, str, Handler]] = [
            ("/v1/models", "GET", models),
            ("/v1/models/{name:path}", "GET", model),
            ("/v1/chat/completions", "POST", chat),
            ("/v1/chat/completions/", "POST", chat),
        ]
        return [
            *(Route(path, _answered(context, handler, method)) for path, method, handler in ways),
            Route("/v1/{rest:path}", _answered(context, unknown, None)),
        ]

    async def _chat(self, context: ServerContext, name: str, request: Request, user: Identity) -> Response:
        body = await json_body(request, context.limits)
        session = request.headers.get(SESSION_HEADER)
        work = await prepared(context, body, name, user, session, self.generation, detached=self.on_leave == "detach")
        if work.stream:
            return streamed(context, work)
        return await unless_left(request.receive, lambda: completed(context, work)) or Response(status_code=499)


def _answered(context: ServerContext, handler: Handler, method: str | None) -> Any:
    """A handler as an endpoint: it knows who asks, and every error has the API's shape."""
    allowed = [method] if method is not None else None

    @wraps(handler)
    async def endpoint(request: Request) -> Response:
        try:
            if allowed is not None and request.method not in (*allowed, *(["HEAD"] if method == "GET" else [])):
                raise ApiError(f"'{request.method}' is not allowed here; send {method}", status=405)
            user = await context.access.identify(request)
            if user is None:
                raise ApiError("this server wants its key: send 'Authorization: Bearer KEY'", status=401,
                               code="invalid_api_key")  # fmt: skip
            return await handler(request, user)
        except Exception as error:
            return api_error(error).response()

    return _AnyMethod(endpoint)


class _AnyMethod:
    """An endpoint for all methods: a function would get its own alone, and others an answer in another shape."""

    def __init__(self, endpoint: Callable[[Request], Awaitable[Response]]) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._endpoint(Request(scope, receive, send))
        await response(scope, receive, send)
