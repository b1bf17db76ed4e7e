"""The part of a server that has pages: a talk with the agent in the browser."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from graphagent.errors import NotFound, ServiceError
from graphagent.ledger import SessionKey
from runner.servers.access import Identity
from runner.servers.app import ServerContext

COOKIE = "graphagent_serve"
HOME = "/ui"


@dataclass(frozen=True, slots=True)
class ChatPages:
    """The pages below `/ui`, made with NiceGUI (extra `studio`). `token`: of a server that wants one: opened once as
    `/ui?token=...`, it is kept in a cookie that scripts can't read. Only one app of a process can have them."""

    token: str | None = None

    def routes(self, context: ServerContext) -> Sequence[BaseRoute]:
        """`/ui`, the files of talks below it, and what NiceGUI serves to its pages."""
        from runner.servers.ui.page import make_pages  # NiceGUI takes a second, and need not be installed

        pages = make_pages(context, self.identify)

        async def file(request: Request) -> Response:
            return await self._file(context, request)

        async def enter(request: Request) -> Response:
            return self._enter(request)

        return [
            Route("/ui/enter", enter),
            Route("/ui/file", file),
            Mount("/", pages),
        ]

    async def identify(self, context: ServerContext, request: HTTPConnection) -> Identity | None:
        """Who looks at a page: whom the server's hook knows, or who has shown the token."""
        if self.token is not None and hmac.compare_digest(request.cookies.get(COOKIE, ""), self._shown(self.token)):
            return Identity("user")
        return await context.access.identify(Request(dict(request.scope, type="http", method="GET")))

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """What the pages need while the server is up."""
        from runner.servers.ui.page import running

        async with running():
            yield

    def _enter(self, request: Request) -> Response:
        """Keep the token in a cookie, if it is the right one."""
        shown = request.query_params.get("token", "")
        if self.token is None or not hmac.compare_digest(shown.encode(), self.token.encode()):
            return PlainTextResponse("that is not this server's token", 401)
        answer = RedirectResponse(HOME, 303)
        answer.set_cookie(COOKIE, self._shown(self.token), httponly=True, samesite="strict", path="/")
        return answer

    @staticmethod
    def _shown(token: str) -> str:
        return hmac.new(token.encode(), b"graphagent serve", hashlib.sha256).hexdigest()

    async def _file(self, context: ServerContext, request: Request) -> Response:
        """An artifact of the user's session, to be kept and never to be run by the browser."""
        user = await self.identify(context, request)
        files = context.runner.services.artifacts
        if user is None:
            return PlainTextResponse("this server wants its token", 401)
        session, name, version = (request.query_params.get(one, "") for one in ("session", "name", "version"))
        key = SessionKey(context.runner.app_name, user.user_id, session)
        try:
            found = await files.load(key, name, int(version) if version.isdigit() else None) if files else None
        except (NotFound, ServiceError):
            found = None
        if found is None:
            return PlainTextResponse("there is no such file", 404)
        headers = {
            "content-disposition": f"attachment; filename*=UTF-8''{quote(name.removeprefix('user:'), safe='')}",
            "x-content-type-options": "nosniff",
            "content-security-policy": "sandbox",
        }
        return Response(found.data, media_type=found.mime_type, headers=headers)

