"""`graphagent serve`: where it binds, whom it lets in, what web pages may do, and what it says of misuse."""

from __future__ import annotations

import subprocess
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from support.serving import AGENTS, COMMAND, Server, served

from graphagent import LLMAgent
from graphagent.errors import UsageError
from graphagent.models import ScriptedModel
from runner import Runner
from runner.servers.access import Access, Identity, checked_binding, token_auth
from runner.servers.app import make_app
from runner.servers.limits import ServerLimits
from runner.servers.openai.parameters import GenerationLimits
from runner.servers.openai.part import OpenAIServer

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--host", "0.0.0.0"), "give --token"),
        (("--host", "::"), "give --token"),
        (("--token", "x", "--auth", "a:b"), "were both given"),
        (("--token", ""), "--token is empty"),
        (("--auth", f"{AGENTS}:answer"), "not an async function"),
        (("--auth", f"{AGENTS}"), "names no function"),
        (("--parameter", "temprature"), "did you mean 'temperature'?"),
        (("--host", "no.such.host.invalid", "--token", "x"), "can't listen"),
    ],
)
def test_misuse_is_told(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    """The command ends with status 2 and says the mend, before anything is served."""
    command = [COMMAND, "serve", f"{AGENTS}:bob", "--port", "0", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_port_that_is_taken(server: Server, tmp_path: Path) -> None:
    """It is an error that names the port."""
    port = server.url.rpartition(":")[2]
    command = [COMMAND, "serve", f"{AGENTS}:bob", "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 2
    assert f"port {port}" in done.stderr


def test_web_pages_are_kept_out(server: Server) -> None:
    """A page of another origin gets nothing, nor does one that has bound its own name to this address."""
    for path in ("/v1/models", "/healthz"):
        assert httpx.get(f"{server.url}{path}", headers={"Origin": "https://evil.example"}).status_code == 403
        assert httpx.get(f"{server.url}{path}", headers={"Host": "evil.example"}).status_code == 421
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    preflight = httpx.options(f"{server.base}/chat/completions", headers=asked)
    assert preflight.status_code == 403
    assert "access-control-allow-origin" not in preflight.headers


def test_a_page_that_is_allowed(tmp_path: Path) -> None:
    """With --cors the pages of that origin may ask, and others may not; with --token they have to show it too."""
    with served(tmp_path, "bob", "--cors", "https://app.example", "--token", "key") as up:
        asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": "authorization,content-type,x-session-id"}  # fmt: skip
        preflight = httpx.options(f"{up.base}/chat/completions", headers=asked)
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, asked["Origin"])
        page = {"Origin": asked["Origin"]}
        assert up.chat("hi", page).status_code == 401
        answer = up.chat("hi", page | {"Authorization": "Bearer key"})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, asked["Origin"])
        assert up.chat("hi", {"Origin": "https://app.example.evil", "Authorization": "Bearer key"}).status_code == 403


def test_a_server_for_other_machines(tmp_path: Path) -> None:
    """With a token it binds to every address; whoever has it is the one user, whatever name the server is called by."""
    with served(tmp_path, "bob", "--host", "0.0.0.0", "--token", "key") as up:
        url = up.url.replace("0.0.0.0", "127.0.0.1")
        key = {"Authorization": "bearer key", "Host": "agents.example"}
        assert httpx.get(f"{url}/v1/models", headers=key).status_code == 200
        assert httpx.get(f"{url}/v1/models").status_code == 401
        assert httpx.get(f"{url}/v1/models", headers={"Authorization": "Bearer kéy".encode()}).status_code == 401


def test_the_bind_rule() -> None:
    """Only addresses of this machine need no hook."""
    for host in ("127.0.0.1", "127.0.0.9", "localhost", "::1"):
        checked_binding(host, None)
    checked_binding("0.0.0.0", token_auth("x"))
    for host in ("0.0.0.0", "::", "10.0.0.1", "example"):
        with pytest.raises(UsageError, match="--token"):
            checked_binding(host, None)


async def test_mounted_by_hand() -> None:
    """The app is made of parts around a Runner, with a hook of one's own; an identity without a user is nobody."""

    async def hook(request: Request) -> Identity | None:
        return Identity(request.headers.get("x-user", ""))

    agent = LLMAgent("echo", ScriptedModel(lambda request: "yes"))
    async with Runner("desk", agent) as runner:
        part = OpenAIServer(model="desk-agent")
        app = make_app(runner, [part], access=Access(hook, hosts=()), limits=ServerLimits(body_bytes=200))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://desk") as client:
            body = {"model": "desk-agent", "messages": [{"role": "user", "content": "hi"}]}
            path = "/v1/chat/completions"
            assert (await client.post(path, json=body)).status_code == 401
            answer = await client.post(path, json=body, headers={"x-user": "ann", "x-session-id": "s"})
            assert answer.json()["choices"][0]["message"]["content"] == "yes"
            assert (
                await client.post(path, json={**body, "user": "x" * 200}, headers={"x-user": "a"})
            ).status_code == 413
        assert [one.id for one in await runner.sessions.list("desk", "ann")] == ["s"]


def test_settings_that_make_no_sense() -> None:
    """Wrong settings are refused when they are made."""
    with pytest.raises(UsageError, match="body_bytes is 0"):
        ServerLimits(body_bytes=0)
    with pytest.raises(UsageError, match="on_leave='stay'"):
        OpenAIServer("stay")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="did you mean 'top_p'"):
        GenerationLimits(("top_q",))
