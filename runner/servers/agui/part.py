"""The routes of the AG-UI server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from graphagent.errors import InterruptedRunError, UsageError, alternatives
from graphagent.ledger import SessionKey
from runner.servers.access import Identity
from runner.servers.agui.capabilities import capabilities
from runner.servers.agui.errors import Refused, nothing_there, refusal
from runner.servers.agui.files import handed_out, newest
from runner.servers.agui.live import Buffer
from runner.servers.agui.prepare import Shared, prepared, questions
from runner.servers.agui.registry import OnConflict, Runs
from runner.servers.agui.request import checked_id, parsed
from runner.servers.agui.threads import MOST_LISTED, history, listed
from runner.servers.agui.work import Work
from runner.servers.app import ServerContext
from runner.servers.limits import json_body
from runner.servers.streaming import EventStream
from runner.tasks import start_task

OnLeave = Literal["detach", "cancel"]
Handler = Callable[[Request, Identity], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class AGUIServer:
    """The part of a server that speaks AG-UI 1.0 (extra `agui`), below `/agui`.

    `on_leave`: what becomes of a run whose client closes the connection: it goes on (`detach`), or is cancelled.
    `on_conflict`: what becomes of a run whose thread has one that goes on: it is refused (`reject`), waits (`queue`),
    or ends that one (`cancel_previous`). `seconds`: the longest that a run may take; None: no limit. `shown_state`:
    keys of the session's state that clients see; `taken_state`: keys of the state that clients send with which a run
    begins. `buffer`: what is kept of streams; `history`: events of a thread that are shown, the newest. Raises
    UsageError for other words and for numbers below 1.
    """

    on_leave: OnLeave = "detach"
    on_conflict: OnConflict = "reject"
    seconds: float | None = 3600.0
    shown_state: tuple[str, ...] = ()
    taken_state: tuple[str, ...] = ()
    buffer: Buffer = field(default_factory=Buffer)
    history: int = 1_000

    def __post_init__(self) -> None:
        for name, known in (("on_leave", get_args(OnLeave)), ("on_conflict", get_args(OnConflict))):
            if getattr(self, name) not in known:
                given = getattr(self, name)
                raise UsageError(f"{name}={given!r} is unknown: {alternatives(str(given), known)}")
        if self.history < 1 or (self.seconds is not None and self.seconds <= 0):
            raise UsageError(f"history={self.history} and seconds={self.seconds} have to be more than 0")

    def routes(self, context: ServerContext) -> Sequence[BaseRoute]:
        """All below `/agui`; what else is there is 404."""
        work = _Routes(self, context)
        thread, run = "/agui/threads/{thread}", "/agui/threads/{thread}/runs/{run}"
        ways: list[tuple[str, str, Handler]] = [
            ("/agui", "POST", work.run),
            ("/agui/", "POST", work.run),
            ("/agui/capabilities", "GET", work.capabilities),
            ("/agui/threads", "GET", work.threads),
            (thread, "GET", work.history),
            (f"{thread}/cancel", "POST", work.cancel),
            (f"{run}/events", "GET", work.events),
            (f"{thread}/artifacts", "GET", work.artifacts),
            (f"{thread}/artifacts/{{name:path}}", "GET", work.artifact),
            ("/agui/{rest:path}", "", work.unknown),
        ]
        return [Route(path, _Endpoint(context, method, handler)) for path, method, handler in ways]


class _Routes:
    """What is done at each route. A thread, a run, an artifact of another user is not there."""

    def __init__(self, options: AGUIServer, context: ServerContext) -> None:
        self._options, self._context, self._runner = options, context, context.runner
        self._shared = Shared(options.shown_state, options.taken_state, options.seconds)
        self._runs = Runs(context, options.on_conflict, options.shown_state, options.buffer)

    async def run(self, request: Request, user: Identity) -> Response:
        """A run as a stream of events."""
        asked = parsed(await json_body(request, self._context.limits), self._context.limits)
        work = await prepared(self._context, asked, user, self._shared)
        return _stream(lambda: self._events(work))

    async def _events(self, work: Work) -> AsyncGenerator[str, None]:
        """A run that takes a place of the server's, and what becomes of it when its reader leaves."""
        with self._context.slots.hold(work.request_id, work.key.user):
            run = await self._runs.begin(work)
            try:
                try:
                    await run.begun()
                except InterruptedRunError as error:
                    raise await self._interrupted(work.key) from error
                async for text in run.follow():
                    yield text
            finally:
                if self._options.on_leave == "cancel" and not run.over.is_set():
                    start_task(self._cancelled(work), f"cancel {work.request_id}")

    async def _cancelled(self, work: Work) -> None:
        await self._runner.cancel(work.request_id)

    async def _interrupted(self, key: SessionKey) -> Refused:
        asked = await questions(self._runner, key) or ()
        waiting = [{"id": one["id"], "key": one["key"]} for one in asked]
        keys = ", ".join(f"'{one['key']}' ({one['id']})" for one in waiting)
        return Refused(f"the thread waits for {keys}: answer with 'resume'", status=409, code="interrupted",
                       more={"pending": waiting})  # fmt: skip

    async def cancel(self, request: Request, user: Identity) -> Response:
        """End the run of a thread. Its stream ends with the outcome `cancelled`."""
        run = await self._runs.cancel(user.user_id, self._key(request, user).session)
        if run is None:
            raise nothing_there("run")
        return JSONResponse({"threadId": run.work.names.thread_id, "runId": run.work.names.run_id})

    async def events(self, request: Request, user: Identity) -> Response:
        """A run that goes on, or has ended lately, read from a number on."""
        run = self._runs.find(user.user_id, self._key(request, user).session, request.path_params["run"])
        if run is None:
            raise nothing_there("run")
        after = request.query_params.get("after", request.headers.get("last-event-id", "0"))
        if not (after.isascii() and after.isdigit() and len(after) < 16):
            raise Refused(f"{after[:40]!r} is the number of no event", param="after", code="bad_cursor")
        await run.begun()
        return _stream(lambda: run.follow(int(after)))

    async def threads(self, request: Request, user: Identity) -> Response:
        """The threads of the user."""
        given = request.query_params
        offset, limit = given.get("offset", "0"), given.get("limit", str(MOST_LISTED))
        return JSONResponse(await listed(self._context, self._runs, user.user_id, offset, limit))

    async def history(self, request: Request, user: Identity) -> Response:
        """A thread as a stream that shows it."""
        key = self._key(request, user)
        return _stream(lambda: history(self._context, self._runs, key, self._shared, self._options.history))

    async def artifacts(self, request: Request, user: Identity) -> Response:
        """The artifacts of a thread, with their newest versions."""
        key = self._key(request, user)
        await self._check_there(key)
        found = await newest(self._runner.services.artifacts, key)
        return JSONResponse({"artifacts": [{"name": name, "version": last} for name, last in found.items()]})

    async def artifact(self, request: Request, user: Identity) -> Response:
        """One version of an artifact, or its newest."""
        key = self._key(request, user)
        await self._check_there(key)
        name, version = request.path_params["name"], request.query_params.get("version")
        return await handed_out(self._runner.services.artifacts, key, name, version)

    async def capabilities(self, request: Request, user: Identity) -> Response:
        """What the agent can do."""
        return JSONResponse(capabilities(self._context, self._shared).model_dump(by_alias=True, mode="json"))

    async def unknown(self, request: Request, user: Identity) -> Response:
        """Anything else."""
        raise nothing_there("place")

    def _key(self, request: Request, user: Identity) -> SessionKey:
        try:
            thread = checked_id(request.path_params["thread"], "threadId", self._context.limits.session_id)
        except Refused as error:
            raise nothing_there("thread") from error
        return SessionKey(self._runner.app_name, user.user_id, thread)

    async def _check_there(self, key: SessionKey) -> None:
        if await self._runner.sessions.get(key, last=1) is None:
            raise nothing_there("thread")


def _stream(events: Callable[[], AsyncGenerator[str, None]]) -> EventStream:
    return EventStream(events, lambda error: refusal(error).response(), {})


class _Endpoint:
    """A handler for one method: it knows who asks, and every refusal has the same shape."""

    def __init__(self, context: ServerContext, method: str, handler: Handler) -> None:
        self._context, self._method, self._handler = context, method, handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(Request(scope, receive, send))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            if self._method and request.method not in (self._method, *(["HEAD"] if self._method == "GET" else [])):
                raise Refused(f"'{request.method}' is not allowed here; send {self._method}", status=405)
            user = await self._context.access.identify(request)
            if user is None:
                raise Refused("this server wants its key: send 'Authorization: Bearer KEY'", status=401)
            return await self._handler(request, user)
        except Exception as error:
            return refusal(error).response()
