"""A server under load: `python -m benchmarks.servers [--streams 200] [--seconds 60] [--protocol openai]`.

One server process with a scripted model and sessions in SQLite, and clients in this one: each asks, reads its stream to
the end, checks that no piece is lost, doubled or out of order, and asks again in a new session. They begin one after
the other, as people do. Some clients read slowly on purpose
(`--slow`); the others' time to the first piece is told with and without them. Both processes share the machine, so the
rates are of both together.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

PIECES = 40
SPREAD = 3.0
"""Seconds within which the clients begin."""
AGENT = f"""
from graphagent import LLMAgent
from graphagent.models import ScriptedModel

PIECES = [f"{{n}};" for n in range({PIECES})]
agent = LLMAgent("counter", ScriptedModel(lambda request: PIECES, delay=DELAY, keep_requests=False))
"""


@dataclass
class Seen:
    """What the clients of a round have seen. Times in seconds."""

    first: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    events: int = 0
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def row(self, seconds: float) -> dict[str, Any]:
        return {
            "runs": len(self.whole),
            "events_per_second": round(self.events / seconds),
            "first_p50_ms": round(1e3 * quantile(self.first, 0.5), 1),
            "first_p95_ms": round(1e3 * quantile(self.first, 0.95), 1),
            "whole_p95_ms": round(1e3 * quantile(self.whole, 0.95), 1),
            "wrong": len(self.wrong),
            "failed": len(self.failed),
            "problems": (self.wrong + self.failed)[:3],
        }


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


async def openai(client: aiohttp.ClientSession, base: str, session: str) -> AsyncIterator[str]:
    """The pieces of an answer by the OpenAI protocol."""
    body = {"model": "counter", "messages": [{"role": "user", "content": "count"}], "stream": True}
    async with client.post(f"{base}/v1/chat/completions", json=body, headers={"x-session-id": session}) as answer:
        if answer.status != 200:
            raise RuntimeError(f"status {answer.status}: {(await answer.text())[:200]}")
        done = False
        async for line in answer.content:
            if line.startswith(b"data: [DONE]"):
                done = True
            elif line.startswith(b"data: "):
                data = json.loads(line[6:])
                if "error" in data:
                    raise RuntimeError(str(data["error"]))
                for choice in data["choices"]:
                    if choice["delta"].get("content"):
                        yield choice["delta"]["content"]
        if not done:
            raise RuntimeError("the stream ended without [DONE]")


async def agui(client: aiohttp.ClientSession, base: str, session: str) -> AsyncIterator[str]:
    """The pieces of an answer by AG-UI."""
    message = {"id": session, "role": "user", "content": "count"}
    body = {"threadId": session, "runId": f"{session}-r", "messages": [message], "state": {}, "tools": [],
            "context": [], "forwardedProps": {}}  # fmt: skip
    async with client.post(f"{base}/agui", json=body, headers={"accept": "text/event-stream"}) as answer:
        if answer.status != 200:
            raise RuntimeError(f"status {answer.status}: {(await answer.text())[:200]}")
        kinds = []
        async for line in answer.content:
            if line.startswith(b"data: "):
                event = json.loads(line[6:])
                kinds.append(event["type"])
                if event["type"] == "TEXT_MESSAGE_CONTENT":
                    yield event["delta"]
        if kinds[:1] != ["RUN_STARTED"] or kinds[-1:] != ["RUN_FINISHED"]:
            raise RuntimeError(f"the run begins with {kinds[:1]} and ends with {kinds[-1:]}")


PROTOCOLS = {"openai": openai, "agui": agui}


async def reader(name: str, protocol: Any, base: str, seen: Seen, until: float, wait: float, pause: float) -> None:
    """One client: a new session for each run, until the time is up."""
    connector = aiohttp.TCPConnector(limit=1)
    async with aiohttp.ClientSession(connector=connector, read_bufsize=2**12) as client:
        turn = 0
        await asyncio.sleep(wait)
        while time.monotonic() < until:
            turn += 1
            began, text, first = time.monotonic(), "", 0.0
            try:
                async for piece in protocol(client, base, f"{name}-{turn}"):
                    first = first or time.monotonic()
                    seen.events += 1
                    text += piece
                    if pause:
                        await asyncio.sleep(pause)
            except Exception as error:
                seen.failed.append(f"{type(error).__name__}: {error}")
                continue
            seen.first.append(first - began)
            seen.whole.append(time.monotonic() - began)
            if text != "".join(f"{n};" for n in range(PIECES)):
                seen.wrong.append(text)


def rss(pid: int) -> float:
    """Resident memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


async def measure(options: argparse.Namespace, base: str, pid: int, slow: int) -> dict[str, Any]:
    seen, slow_seen = Seen(), Seen()
    began = time.monotonic()
    until = began + options.seconds
    memory: list[float] = []

    async def watch() -> None:
        while True:
            await asyncio.sleep(options.seconds / 12)
            memory.append(round(rss(pid), 1))

    watching = asyncio.create_task(watch())
    mark, protocol = f"{options.protocol}-{slow}", PROTOCOLS[options.protocol]
    async with asyncio.TaskGroup() as group:
        for n in range(options.streams):
            group.create_task(reader(f"{mark}-{n}", protocol, base, seen, until, n * SPREAD / options.streams, 0))
        for n in range(slow):
            group.create_task(reader(f"{mark}-s{n}", protocol, base, slow_seen, until, 0, 0.2))
    took = time.monotonic() - began
    watching.cancel()
    row = {"slow_readers": slow, **seen.row(took), "memory_mb": memory, "seconds": round(took, 1)}
    if slow:
        row["slow"] = slow_seen.row(took)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--slow", type=int, default=20)
    parser.add_argument("--delay", type=float, default=0.05, help="seconds between the pieces of the model")
    parser.add_argument("--protocol", choices=sorted(PROTOCOLS), default="openai")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "counting.py").write_text(AGENT.replace("DELAY", str(options.delay)))
        command = [str(Path(sys.executable).with_name("graphagent")), "serve", "counting.py:agent",
                   f"--{options.protocol}", "--json", "--port", "0", "--db", "sqlite:///load.db", "--most-runs", "1000",
                   "--most-runs-per-user", "1000"]  # fmt: skip
        served = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert served.stdout is not None
        try:
            base = json.loads(served.stdout.readline())["url"]
            for slow in (0, options.slow):
                row = asyncio.run(measure(options, base, served.pid, slow))
                print(json.dumps({"protocol": options.protocol, "streams": options.streams, **row}), flush=True)
        finally:
            served.terminate()
            served.wait()


if __name__ == "__main__":
    main()
