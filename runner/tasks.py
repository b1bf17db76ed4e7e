"""Work that outlives the call that started it, which no task group of the caller's allows: runs, and jobs after them.

This is the one place that needs asyncio: anyio starts tasks in scopes only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

_tasks: set[asyncio.Task[Any]] = set()  # the event loop itself keeps weak references only


def start_task(work: Coroutine[Any, Any, None], name: str) -> None:
    """Begin some work, in a copy of the caller's context variables. It may raise nothing but what ends a process."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
