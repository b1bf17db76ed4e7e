"""Commands that move: forward in steps, back along what is stored, to a place."""

from __future__ import annotations

from collections.abc import Awaitable

from graphagent.debug.session import Stopped
from graphagent.errors import UsageError
from runner.cli.values import read_input
from runner.debugger.desk import Desk
from runner.debugger.show import stopped
from runner.debugger.table import Reply, command, one_of


async def _moved(desk: Desk, going: Awaitable[Stopped]) -> Reply:
    return await stopped(desk, await going)


@command("step", "s", again=True)
async def step(desk: Desk, arguments: list[str]) -> Reply:
    """Go on by one step. A node that runs a child graph or an agent is entered."""
    return await _moved(desk, desk.session.step())


@command("next", "n", again=True)
async def next_(desk: Desk, arguments: list[str]) -> Reply:
    """Go on by one step of this graph. Child graphs run through, unless a breakpoint is in them."""
    return await _moved(desk, desk.session.next())


@command("out", "o", "return", "r", again=True)
async def out(desk: Desk, arguments: list[str]) -> Reply:
    """Go on to the end of this child graph, and stop in the graph that runs it."""
    return await _moved(desk, desk.session.out())


@command("continue", "c", "cont", again=True)
async def continue_(desk: Desk, arguments: list[str]) -> Reply:
    """Go on to the next breakpoint, question, failure, or to the end."""
    return await _moved(desk, desk.session.run())


@command("until", "u", usage="NODE", takes="node")
async def until(desk: Desk, arguments: list[str]) -> Reply:
    """Go on until a node is about to run."""
    return await _moved(desk, desk.session.until(one_of(arguments, "until NODE")))


@command("back", "bk", again=True)
async def back(desk: Desk, arguments: list[str]) -> Reply:
    """Go back by one step, along what is stored. Nothing is undone: 'step' comes forward again, 'fork' and 'edit' go
    on from there."""
    return await _moved(desk, desk.session.back())


@command("goto", "g", usage="CHECKPOINT", takes="checkpoint")
async def goto(desk: Desk, arguments: list[str]) -> Reply:
    """Go to a checkpoint, by id or number."""
    wanted = one_of(arguments, "goto CHECKPOINT")
    if wanted.isdigit() and desk.last is not None:
        here = desk.moment
        wanted = here.id.rpartition(":")[0] + f":{wanted}"
    return await _moved(desk, desk.session.goto(wanted))


@command("open")
async def open_(desk: Desk, arguments: list[str]) -> Reply:
    """Go to the newest checkpoint that is stored, also if another process has written it."""
    return await _moved(desk, desk.session.open())


@command("start", usage="[JSON|TEXT]")
async def start(desk: Desk, arguments: list[str]) -> Reply:
    """Begin a run, or a new turn of one that has ended, with an input: a JSON object or a file. An agent takes the
    text that the user says."""
    text = " ".join(arguments)
    if desk.services is not None:
        if not text:
            raise UsageError("an agent needs to be told something: start TEXT")
        return await _moved(desk, desk.session.start(text))
    return await _moved(desk, desk.session.start(read_input(text) if text else None))
