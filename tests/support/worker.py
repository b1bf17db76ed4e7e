"""Another process that runs lineages of a store: `python -m tests.support.worker URL`, steered through its stdin.

`hold LINEAGE` begins a run whose node waits, `go LINEAGE` lets it end, `read LINEAGE` reads history and state until
`stop`; it answers `held LINEAGE`, `over LINEAGE STATUS LOG` and `read N` on its stdout. An empty line ends it.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import BaseModel

from graphagent import END, Executor, NodeContext, SqlCheckpoints, StateGraph, append
from graphagent.graph.compiled import CompiledGraph

ROOT = Path(__file__).parents[2]


class Log(BaseModel):
    log: Annotated[list[str], append] = []


def log_graph(speak: Any) -> CompiledGraph:
    """One node under the name `speak`, which both processes run."""
    return StateGraph(Log).add_node("speak", speak).set_entry_point("speak").add_edge("speak", END).compile()


class OtherProcess:
    """A worker as the test sees it."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self._process = process
        self._lines = BufferedByteReceiveStream(process.stdout)

    async def tell(self, line: str) -> None:
        """Send one command."""
        assert self._process.stdin is not None
        await self._process.stdin.send(line.encode() + b"\n")

    async def hear(self) -> str:
        """The next line it says."""
        with anyio.fail_after(20):
            return (await self._lines.receive_until(b"\n", 10_000)).decode()


@asynccontextmanager
async def other_process(url: str) -> AsyncIterator[OtherProcess]:
    """A worker on a database, ready to be told what to do."""
    command = [sys.executable, "-m", "tests.support.worker", url]
    async with await anyio.open_process(command, cwd=ROOT, stderr=None) as process:
        other = OtherProcess(process)
        assert await other.hear() == "ready"
        yield other
        await other.tell("")
        await process.wait()


class _Worker:
    def __init__(self, store: SqlCheckpoints) -> None:
        self.store = store
        self.gates: dict[str, anyio.Event] = {}
        self.reading = True
        self.executor = Executor(log_graph(self.wait), checkpoints=store)

    async def wait(self, state: Log, ctx: NodeContext) -> dict[str, Any]:
        say(f"held {ctx.lineage}")
        await self.gates[ctx.lineage].wait()
        return {"log": ["theirs"]}

    async def hold(self, lineage: str) -> None:
        result = await self.executor.run({}, lineage=lineage, abandon=True)
        say(f"over {lineage} {result.status} {','.join(result.state.log)}")

    async def read(self, lineage: str) -> None:
        times = 0
        while self.reading or times == 0:
            headers = await self.executor.history(lineage)
            if headers:
                times += len((await self.executor.state(lineage)).log) <= len(headers)
            await anyio.lowlevel.checkpoint()
        say(f"read {times}")


def say(text: str) -> None:
    """One line to the test."""
    print(text, flush=True)


async def main(url: str) -> None:
    """Do what stdin says until it says nothing."""
    async with SqlCheckpoints(url) as store, anyio.create_task_group() as group:
        worker = _Worker(store)
        say("ready")
        while line := (await anyio.to_thread.run_sync(sys.stdin.readline)).split():
            if line[0] == "hold":
                worker.gates[line[1]] = anyio.Event()
                group.start_soon(worker.hold, line[1])
            elif line[0] == "go":
                worker.gates[line[1]].set()
            elif line[0] == "read":
                worker.reading = True
                group.start_soon(worker.read, line[1])
            else:
                worker.reading = False
        group.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
