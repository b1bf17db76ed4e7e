"""Who may speak to a server, and as which user: the hook that says so, and the checks before it.

A browser sends whatever any web page tells it to, also to an address that only this machine reaches. So a request that
comes from a page (it has an Origin header) is refused unless that origin is allowed, and so is one whose Host header is
a name that isn't known (DNS rebinding: a name of the attacker's that leads to this machine). Pages that the server has
served itself are of its own origin, and pass.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from graphagent.errors import UsageError
from runner.loopback import is_loopback

TOKEN_VARIABLE = "GRAPHAGENT_SERVE_TOKEN"
USER = "user"
"""Whose the sessions are where everybody is the same user: without a hook, and with one token."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who sends a request. `user_id`: whose sessions it may reach, and no others."""

    user_id: str


Authenticate = Callable[[Request], Awaitable[Identity | None]]
"""The hook: who sends a request, None if nobody that may. It may read headers, the address, cookies; not the body."""


def token_auth(token: str, user_id: str = USER) -> Authenticate:
    """A hook for one token, shown as `Authorization: Bearer TOKEN`; whoever has it is that user."""

    async def authenticate(request: Request) -> Identity | None:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), token.encode()):
            return Identity(user_id)
        return None

    return authenticate


async def anybody(request: Request) -> Identity | None:
    """The hook of a server that only this machine reaches: everybody is the same user."""
    return Identity(USER)


@dataclass(frozen=True, slots=True)
class Access:
    """Who may speak to a server. `authenticate`: the hook; `origins`: of web pages that may, such as
    `https://app.example`; none by default. `hosts`: names by which the server is reached beside `localhost` and
    addresses; empty: any, which is for servers that have a hook."""

    authenticate: Authenticate = anybody
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ("localhost",)

    async def identify(self, request: Request) -> Identity | None:
        """Who sends a request; None if nobody that may."""
        found = await self.authenticate(request)
        return found if found is not None and found.user_id else None


def checked_binding(host: str, authenticate: Authenticate | None) -> None:
    """Raises UsageError for an address that others can reach, without a hook that says who they are."""
    if authenticate is None and not is_loopback(host):
        raise UsageError(
            f"'{host}' can be reached from other machines: give --token (or set {TOKEN_VARIABLE}) or --auth "
            f"MODULE:HOOK, or bind to 127.0.0.1"
        )


class Gate:
    """The checks before the hook, as ASGI middleware: the Host header, and the Origin header of web pages."""

    def __init__(self, app: ASGIApp, *, origins: Collection[str], hosts: Collection[str]) -> None:
        self.app = app
        self._origins = {origin.lower().rstrip("/") for origin in origins}
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on if it may pass."""
        refusal = self._refusal(Headers(scope=scope)) if scope["type"] in ("http", "websocket") else None
        if refusal is not None and scope["type"] == "websocket":
            await WebSocketClose(1008, "refused")(scope, receive, send)
            return
        await (self.app if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if self._hosts and not self._knows(host):
            return PlainTextResponse(f"this server doesn't answer to the name {host!r}; name it with --host-name", 421)
        origin = headers.get("origin")
        own = origin is not None and urlsplit(origin).netloc.lower() == host.lower() != ""
        if origin is not None and not own and origin.lower().rstrip("/") not in self._origins:
            return PlainTextResponse(f"pages of {origin!r} may not speak to this server; allow them with --cors", 403)
        return None

    def _knows(self, host: str) -> bool:
        """An address can't be rebound; a name must be known."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
            ipaddress.ip_address(name)
        except ValueError:
            return host.rpartition(":")[0].lower() in self._hosts or host.lower() in self._hosts
        return True
