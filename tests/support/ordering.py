"""Helpers that fix in which order concurrent nodes end, without sleeping."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio


class Turns:
    """Parties that end in the given order, however they were started."""

    def __init__(self, order: Sequence[str]) -> None:
        self._next = dict(itertools.pairwise(order))
        self._events = {name: anyio.Event() for name in order}
        self._events[order[0]].set()

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait until all before `name` have ended."""
        await self._events[name].wait()
        yield
        if name in self._next:
            self._events[self._next[name]].set()
