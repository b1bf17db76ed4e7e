"""Runs a graph of studio_graphs on a store, or goes on with it, as a process that can be killed.

Arguments: url, name of the graph, lineage, `run` or `resume`.
"""

from __future__ import annotations

import asyncio
import sys

import studio_graphs

from graphagent import Executor, SqlCheckpoints


async def _main(url: str, name: str, lineage: str, what: str) -> None:
    async with SqlCheckpoints(url) as store:
        executor = Executor(getattr(studio_graphs, name), store)
        result = await (executor.run({}, lineage=lineage) if what == "run" else executor.resume(lineage))
        print(result.status)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
