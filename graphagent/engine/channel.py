"""A bounded queue from many writers to one reader that costs nothing while neither has to wait.

An anyio memory stream takes a turn of the event loop for every item it hands over, some 10 us; a run with a listener
sends several events a step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


class Channel(Generic[T]):
    """Writers await `room()` while `len(items) >= size`, then `add`. The reader pops and says `taken` if somebody is
    `waiting`, or awaits `get`.

    `items` is open to both sides because a call for every look at it would be most of what an event costs.
    """

    __slots__ = ("_ended", "_filled", "items", "left", "size", "waiting")

    def __init__(self, size: int) -> None:
        self.size = max(size, 1)
        self.items: deque[T] = deque()
        self.left = False
        self._ended = False
        self._filled: anyio.Event | None = None
        self.waiting: anyio.Event | None = None  # a writer that waits for room

    async def room(self) -> bool:
        """Wait until there is room for an item; False once the reader has left."""
        while len(self.items) >= self.size and not self.left:
            if self.waiting is None:
                self.waiting = anyio.Event()
            await self.waiting.wait()
        return not self.left

    def add(self, items: Iterable[T]) -> None:
        """Hand over items; there must be room."""
        self.items.extend(items)
        if self._filled is not None:
            self._filled.set()
            self._filled = None

    async def get(self) -> T:
        """The next item, in the order in which they were added. Raises EndOfStream after the last."""
        while not self.items:
            if self._ended:
                raise anyio.EndOfStream
            if self._filled is None:
                self._filled = anyio.Event()
            await self._filled.wait()
        item = self.items.popleft()
        self.taken()
        return item

    def taken(self) -> None:
        """An item was taken: there is room again."""
        if self.waiting is not None:
            self.waiting.set()
            self.waiting = None

    def end(self) -> None:
        """No more items will come."""
        self._ended = True
        if self._filled is not None:
            self._filled.set()

    def leave(self) -> None:
        """The reader wants no more; writers don't wait any longer."""
        self.left = True
        if self.waiting is not None:
            self.waiting.set()
