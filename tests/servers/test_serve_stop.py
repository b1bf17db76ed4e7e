"""Servers that are stopped, or killed, while runs go on."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import httpx
import pytest
from support.serving import Server, lines, served, until

SESSION = {"X-Session-Id": "stopped"}


def test_a_server_that_is_stopped_lets_runs_finish(tmp_path: Path) -> None:
    """After TERM no connection is taken, the stream that runs comes to its end, and the status is 0."""
    with served(tmp_path, "slow", "--db", "s.db") as up:
        body = {"model": "slow", "messages": [{"role": "user", "content": "one two three four " * 5}], "stream": True}
        with httpx.stream("POST", f"{up.base}/chat/completions", json=body, timeout=30) as answer:
            rows = answer.iter_lines()
            next(rows)
            up.process.send_signal(signal.SIGTERM)
            rest = list(rows)
        assert [one for one in rest if one][-1] == "data: [DONE]"
        assert any('"finish_reason": "stop"' in one for one in rest)
        assert up.process.wait(20) == 0
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{up.url}/healthz")


@pytest.mark.parametrize("how", ["grace", "second signal"])
def test_a_server_that_is_stopped_cancels_what_takes_too_long(tmp_path: Path, how: str) -> None:
    """When the time is over, or at the second signal, runs are cancelled in an orderly way: the client is told, the
    stream ends with `[DONE]`, and the session goes on with the next server."""
    grace = "0.3" if how == "grace" else "60"
    with served(tmp_path, "bob", "--db", "s.db", "--grace", grace) as up:
        file = tmp_path / "ticks"
        body = {"model": "bob", "messages": [{"role": "user", "content": f"tick {file}"}], "stream": True}
        with httpx.stream("POST", f"{up.base}/chat/completions", json=body, headers=SESSION, timeout=30) as answer:
            until(lambda: lines(file) > 1)
            up.process.send_signal(signal.SIGTERM)
            if how == "second signal":
                time.sleep(0.3)
                up.process.send_signal(signal.SIGTERM)
            rest = [one for one in answer.iter_lines() if one]
        assert '"code": "run_cancelled"' in rest[-2]
        assert rest[-1] == "data: [DONE]"
        assert up.process.wait(20) == 0
    with served(tmp_path, "bob", "--db", "s.db") as up:
        assert up.chat("hello", SESSION).json()["choices"][0]["message"]["content"] == "hello (2)"


def test_a_server_that_was_killed(tmp_path: Path) -> None:
    """kill -9 in the middle of a run: the session is free in the next process, and has what was said."""
    with served(tmp_path, "bob", "--db", "s.db") as up:
        assert up.chat("one", SESSION).status_code == 200
        file = tmp_path / "ticks"
        reader = threading.Thread(target=_read, args=(up, file))
        reader.start()
        until(lambda: lines(file) > 1)
        up.process.kill()
        reader.join()
    with served(tmp_path, "bob", "--db", "s.db") as up:
        until(lambda: up.chat("hello", SESSION).status_code == 200, 30)


def _read(up: Server, file: Path) -> None:
    try:
        up.chat(f"tick {file}", SESSION)
    except httpx.TransportError:
        return


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """A server that is told to stop while nothing goes on is gone at once."""
    with served(tmp_path, "bob") as up:
        began = time.monotonic()
        assert up.stop(signal.SIGINT) == 0
        assert time.monotonic() - began < 5
