"""Cancellations that mean nobody here: a node awaited something that was cancelled elsewhere."""

from __future__ import annotations

import asyncio


def stray(error: asyncio.CancelledError) -> Exception:
    """The failure of a node out of which `error` came; raises `error` itself if the node really is being cancelled.

    Only asyncio needs this: there a cancelled task cancels whoever awaits it (see `asyncio.Task.cancelling`).
    """
    task = asyncio.current_task()
    if task is None or task.cancelling():
        raise error
    failure = RuntimeError(
        "it awaited a task or future that was cancelled elsewhere; catch asyncio.CancelledError around that await"
    )
    failure.__cause__ = error
    return failure
