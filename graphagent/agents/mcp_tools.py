"""Tools of an MCP server (Model Context Protocol, https://modelcontextprotocol.io), over stdio or streamable HTTP."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from graphagent.agents.mcp_connection import Connection, HttpServer, StdioServer
from graphagent.agents.model import ToolSpec
from graphagent.agents.tool import Tool, ToolContext
from graphagent.errors import ServiceError, ToolError

if TYPE_CHECKING:
    from graphagent.engine.context import NodeContext

_log = logging.getLogger(__name__)
PROGRESS = "tool_progress"
"""Kind of the custom event that brings a server's word on how far a call is: `call_id`, `name`, `progress`, `total`,
`message`."""
MAX_ATTEMPTS = 10


class McpTools:
    """The tools of one MCP server, as a tool set. It connects when the tools are first wanted, and again when the
    connection was lost.

    `server`: a `StdioServer` or an `HttpServer`. `timeout`: seconds for connecting and for each call. `reconnects`:
    how often a call is made again after the connection was lost in the middle of it; only for tools that may be
    called twice. `reentrant`: all tools of the server may (they only read, say). `trust_hints`: those may of which the
    server says that they only read or are idempotent; for servers you trust. `name`: prefix of the tools' names.
    """

    def __init__(
        self,
        server: StdioServer | HttpServer,
        *,
        name: str = "mcp",
        timeout: float = 30.0,
        reconnects: int = 0,
        reentrant: bool = False,
        trust_hints: bool = False,
    ) -> None:
        self.name = name
        self._connection = Connection(server, timeout)
        self._attempts = 1 + min(max(reconnects, 0), MAX_ATTEMPTS)
        self._reentrant = reentrant
        self._trust_hints = trust_hints
        self._known: Sequence[Tool] | None = None

    async def tools(self) -> Sequence[Tool]:
        """The server's tools as they are now. If it can't be reached: those it had, with a warning in the log. Raises
        ServiceError if it never could."""
        try:
            listed = await self._connection.listed()
        except ServiceError as error:
            if self._known is None:
                raise
            _log.warning("the tools of MCP server '%s' are those of an earlier listing: %s", self.name, error)
            return self._known
        self._known = [self._tool(item) for item in listed]
        return self._known

    async def aclose(self) -> None:
        """End the connection, and the process of a stdio server; harmless twice."""
        await self._connection.aclose()

    def _tool(self, item: Any) -> Tool:
        hints = item.annotations
        harmless = hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)
        name = re.sub(r"[^a-zA-Z0-9_-]", "_", item.name)
        return McpTool(
            ToolSpec(name, item.description or "", item.input_schema),
            item.name,
            self._connection,
            reentrant=self._reentrant or (self._trust_hints and harmless),
            attempts=self._attempts,
        )


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool of an MCP server; `remote`: its name there."""

    spec: ToolSpec
    remote: str
    connection: Connection
    reentrant: bool = False
    attempts: int = 1
    external: bool = False
    needs_approval: bool = False
    ends_turn: bool = False

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """The server's result. Raises ToolError for what the server calls an error, and if it can't be reached."""
        node = cast("NodeContext", context.node)

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told = {"call_id": context.call_id, "name": context.name, "progress": done}
            await node.emit(PROGRESS, {**told, "total": total, "message": message})

        left = self.attempts if self.reentrant else 1
        while True:
            left -= 1
            try:
                return told_by(await self.connection.call(self.remote, dict(arguments), progress))
            except ServiceError as error:
                if left <= 0:
                    raise ToolError(str(error)) from error


def told_by(result: Any) -> Any:
    """An MCP result as a tool's: texts as text, anything with images or files as the list of its blocks, structured
    content where there is nothing else. Raises ToolError if the server says that it is an error."""
    content = result.content
    texts = [block.text for block in content if block.type == "text"]
    if result.is_error:
        raise ToolError("\n".join(texts) or "the server gave no reason")
    if not content:
        return [] if result.structured_content is None else result.structured_content
    if len(texts) == len(content):
        return "\n".join(texts)
    return [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in content]
