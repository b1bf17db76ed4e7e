"""A small server that speaks the OpenAI chat protocol over a real socket and says what a test tells it to say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

LITELLM_WARNS = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:litellm.*"),
    pytest.mark.filterwarnings("ignore::UserWarning:pydantic.*"),
]
"""Marks for tests that call litellm: it warns of itself, and takes a warning that is an error for a broken answer."""


@dataclass(frozen=True)
class Answer:
    """What the server says to one request.

    `events`: data of server-sent events, a dict as JSON. `body`: a JSON body instead. `then`: what follows the events:
    `done` sends `[DONE]` and ends well, `end` ends well without it, `cut` closes the socket in the middle of the
    body, `hold` waits until the client leaves.
    """

    events: Sequence[dict[str, Any] | str] = ()
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    then: str = "done"


Script = Iterable[Answer] | Callable[[dict[str, Any]], Answer]


def chunk(finish: str | None = None, *, usage: dict[str, Any] | None = None, **delta: Any) -> dict[str, Any]:
    """A chunk with one choice."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _base() | {"choices": [choice]} | ({} if usage is None else {"usage": usage})


def usage_chunk(prompt: int, completion: int, cached: int = 0) -> dict[str, Any]:
    """The chunk with usage that ends a stream: it has no choice."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return _base() | {"choices": [], "usage": usage | {"prompt_tokens_details": {"cached_tokens": cached}}}


def call(index: int | None = 0, id: str | None = None, name: str | None = None, arguments: Any = "") -> dict[str, Any]:
    """An entry of `tool_calls`; what is None is left out."""
    function = {"arguments": arguments} | ({} if name is None else {"name": name})
    entry: dict[str, Any] = {"type": "function", "function": function}
    return entry | ({} if index is None else {"index": index}) | ({} if id is None else {"id": id})


def says(*pieces: str, finish: str = "stop") -> Answer:
    """An answer of text in pieces."""
    return Answer([chunk(role="assistant", content=""), *(chunk(content=text) for text in pieces), chunk(finish)])


def fails(status: int, message: str, *, code: str | None = None, **headers: str) -> Answer:
    """An answer that refuses; a header `retry_after` is sent as `retry-after`."""
    error = {"message": message, "type": "error", "code": code}
    return Answer(status=status, body={"error": error}, headers={k.replace("_", "-"): v for k, v in headers.items()})


def whole(content: str | None, **message: Any) -> Answer:
    """A body that is not streamed."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content} | message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return Answer(body=_base("chat.completion") | {"choices": [choice], "usage": usage})


def _base(kind: str = "chat.completion.chunk") -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "small"}


class OpenAIServer:
    """`url`: the API's base; `requests`: bodies of all requests; `left`: set once a client has left during `hold`;
    `connections`: how many are open."""

    def __init__(self, script: Script) -> None:
        self._next = script if callable(script) else iter(script)
        self.url = ""
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.left = asyncio.Event()
        self.connections = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, request after request."""
        self.connections += 1
        try:
            while (head := await _head(reader)) is not None:
                body = json.loads(await reader.readexactly(int(head.get("content-length", "0"))) or b"{}")
                self.requests.append(body)
                self.headers.append(head)
                if not await self._answer(self._chosen(body), reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        finally:
            self.connections -= 1
            writer.close()

    def _chosen(self, body: dict[str, Any]) -> Answer:
        if callable(self._next):
            return self._next(body)
        return next(self._next, fails(400, "the script of the test server is over"))

    async def _answer(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Say it; False if the connection is over."""
        plain = answer.body is not None
        headers = {"content-type": "application/json" if plain else "text/event-stream"} | dict(answer.headers)
        data = json.dumps(answer.body).encode()
        headers |= {"content-length": str(len(data))} if plain else {"transfer-encoding": "chunked"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {answer.status} Test\r\n{lines}\r\n".encode())
        if plain:
            writer.write(data)
            await writer.drain()
            return True
        for event in answer.events:
            writer.write(_piece(event if isinstance(event, str) else json.dumps(event)))
            await writer.drain()
            await asyncio.sleep(0)
        if answer.then == "hold":
            await reader.read(1)
            self.left.set()
        if answer.then in ("hold", "cut"):
            return False
        writer.write((_piece("[DONE]") if answer.then == "done" else b"") + b"0\r\n\r\n")
        await writer.drain()
        return True


def _piece(data: str) -> bytes:
    """An event as one piece of a chunked body."""
    event = f"data: {data}\n\n".encode()
    return f"{len(event):x}\r\n".encode() + event + b"\r\n"


async def _head(reader: asyncio.StreamReader) -> dict[str, str] | None:
    """The headers of the next request, None if there is none."""
    if not await reader.readline():
        return None
    found = {}
    while (line := (await reader.readline()).decode().strip()) != "":
        name, _, value = line.partition(":")
        found[name.lower()] = value.strip()
    return found


@asynccontextmanager
async def openai_server(script: Script) -> AsyncIterator[OpenAIServer]:
    """A server that answers with the script: one answer a request, or a function of the request's body."""
    made = OpenAIServer(script)
    open_ones: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_ones[task] = writer
        await made.handle(reader, writer)
        del open_ones[task]

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    try:
        yield made
    finally:
        listening.close()
        for writer in list(open_ones.values()):
            writer.transport.abort()
        await asyncio.gather(*open_ones)
