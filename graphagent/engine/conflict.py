"""What happens when a lineage is already held: the four policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from graphagent.checkpoint.store import Begin, Lease, Read
from graphagent.engine.frame import Tree
from graphagent.engine.run import Handle
from graphagent.errors import LineageBusy, RunCancelled
from graphagent.ids import fresh_id

if TYPE_CHECKING:
    from graphagent.engine.executor import Executor

ConflictPolicy = Literal["reject", "queue", "cancel_previous", "fork"]
FIRST_WAIT, LONGEST_WAIT = 0.005, 0.25


async def take_lineage(
    executor: Executor, tree: Tree, handle: Handle, namespace: str, seq: int | None, *, may_fork: bool
) -> tuple[Lease, Read | None]:
    """The lease of the tree's lineage by the executor's policy; with `fork` the tree moves to a new lineage.

    With it comes the row of the frame that the run begins at (`seq`, or the newest), if the store reads it along.
    Raises LineageBusy under `reject`, and for a resume under `fork`, which would answer the wrong run.
    """
    policy, store = executor.on_conflict, executor.store
    # asked of the class: a wrapper that passes on whatever it lacks itself would be gone round
    begin: Begin | None = store.begin if hasattr(type(store), "begin") else None  # type: ignore[attr-defined]
    wait = FIRST_WAIT
    while True:
        try:
            if begin is not None:
                return await begin(tree.lineage, tree.run_id, namespace, seq, on_signal=handle.on_signal)
            return await store.acquire(tree.lineage, tree.run_id, on_signal=handle.on_signal), None
        except LineageBusy:
            if policy == "reject" or (policy == "fork" and not may_fork):
                raise
        if policy == "fork":
            tree.lineage = await _forked(executor, tree.lineage)
            continue
        if policy == "cancel_previous":
            tree.supersedes = True
            await executor.ask_to_cancel(tree.lineage)
        await executor.clock.sleep(wait)
        if tree.stop == "cancel":
            raise RunCancelled(f"the run was cancelled while it waited for lineage '{tree.lineage}'")
        wait = min(wait * 2, LONGEST_WAIT)


async def _forked(executor: Executor, lineage: str) -> str:
    """A new lineage that goes on from the last finished turn of one that is being written."""
    new = fresh_id()
    for header in await executor.store.history(lineage):
        if header.source == "end":
            await executor.fork(lineage, header.id, new_lineage=new)
            break
    return new
