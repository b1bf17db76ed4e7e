"""A server of an agent in the loop of the test, models that wait for the test, and what a client says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import httpx
import uvicorn
from agui_rules import events_of, verified
from starlette.requests import Request

from graphagent.agents.model import Delta, ModelRequest
from runner import Runner
from runner.listening import QuietServer, address, bound
from runner.servers.access import Access, Identity
from runner.servers.agui.part import AGUIServer
from runner.servers.app import make_app

ANN, EVE = {"Authorization": "Bearer ann"}, {"Authorization": "Bearer eve"}
GUARD = 20
"""Seconds after which a test that hangs is given up."""


class GatedModel:
    """Says `Hello `, tells that it has (`asked`), and waits for `go` before the rest."""

    name = "gated"
    context_window: int | None = None

    def __init__(self, rest: str = "world") -> None:
        self.asked, self.go = anyio.Event(), anyio.Event()
        self.rest = rest

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """One answer; the next one does not wait."""
        yield Delta("Hello ")
        self.asked.set()
        await self.go.wait()
        yield Delta(self.rest)
        yield Delta(finish_reason="stop")


@dataclass
class World:
    """A server that is up."""

    runner: Runner
    http: httpx.AsyncClient

    async def post(self, said: Any, run: str = "r1", *, thread: str = "t", headers: Any = None, **fields: Any) -> Any:
        """A run, read to its end."""
        return await self.http.post("/agui", json=body(said, run, thread=thread, **fields), headers=headers)

    async def events(self, said: Any, run: str = "r1", **fields: Any) -> list[dict[str, Any]]:
        """The events of a run that begins, in an order that a client takes."""
        answer = await self.post(said, run, **fields)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/event-stream")
        return verified(events_of(answer.text))

    async def resume(self, answers: dict[str, Any], run: str = "r2", **fields: Any) -> list[dict[str, Any]]:
        """The events of a run that answers questions, by their ids."""
        entries = [{"interruptId": one, "status": "resolved", "payload": value} for one, value in answers.items()]
        return await self.events([], run, resume=entries, **fields)

    async def history(self, thread: str = "t", **fields: Any) -> list[dict[str, Any]]:
        """The stream that shows a thread."""
        answer = await self.http.get(f"/agui/threads/{thread}", **fields)
        assert answer.status_code == 200, answer.text
        return verified(events_of(answer.text))

    @asynccontextmanager
    async def reading(self, said: Any, run: str = "r1", **fields: Any) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """The events of a run as they come; whoever leaves the block leaves the connection."""
        async with self.http.stream("POST", "/agui", json=body(said, run, **fields)) as answer:
            assert answer.status_code == 200, await answer.aread()
            yield self.coming(answer)

    @staticmethod
    async def coming(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
        """The events of an answer as they come."""
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                yield json.loads(line[6:])


def body(said: Any, run: str = "r1", *, thread: str = "t", **fields: Any) -> dict[str, Any]:
    """A RunAgentInput. `said`: a text, or the messages."""
    messages = [{"id": f"{run}-m", "role": "user", "content": said}] if isinstance(said, str) else said
    return {"threadId": thread, "runId": run, "messages": messages, **fields}


async def two(request: Request) -> Identity | None:
    """Knows ann and eve."""
    name = request.headers.get("authorization", "").removeprefix("Bearer ")
    return Identity(name) if name in ("ann", "eve") else None


@asynccontextmanager
async def up(
    agent: Any, part: AGUIServer | None = None, *, users: bool = False, **services: Any
) -> AsyncIterator[World]:
    """A server of an agent. `users`: for ann and eve; else for everybody."""
    async with Runner("app", agent, **services) as runner:
        access = Access(two, hosts=()) if users else Access()
        app = make_app(runner, [part or AGUIServer()], access=access)
        config = uvicorn.Config(app, log_level="warning", lifespan="off", ws="none", timeout_graceful_shutdown=1)
        server, ready = QuietServer(config), anyio.Event()
        server.ready = ready.set
        listener = bound("test", "127.0.0.1", 0)
        try:
            with anyio.fail_after(GUARD):
                async with anyio.create_task_group() as group:
                    group.start_soon(server.serve, [listener])
                    await ready.wait()
                    base = address("127.0.0.1", listener)
                    async with httpx.AsyncClient(base_url=base, timeout=GUARD, headers=ANN if users else None) as http:
                        yield World(runner, http)
                    server.should_exit = True
        finally:
            listener.close()


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """The types of events, without those of steps."""
    return [event["type"] for event in events if not event["type"].startswith("STEP_")]


def of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The events of a type."""
    return [event for event in events if event["type"] == kind]


def outcome(events: list[dict[str, Any]]) -> str:
    """How a stream ends: the type of its outcome, or the code of its error."""
    last = events[-1]
    return str(last["code"]) if last["type"] == "RUN_ERROR" else str(last["outcome"]["type"])
