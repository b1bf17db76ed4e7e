"""Who may speak to the studio: names, origins, the token, and where it may listen."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from browser import COMMAND, environment, page_on, studio
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from graphagent.errors import UsageError
from runner.studio.access import Access, checked_binding, is_loopback


async def _hello(request: object) -> PlainTextResponse:
    return PlainTextResponse("hello")


async def _socket(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("hello")
    await socket.close()


def client(token: str | None = None, host: str = "127.0.0.1") -> TestClient:
    """A client of a small app behind the checks."""
    routes = [Route("/{path:path}", _hello, methods=["GET", "POST"]), WebSocketRoute("/ws", _socket)]
    checked = Access(Starlette(routes=routes), host=host, port=8080, token=token)
    return TestClient(checked, base_url="http://127.0.0.1:8080", follow_redirects=False)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200),
        ("localhost:8080", 200),
        ("[::1]:8080", 200),
        ("192.168.1.7:8080", 200),
        ("LOCALHOST:8080", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:8080", 421),
        ("localhost.evil.example", 421),
        ("", 421),
    ],
)
def test_a_name_that_is_not_ours_is_refused(host: str, status: int) -> None:
    """An address can't be rebound, a name can: only those of this machine are answered."""
    assert client().get("/", headers={"host": host}).status_code == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        ("http://127.0.0.1:8080", 200),
        ("http://127.0.0.1:9999", 403),
        ("https://evil.example", 403),
        ("null", 403),
    ],
)
def test_changes_come_from_pages_of_the_studio_only(origin: str | None, status: int) -> None:
    """What isn't only read, and every websocket, is refused for a page of another origin."""
    headers = {} if origin is None else {"origin": origin}
    assert client().post("/", headers=headers).status_code == status
    if status == 200:
        with client().websocket_connect("/ws", headers={"host": "127.0.0.1:8080", **headers}) as socket:
            assert socket.receive_text() == "hello"
    else:
        with (
            pytest.raises(WebSocketDisconnect),
            client().websocket_connect("/ws", headers={"host": "127.0.0.1:8080", **headers}),
        ):
            pass


def test_the_token_is_shown_once_and_kept_in_a_cookie() -> None:
    """The address with the token leads to the same one without it, and the cookie that it sets opens pages and sockets;
    the cookie isn't the token, and no script can read it."""
    with client("s3cret") as web:
        assert web.get("/run/a%2Fb").status_code == 401
        assert web.get("/?token=wrong").status_code == 401
        with pytest.raises(WebSocketDisconnect), web.websocket_connect("/ws", headers={"host": "127.0.0.1:8080"}):
            pass
        moved = web.get("/run/a%2Fb?cp=a&token=s3cret&x=")
        assert (moved.status_code, moved.headers["location"]) == (303, "/run/a%2Fb?cp=a&x=")
        cookie = moved.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert "s3cret" not in cookie
        assert web.get("/run/a%2Fb").status_code == 200
        shown = {"host": "127.0.0.1:8080", "cookie": cookie.partition(";")[0]}
        with web.websocket_connect("/ws", headers=shown) as socket:
            assert socket.receive_text() == "hello"


def test_a_path_that_looks_like_a_host_leads_nowhere_else() -> None:
    """The way back after the token is shown is a path of the studio, whatever was asked for."""
    moved = client("t").get("http://127.0.0.1:8080//evil.example/x?token=t")
    assert moved.headers["location"] == "/evil.example/x"


def test_pages_may_not_be_framed_and_tell_nobody_where_they_are() -> None:
    """Every answer forbids frames, and a link to elsewhere doesn't give the address, with its token, away."""
    headers = client().get("/").headers
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.9.9.9", True), ("0.0.0.0", False), ("box", False)],
)
def test_others_can_reach_it_only_with_a_token(host: str, loopback: bool) -> None:
    """An address that isn't the loopback interface needs a token; the message says how to give one."""
    assert is_loopback(host) is loopback
    checked_binding(host, "token")
    if loopback:
        checked_binding(host, None)
    else:
        with pytest.raises(UsageError, match=f"'{host}' can be reached from other machines: give --token"):
            checked_binding(host, None)


def test_a_browser_opens_the_printed_address(launched: Any, db: str) -> None:
    """With a token the printed address opens the pages, and their sockets; without it nothing is shown."""
    import studio_graphs
    from browser import fill

    fill(db, studio_graphs.order, {}, "order-1")
    with studio(db, "--token", "let me in") as served:
        assert httpx.get(served.at("/")).status_code == 401
        with page_on(launched, served.url) as page:
            assert page.locator("tbody tr").count() == 1
            assert "token" not in page.url


def test_the_command_refuses_what_it_can_not_serve(db: str, tmp_path: Any) -> None:
    """A store that isn't there, and an address that others can reach without a token, are misuse."""
    import subprocess

    def call(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [COMMAND, "studio", *words, "--json", "--no-browser"],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=60,
            cwd=tmp_path,
        )
        return done.returncode, json.loads(done.stdout)["error"]["message"]

    assert call("--db", db)[0] == 2
    (tmp_path / "runs.db").touch()
    status, message = call("--db", db, "--host", "0.0.0.0")
    assert (status, "GRAPHAGENT_STUDIO_TOKEN" in message) == (2, True)
