"""A listener on the way to a server: it passes every byte on, and keeps what clients sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any


class Wiretap:
    """What went through. `url`: where clients connect; `sent`: the bytes of each connection, in the order in which they
    were opened."""

    def __init__(self) -> None:
        self.url = ""
        self.sent: list[bytearray] = []

    @property
    def bodies(self) -> list[Any]:
        """The JSON body of each request, in order."""
        found = []
        for stream in self.sent:
            rest = bytes(stream)
            while rest:
                head, _, rest = rest.partition(b"\r\n\r\n")
                length = next(
                    (
                        int(v)
                        for k, _, v in (h.partition(b":") for h in head.split(b"\r\n"))
                        if k.lower() == b"content-length"
                    ),
                    0,
                )
                if length:
                    found.append(json.loads(rest[:length]))
                rest = rest[length:]
        return found


@asynccontextmanager
async def wiretap(host: str, port: int) -> AsyncIterator[Wiretap]:
    """A listener before the server at this address, while the block runs."""
    tap = Wiretap()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kept = bytearray()
        tap.sent.append(kept)
        server_reader, server_writer = await asyncio.open_connection(host, port)
        await asyncio.gather(_pass(reader, server_writer, kept), _pass(server_reader, writer, None))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    tap.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield tap
    finally:
        server.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray | None) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            if kept is not None:
                kept += data
            writer.write(data)
            await writer.drain()
    writer.close()
