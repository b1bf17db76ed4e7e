"""Time limits on work that may have to stand in line first: only the work is timed, not the line.

How long a line is says how many want something at once, not that a store hangs. So a limit on the work would end
healthy work under load. Whoever makes others wait their turn bounds that wait by a limit of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import anyio


@dataclass(slots=True)
class _Limit:
    """A limit whose clock stands still while anything under it is in a line."""

    scope: anyio.CancelScope
    outer: _Limit | None
    waiting: int = 0
    left: float = math.inf

    def stop(self) -> None:
        if not self.waiting and self.scope.deadline < math.inf:
            self.left = self.scope.deadline - anyio.current_time()
            self.scope.deadline = math.inf
        self.waiting += 1

    def go_on(self) -> None:
        self.waiting -= 1
        if not self.waiting and self.left < math.inf:
            self.scope.deadline = anyio.current_time() + self.left


_innermost: ContextVar[_Limit | None] = ContextVar("graphagent_limit", default=None)


@contextmanager
def at_most(seconds: float | None, *, shield: bool = False) -> Iterator[anyio.CancelScope]:
    """A scope that ends the block after so many seconds (None: never) of work: those spent `in_line` don't count.

    As with `anyio.move_on_after`, the scope's `cancelled_caught` says whether it did. `shield`: a cancellation from
    outside takes effect after the block.
    """
    with anyio.move_on_after(seconds, shield=shield) as scope:
        token = _innermost.set(_Limit(scope, _innermost.get()))
        try:
            yield scope
        finally:
            _innermost.reset(token)


@contextmanager
def in_line() -> Iterator[None]:
    """Stop the clocks of the limits that the caller works under, while it waits for others."""
    stopped = []
    limit = _innermost.get()
    while limit is not None:
        limit.stop()
        stopped.append(limit)
        limit = limit.outer
    try:
        yield
    finally:
        for limit in stopped:
            limit.go_on()
