"""Answers that come in pieces, and clients that leave before the end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import TypeVar

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

T = TypeVar("T")

KEEP_ALIVE = 15.0
"""Seconds between comments that keep a connection open while nothing is said."""


async def unless_left(receive: Receive, work: Callable[[], Awaitable[T]]) -> T | None:
    """What some work comes to; None if the client leaves first: then the work is cancelled, and waited for."""
    found: list[T] = []
    problem: list[Exception] = []

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        try:
            found.append(await work())
        except Exception as error:  # raised as it is, not in the group's exception group
            problem.append(error)
        group.cancel_scope.cancel()
    if problem:
        raise problem[0]
    return found[0] if found else None


class EventStream(Response):
    """Server-sent events from a generator of whole events as text, `data: ...` and an empty line.

    `events` is called, and closed, while the answer is sent; a client that leaves closes it at once. Its first event is
    awaited before the headers go out: what it raises until then is answered by `refuse` instead.
    """

    def __init__(
        self,
        events: Callable[[], AsyncGenerator[str, None]],
        refuse: Callable[[Exception], Response],
        headers: Mapping[str, str],
    ) -> None:
        self.status_code = 200
        self.background = None
        self.body = b""
        self._events = events
        self._refuse = refuse
        self.init_headers({**headers, "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"})
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until the last, or until the client leaves."""

        async def answer() -> Response | None:
            async with aclosing(self._events()) as events:
                try:
                    first = await anext(events)
                except StopAsyncIteration:
                    first = ""
                except Exception as error:
                    return self._refuse(error)
                await self._send(first, events, send)
            return None

        refused = await unless_left(receive, answer)
        if refused is not None:
            await refused(scope, receive, send)

    async def _send(self, first: str, events: AsyncGenerator[str, None], send: Send) -> None:
        line = anyio.Lock()

        async def write(text: str) -> None:
            async with line:
                await send({"type": "http.response.body", "body": text.encode(), "more_body": True})

        async def keep_alive() -> None:
            while True:
                await anyio.sleep(KEEP_ALIVE)
                await write(": \n\n")

        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with anyio.create_task_group() as group:
            group.start_soon(keep_alive)
            await write(first)
            async for text in events:
                await write(text)
            group.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
