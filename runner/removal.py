"""Removing a session with all that was stored for its runs."""

from __future__ import annotations

from graphagent.agents.graph_agent import session_lineage
from graphagent.agents.invocation import RunOptions
from graphagent.checkpoint.store import CheckpointStore
from graphagent.ids import fresh_id
from graphagent.ledger import SessionKey
from graphagent.services import SessionService
from runner.run_state import RunState
from runner.turns import Turns, lock_name


async def remove_session(sessions: SessionService, checkpoints: CheckpointStore, turns: Turns, key: SessionKey) -> bool:
    """Remove the session, and the checkpoints of its runs; False if there was no such session.

    Raises SessionBusy while a run goes on in it, unless `turns` waits for its end.
    """
    async with turns.hold(RunState(fresh_id(), key, (), RunOptions())):
        found = await sessions.delete(key)
        await checkpoints.delete(session_lineage(key))
    await checkpoints.delete(lock_name(key))
    return found
