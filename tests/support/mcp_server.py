"""An MCP server of the tests: `python -m tests.support.mcp_server` over stdio, or with a port over streamable HTTP.

`die` ends its process; each line that `note` is given goes to the file named by MCP_NOTES.
"""

from __future__ import annotations

import base64
import os
import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.utilities.types import Image
from mcp_types import ToolAnnotations

server = MCPServer("tests")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def note(line: str) -> str:
    """Write a line down."""
    with open(os.environ["MCP_NOTES"], "a", encoding="utf-8") as notes:
        notes.write(line + "\n")
    return "noted"


@server.tool(name="odd.name")
def fail() -> str:
    """Always fails."""
    raise ValueError("no such thing")


@server.tool()
async def slow(ctx: Context) -> str:
    """Tells how far it is, and takes its time."""
    await ctx.report_progress(1, 2, "half way")
    await anyio.sleep(30)
    return "late"


@server.tool()
async def steps(ctx: Context) -> str:
    """Tells how far it is."""
    for done in (1, 2):
        await ctx.report_progress(done, 2, f"step {done}")
    return "ready"


@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=base64.b64decode("iVBORw0KGgo="), format="png")


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def die() -> str:
    """Ends the server in the middle of the call, once: it leaves a line behind."""
    path = os.environ["MCP_NOTES"]
    if os.path.exists(path):
        return "alive"
    with open(path, "w", encoding="utf-8"):
        os._exit(3)


@server.tool()
def environment() -> list[str]:
    """The names of what it finds in its environment."""
    return sorted(os.environ)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
