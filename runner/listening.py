"""Listening for connections, as the studio and the servers do: where, with what, and who can reach it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import uvicorn

from graphagent.errors import UsageError


class QuietServer(uvicorn.Server):
    """A server that says when it is ready, and leaves the signals to whoever runs it: runs that go on or are held have
    to come to an orderly end before the process does."""

    ready: Callable[[], None]

    def capture_signals(self) -> Any:
        """Signals are received beside the server."""
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, then say so."""
        await super().startup(sockets)
        if not self.should_exit:
            self.ready()


def bound(who: str, host: str, port: int) -> socket.socket:
    """A socket bound to an address; port 0 takes one that is free. Raises UsageError naming `who` wanted it."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, proto)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise UsageError(f"the {who} can't listen at '{host}' port {port}: {error}; give another --port") from error
    return listener


def address(host: str, listener: socket.socket) -> str:
    """The URL of a bound socket, without a path."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
