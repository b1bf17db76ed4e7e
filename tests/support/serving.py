"""A server as a process of the command line, and what tests say to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

COMMAND = str(Path(sys.executable).with_name("graphagent"))
AGENTS = Path(__file__).parents[1] / "servers" / "served.py"
ANN, EVE = {"Authorization": "Bearer ann-key"}, {"Authorization": "Bearer eve-key"}


@dataclass
class Server:
    """A server that is up. `url`: its address; `log`: where its standard error goes."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    @property
    def base(self) -> str:
        """The base of the OpenAI API."""
        return f"{self.url}/v1"

    def chat(self, said: Any, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
        """A request to the chat endpoint. `said`: a text, or the messages."""
        messages = [{"role": "user", "content": said}] if isinstance(said, str) else said
        body = {"model": "bob", "messages": messages, **fields}
        return httpx.post(f"{self.base}/chat/completions", json=body, headers=headers, timeout=30)

    def stop(self, sign: int = signal.SIGTERM) -> int:
        """End it with a signal; returns its exit status."""
        self.process.send_signal(sign)
        return self.process.wait(30)


@contextmanager
def served(folder: Path, name: str, *words: str, agents: Path = AGENTS, **variables: str) -> Iterator[Server]:
    """A server of an agent of `agents`, at any port, with sessions in `folder` if `--db` is among the words."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GRAPHAGENT_")}
    command = [COMMAND, "serve", f"{agents}:{name}", "--json", "--port", "0", *words]
    log = folder / f"{name}.log"
    with log.open("a") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=folder,
            env={**kept, "PYTHONWARNINGS": "error", **variables},
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, log.read_text()
        yield Server(json.loads(line)["url"], process, log)
        assert "Exception in ASGI" not in log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()


def until(true: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def lines(file: Path) -> int:
    """Lines of a file, 0 if there is none."""
    return file.read_text().count("\n") if file.exists() else 0
