"""Who may speak to the studio: checks of every request and websocket before a page sees it.

A browser sends whatever any web page tells it to, so even on the loopback interface three things are checked: the Host
header must not be a foreign name (DNS rebinding: a name of the attacker's that leads to this machine), a websocket or a
change must come from a page of the studio itself (the Origin header), and with a token every request has to have it.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import socket
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from graphagent.errors import UsageError
from runner.loopback import is_loopback

TOKEN_VARIABLE = "GRAPHAGENT_STUDIO_TOKEN"
_SAFE = ("GET", "HEAD", "OPTIONS")
_HEADERS = {
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}


def checked_binding(host: str, token: str | None) -> None:
    """Raises UsageError for an address that others can reach without a token."""
    if not is_loopback(host) and not token:
        raise UsageError(
            f"'{host}' can be reached from other machines: give --token (or set {TOKEN_VARIABLE}), or bind to 127.0.0.1"
        )


class Access:
    """The checks, as ASGI middleware. `host`: the address that the studio is bound to; `token`: what has to be shown
    once in the query (`?token=...`), and is then kept in a cookie that scripts can't read."""

    def __init__(self, app: ASGIApp, *, host: str, port: int, token: str | None) -> None:
        self.app, self.token = app, token
        self._names = {"localhost", host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()}
        self._cookie = f"graphagent_studio_{port}"  # cookies don't tell ports apart

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on if it may pass."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self.app(scope, receive, _with_headers(send) if scope["type"] == "http" else send)
        elif scope["type"] == "websocket":
            await WebSocketClose(1008, "refused")(scope, receive, send)
        else:
            await refusal(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._knows(host):
            return PlainTextResponse(f"the studio doesn't answer to the name '{host}'; use its address", 421)
        origin = headers.get("origin")
        changes = scope["type"] == "websocket" or scope["method"] not in _SAFE
        if changes and origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return PlainTextResponse(f"a page of '{origin}' may not speak to the studio", 403)
        return None if self.token is None else self._unless_shown(scope, headers)

    def _knows(self, host: str) -> bool:
        """An address can't be rebound; a name must be one of this machine's."""
        name = urlsplit(f"//{host}").hostname or ""
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return True

    def _unless_shown(self, scope: Scope, headers: Headers) -> Response | None:
        assert self.token is not None
        wanted = hmac.new(self.token.encode(), b"graphagent studio", hashlib.sha256).hexdigest()
        if _same(_cookies(headers).get(self._cookie, ""), wanted):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        shown = [value for name, value in query if name == "token"]
        if scope["type"] != "http" or not any(_same(value, self.token) for value in shown):
            return PlainTextResponse("the studio wants its token: open the address that it printed", 401)
        path = scope.get("raw_path", scope["path"].encode()).decode("latin-1").partition("?")[0].lstrip("/\\")
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        answer = RedirectResponse(f"/{path}?{rest}" if rest else f"/{path}", 303)
        answer.set_cookie(self._cookie, wanted, httponly=True, samesite="lax", path="/")
        return answer


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _cookies(headers: Headers) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in headers.getlist("cookie"):
        try:
            found |= {name: part.value for name, part in SimpleCookie(text).items()}
        except CookieError:
            continue
    return found


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_HEADERS)
        await send(message)

    return wrapped
