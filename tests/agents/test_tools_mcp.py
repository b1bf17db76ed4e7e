"""Tool sets of MCP servers: real servers, over stdio and streamable HTTP, in processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.tooling import Rounds, asking, call, ran, texts

from graphagent import Executor
from graphagent.agents.mcp_connection import HttpServer, StdioServer
from graphagent.agents.mcp_tools import McpTools
from graphagent.agents.tool_options import ToolOptions
from graphagent.agents.toolset import FilteredTools
from graphagent.errors import ServiceError

pytest.importorskip("mcp")
pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
COMMAND = ("-m", "tests.support.mcp_server")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The file that the server writes lines to."""
    return tmp_path / "notes"


def stdio_server(notes: Path) -> StdioServer:
    """The server of the tests, as a process of ours."""
    return StdioServer(sys.executable, COMMAND, {"MCP_NOTES": str(notes)}, str(ROOT))


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def start_http(port: int, notes: Path) -> Any:
    """A server in another process that listens on the port."""
    environment = {**os.environ, "MCP_NOTES": str(notes)}
    process = await anyio.open_process(
        [sys.executable, *COMMAND, str(port)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with anyio.fail_after(30):
        while True:
            try:
                await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                return process
            except OSError:
                await anyio.sleep(0.05)


@pytest.fixture(params=["stdio", "http"])
async def mcp(request: pytest.FixtureRequest, notes: Path, anyio_backend: str) -> AsyncIterator[McpTools]:
    """The tool set of a server over each transport."""
    if request.param == "stdio":
        tools = McpTools(stdio_server(notes), name="t")
        yield tools
        await tools.aclose()
        return
    port = free_port()
    process = await start_http(port, notes)
    tools = McpTools(HttpServer(f"http://127.0.0.1:{port}/mcp", {"x-test": "1"}), name="t")
    yield tools
    await tools.aclose()
    process.terminate()
    await process.wait()


async def test_the_tools_of_a_server(mcp: McpTools, notes: Path) -> None:
    """A server's tools are listed with their schemas, called, and fail as tools do; a name that providers refuse is
    made one they take; results that are not text are the list of blocks."""
    listed = {one.spec.name: one for one in await mcp.tools()}
    assert listed["add"].spec.description == "Add two numbers."
    assert listed["add"].spec.parameters["required"] == ["a", "b"]
    assert "odd_name" in listed
    calls = [
        call("t_add", a=2, b=3),
        call("t_note", line="x"),
        call("t_odd_name"),
        call("t_picture"),
        call("t_add", "w"),
    ]
    added, noted, failed, picture, wrong = await texts([mcp], *calls, options=ToolOptions(parallel=True))
    assert (added, noted) == ("5", "noted")
    assert failed.startswith("Error: tool 't_odd_name' failed: Error executing tool odd.name")
    assert json.loads(picture)[0]["type"] == "image"
    assert wrong.startswith("Error: tool 't_add' failed: ")
    assert await anyio.Path(notes).read_text() == "x\n"
    await mcp.aclose()
    await mcp.aclose()


async def test_progress_goes_out(mcp: McpTools) -> None:
    """What a server tells of its progress is sent on, with the call it belongs to."""
    rounds = Rounds([mcp])
    async with Executor(rounds.graph).stream(asking([call("t_steps")]), modes=("custom",)) as stream:
        events = [event async for event in stream]
    assert [(e.kind, e.data["call_id"], e.data["progress"], e.data["message"]) for e in events] == [
        ("tool_progress", "c-t_steps", 1, "step 1"),
        ("tool_progress", "c-t_steps", 2, "step 2"),
    ]


async def test_a_cancelled_call_leaves_the_connection_usable(mcp: McpTools) -> None:
    """A run is cut off in the middle of a call; the next call over the same connection works."""
    await mcp.tools()
    with anyio.move_on_after(1.0):
        await ran([mcp], call("t_slow"))
    assert await texts([mcp], call("t_add", a=1, b=1)) == ["2"]


async def test_a_call_that_takes_too_long(notes: Path) -> None:
    """No answer within the limit is told to the model."""
    port = free_port()
    process = await start_http(port, notes)
    tools = McpTools(HttpServer(f"http://127.0.0.1:{port}/mcp"), name="", timeout=2.0)
    try:
        assert await texts([tools], call("slow")) == ["Error: tool 'slow' failed: no answer within 2.0 s"]
    finally:
        await tools.aclose()
        process.terminate()
        await process.wait()


@pytest.mark.parametrize("reconnects", [0, 1])
async def test_a_server_that_dies_in_a_call(notes: Path, reconnects: int) -> None:
    """The call is told to have failed, and is made again only if the tool may be called twice and it was asked for;
    the next call meets a new process."""
    tools = McpTools(stdio_server(notes), name="", reconnects=reconnects, trust_hints=True)
    try:
        (told,) = await texts([tools], call("die"))
        if reconnects:
            assert told == "alive"
        else:
            assert told.startswith(f"Error: tool 'die' failed: the connection to MCP server '{sys.executable}' failed")
        assert await texts([tools], call("die")) == ["alive"]
    finally:
        await tools.aclose()


async def test_a_server_that_comes_back(notes: Path) -> None:
    """While a server is away the tools of the last listing stay; when it is back, so are its tools."""
    port = free_port()
    process = await start_http(port, notes)
    tools = McpTools(HttpServer(f"http://127.0.0.1:{port}/mcp"), name="")
    known = [one.spec.name for one in await tools.tools()]
    process.terminate()
    await process.wait()
    assert [one.spec.name for one in await tools.tools()] == known
    (told,) = await texts([tools], call("add", a=1, b=1))
    assert "the connection to MCP server" in told
    process = await start_http(port, notes)
    assert await texts([tools], call("add", a=1, b=1)) == ["2"]
    await tools.aclose()
    process.terminate()
    await process.wait()


@pytest.mark.parametrize(
    "server",
    [
        StdioServer("no-such-command-here"),
        StdioServer(sys.executable, ("-c", "1")),
        HttpServer("http://127.0.0.1:9/mcp"),
    ],
    ids=["no command", "no server", "nobody listens"],
)
async def test_a_server_that_never_was(server: Any) -> None:
    """A server that can't be reached the first time is an error, and leaves no task behind."""
    before = len(asyncio.all_tasks())
    with pytest.raises(ServiceError, match="the connection to MCP server '"):
        await McpTools(server, timeout=10).tools()
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == before


@pytest.mark.skipif("GRAPHAGENT_TEST_MCP_TIME" not in os.environ, reason="no command in GRAPHAGENT_TEST_MCP_TIME")
async def test_a_public_server() -> None:
    """The public time server, in an environment of its own: it lists its tools, answers, and says what is wrong."""
    tools = McpTools(StdioServer(os.environ["GRAPHAGENT_TEST_MCP_TIME"], ("--local-timezone", "UTC")), name="time")
    try:
        calls = [
            call("time_get_current_time", timezone="Asia/Tokyo"),
            call("time_get_current_time", timezone="Nowhere"),
        ]
        now, failed = await texts([tools], *calls)
    finally:
        await tools.aclose()
    assert json.loads(now)["timezone"] == "Asia/Tokyo"
    assert "Invalid timezone" in failed


async def test_a_server_gets_little_of_our_environment(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys in our environment don't reach a server's process unless they are given to it."""
    monkeypatch.setenv("SOME_API_KEY", "secret")
    tools = McpTools(stdio_server(notes), name="")
    try:
        (told,) = await texts([FilteredTools(tools, include=["environment"])], call("environment"))
    finally:
        await tools.aclose()
    assert "MCP_NOTES" in told
    assert "SOME_API_KEY" not in told


async def test_hints_are_trusted_only_on_demand(notes: Path) -> None:
    """What a server says of its own tools changes nothing unless it is trusted; all its tools may be declared so."""
    for options, reentrant in [({}, set()), ({"trust_hints": True}, {"add", "die"})]:
        tools = McpTools(stdio_server(notes), name="", **options)
        try:
            assert {one.spec.name for one in await tools.tools() if one.reentrant} == reentrant  # type: ignore[attr-defined]
        finally:
            await tools.aclose()


def test_a_tool_set_outlives_its_event_loop(notes: Path) -> None:
    """A tool set that was used in one event loop connects anew in the next."""
    tools = McpTools(stdio_server(notes), name="")

    async def once() -> list[str]:
        try:
            return await texts([tools], call("add", a=1, b=2))
        finally:
            await tools.aclose()

    assert asyncio.run(once()) == ["3"]
    assert asyncio.run(once()) == ["3"]
