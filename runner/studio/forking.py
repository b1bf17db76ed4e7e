"""Forks that are made beside the session of a page, which stays on its own run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphagent.debug.driver import Driver
from graphagent.debug.session import DebugSession


async def forked(driver: Driver, checkpoint: str, lineage: str, patch: Mapping[str, Any] | None = None) -> str:
    """Fork a run from a checkpoint into a new lineage, and edit it there if there is a patch; returns the id of the
    newest row. Raises what `DebugSession.fork` and `edit` raise."""
    async with DebugSession(driver) as session:
        await session.open(checkpoint)
        made = await session.fork(lineage)
        return (made if patch is None else await session.edit(patch)).moment.id
