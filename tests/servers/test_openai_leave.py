"""Clients that leave in the middle, and more requests than may run."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import httpx
import pytest
from openai import AsyncOpenAI, OpenAI
from support.serving import ANN, EVE, Server, lines, served, until

pytestmark = pytest.mark.anyio
SESSION = {"X-Session-Id": "left"}


def begun(client: OpenAI, text: str) -> object:
    """A stream of which the first piece has come."""
    said = [{"role": "user", "content": text}]
    stream = client.chat.completions.create(model="bob", messages=said, stream=True, extra_headers=SESSION)  # type: ignore[call-overload]
    next(iter(stream))
    return stream


@pytest.mark.parametrize("how", ["stream", "whole"])
def test_a_client_that_leaves_cancels_its_run_dev_case_C084(server: Server, tmp_path: Path, how: str) -> None:
    """The connection is closed while a tool works: it stops, and the session takes the next message at once."""
    file = tmp_path / "ticks"
    session = {"X-Session-Id": f"leaves-{how}"}
    body = {"model": "bob", "messages": [{"role": "user", "content": f"tick {file}"}], "stream": how == "stream"}
    with httpx.Client(timeout=1) as client:
        try:
            with client.stream("POST", f"{server.base}/chat/completions", json=body, headers=session) as answer:
                assert how == "stream"
                rows = answer.iter_lines()
                next(rows)
                until(lambda: lines(file) > 1)
        except httpx.ReadTimeout:
            assert how == "whole"
    until(lambda: server.chat("hi", session).status_code == 200)
    count = lines(file)
    time.sleep(0.3)
    assert lines(file) == count
    assert not file.with_name("ticks.end").exists()


def test_partial_text_is_kept_dev_case_C080(tmp_path: Path) -> None:
    """What a client had read when it left stands in the session, and the rest was never made."""
    with served(tmp_path, "slow") as up:
        body = {"model": "slow", "messages": [{"role": "user", "content": "long"}], "stream": True}
        with httpx.stream("POST", f"{up.base}/chat/completions", json=body, headers=SESSION) as answer:
            rows = answer.iter_lines()
            assert sum("word" in next(rows) for _ in range(9)) >= 3
        found: list[httpx.Response] = []

        def free() -> bool:
            found.append(up.chat("roles", SESSION, model="slow"))
            return found[-1].status_code == 200

        until(free)
        assert 3 <= found[-1].json()["choices"][0]["message"]["content"].count("word") < 50


def test_two_hundred_clients_that_leave_dev_case_C083(tmp_path: Path) -> None:
    """Each leaves in the middle of its answer; no run, place or connection stays behind, so the next one is served."""
    with served(tmp_path, "bob", "--most-runs", "4") as up, httpx.Client(timeout=30) as client:
        body = {"model": "bob", "messages": [{"role": "user", "content": f"tick {tmp_path / 'ticks'}"}], "stream": True}
        for _ in range(200):
            with client.stream("POST", f"{up.base}/chat/completions", json=body) as answer:
                next(answer.iter_raw())
        until(lambda: up.chat("hi").status_code == 200)
        time.sleep(0.2)
        assert up.chat("long", stream=True).text.endswith("data: [DONE]\n\n")


def test_a_run_may_go_on_without_its_reader_services_case_66(tmp_path: Path) -> None:
    """By setting the run goes on and is stored; its session is busy until it ends; it counts among the runs."""
    words = ("--on-leave", "detach", "--db", "d.db", "--most-runs", "1")
    with served(tmp_path, "bob", *words, SERVED_TICKS="20") as up:
        file = tmp_path / "ticks"
        with OpenAI(base_url=up.base, api_key="x", max_retries=0) as client:
            begun(client, f"tick {file}").close()  # type: ignore[attr-defined]
        assert up.chat("hi").status_code == 429
        until(file.with_name("ticks.end").exists)
        until(lambda: up.chat("hello", SESSION).status_code == 200)
        assert up.chat("roles", SESSION).json()["choices"][0]["message"]["content"].count("it says: ticked") == 1


def test_a_busy_session(server: Server, tmp_path: Path) -> None:
    """A second request in a session is 409 while the first one runs, services case 59; other sessions are free."""
    with OpenAI(base_url=server.base, api_key="x", max_retries=0) as client:
        stream = begun(client, f"tick {tmp_path / 'ticks'}")
        answer = server.chat("hi", SESSION)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "session_busy")
        assert server.chat("hi", SESSION, stream=True).status_code == 409
        assert server.chat("hi").status_code == 200
        stream.close()  # type: ignore[attr-defined]
    until(lambda: server.chat("hi", SESSION).status_code == 200)


def test_more_runs_than_allowed(tmp_path: Path) -> None:
    """One user's runs are bounded, and another user is not held up by them; the SDK is told when to try again."""
    hook = ("--auth", f"{Path(__file__).with_name('served.py')}:two_users", "--most-runs-per-user", "1")
    with served(tmp_path, "bob", *hook) as up, OpenAI(base_url=up.base, api_key="ann-key", max_retries=0) as client:
        stream = begun(client, f"tick {tmp_path / 'ticks'}")
        answer = up.chat("hi", ANN)
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "too_many_runs")
        assert answer.headers["retry-after"] == "1"
        assert up.chat("hi", EVE).status_code == 200
        stream.close()  # type: ignore[attr-defined]
        until(lambda: up.chat("hi", ANN).status_code == 200)


async def test_many_streams_at_once(server: Server) -> None:
    """Streams side by side don't mix, whoever reads slowly."""
    async with AsyncOpenAI(base_url=server.base, api_key="x", max_retries=0) as client:

        async def one(number: int) -> str:
            said = [{"role": "user", "content": f"number {number} speaks"}]
            text = ""
            async for chunk in await client.chat.completions.create(model="bob", messages=said, stream=True):  # type: ignore[call-overload]
                text += chunk.choices[0].delta.content or ""
                if number == 0:
                    await asyncio.sleep(0.02)
            return text

        said = await asyncio.gather(*(one(number) for number in range(30)))
    assert said == [f"number {number} speaks (1)" for number in range(30)]
