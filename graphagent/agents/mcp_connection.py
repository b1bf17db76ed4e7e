"""The connection to one MCP server: opened when it is needed, held by a task of its own, opened again once lost."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from graphagent.errors import AgentError, ServiceError, ToolError

PAGES = 100
"""Pages of a listing that are read at most: a server whose listing never ends can't hang a run."""


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that runs as a process of ours. Of the environment it gets only what `env` names, beside the few
    harmless variables that every process needs."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server behind a URL, over streamable HTTP. `headers` go with every request."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Connection:
    """A client of the server. What it raises is ServiceError where the connection failed, ToolError where the server
    says no."""

    def __init__(self, server: StdioServer | HttpServer, timeout: float) -> None:
        self._server = server
        self._timeout = timeout
        self._holder: _Holder | None = None

    async def listed(self) -> list[Any]:
        """The server's tools, as `mcp` describes them."""
        found: list[Any] = []
        cursor: str | None = None
        for _ in range(PAGES):
            page = await self._do("listing the tools", functools.partial(_page, cursor))
            found += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    async def call(self, name: str, arguments: dict[str, Any], progress: Any) -> Any:
        """The result of one call, as `mcp` describes it."""
        return await self._do(
            f"calling '{name}'", lambda client: client.call_tool(name, arguments, progress_callback=progress)
        )

    async def aclose(self) -> None:
        """Disconnect; harmless twice."""
        holder, self._holder = self._holder, None
        if holder is not None:
            await holder.aclose()

    async def _do(self, what: str, request: Callable[[Any], Any]) -> Any:
        mcp = _mcp()
        holder = self._held(mcp)
        try:
            return await request(await holder.client())
        except mcp.MCPError as error:
            if error.code == mcp.CONNECTION_CLOSED:
                raise await self._lost(holder, what, error) from error
            timed_out = error.code == mcp.REQUEST_TIMEOUT
            raise ToolError(f"no answer within {self._timeout} s" if timed_out else str(error)) from error
        except (ToolError, AgentError):
            raise
        except Exception as error:  # whatever the transport raises: the streams it closed, the process that ended
            raise await self._lost(holder, what, error) from error

    def _held(self, mcp: Any) -> _Holder:
        """The holder of the connection; a new one if there is none, or its event loop has gone."""
        if self._holder is None or self._holder.gone:
            self._holder = _Holder(mcp, self._server, self._timeout)
        return self._holder

    async def _lost(self, holder: _Holder, what: str, error: Exception) -> ServiceError:
        """The connection is of no more use; the next request opens another."""
        if self._holder is holder:
            self._holder = None
        await holder.aclose()
        server = self._server
        name = f"'{server.url}'" if isinstance(server, HttpServer) else f"'{server.command}'"
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        return ServiceError(f"the connection to MCP server {name} failed while {what}: {type(cause).__name__}: {cause}")


class _Holder:
    """A task that opens the client and keeps it until it is told to close: the streams of `mcp` have to be closed by
    the task that opened them."""

    def __init__(self, mcp: Any, server: StdioServer | HttpServer, timeout: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._client: asyncio.Future[Any] = self._loop.create_future()
        self._closing = asyncio.Event()
        self._task = self._loop.create_task(self._hold(mcp, server, timeout), name="graphagent-mcp")

    @property
    def gone(self) -> bool:
        """True if nothing can be asked through it any more."""
        return self._loop is not asyncio.get_running_loop() or self._task.done()

    async def client(self) -> Any:
        """The client, once it is connected. Raises what connecting raised."""
        return await asyncio.shield(self._client)

    async def aclose(self) -> None:
        """Close the client; waits until it is, or until it is clear that it was closed already."""
        if self.gone:
            return
        self._closing.set()
        await asyncio.wait([self._task])

    async def _hold(self, mcp: Any, server: StdioServer | HttpServer, timeout: float) -> None:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(timeout):
                    client = await stack.enter_async_context(await _client(mcp, server, timeout, stack))
                self._client.set_result(client)
                await self._closing.wait()
        except Exception as error:
            if not self._client.done():
                self._client.set_exception(error)
                self._client.exception()  # it is told to whoever asks; nobody has to
        finally:
            if not self._client.done():  # the event loop is shutting down
                self._client.set_exception(ServiceError("the connection was closed while it was being opened"))
                self._client.exception()


async def _page(cursor: str | None, client: Any) -> Any:
    return await client.list_tools(cursor=cursor)


async def _client(mcp: Any, server: StdioServer | HttpServer, timeout: float, stack: AsyncExitStack) -> Any:
    options = {"read_timeout_seconds": timeout, "cache": None}
    if isinstance(server, StdioServer):
        given = {"command": server.command, "args": list(server.args), "env": dict(server.env), "cwd": server.cwd}
        return mcp.Client(mcp.StdioServerParameters(**given), **options)
    # an answer may be streamed for longer than a connection takes; each call has a limit of its own
    limits = mcp.httpx.Timeout(timeout, read=None)
    http = await stack.enter_async_context(mcp.httpx.AsyncClient(headers=dict(server.headers), timeout=limits))
    return mcp.Client(mcp.streamable_http_client(server.url, http_client=http), **options)


def _mcp() -> Any:
    """What is used of the package `mcp`, which is slow to import. Raises AgentError if it isn't installed."""
    try:
        import httpx2
        import mcp
        from mcp.client.streamable_http import streamable_http_client
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
    except ImportError as error:
        raise AgentError("tools of MCP servers need the package 'mcp' 2; install graphagent[mcp]") from error
    return SimpleNamespace(
        Client=mcp.Client,
        StdioServerParameters=mcp.StdioServerParameters,
        MCPError=mcp.MCPError,
        streamable_http_client=streamable_http_client,
        httpx=httpx2,
        CONNECTION_CLOSED=CONNECTION_CLOSED,
        REQUEST_TIMEOUT=REQUEST_TIMEOUT,
    )
