"""Iterators that are closed for sure, whether or not they are generators."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar

import anyio

T = TypeVar("T")


async def close(items: AsyncIterator[Any]) -> None:
    """Close an iterator that can be closed, also while its reader is being cancelled: connections don't stay open."""
    aclose = getattr(items, "aclose", None)
    if aclose is not None and getattr(items, "ag_frame", items) is not None:  # a generator that has ended has no frame
        with anyio.CancelScope(shield=True):
            await aclose()


class closing(Generic[T]):  # used as a context manager only, once a model call: a generator costs more
    """A block in which an iterator is read; it is closed at the end, also while its reader is being cancelled."""

    __slots__ = ("_items",)

    def __init__(self, items: AsyncIterator[T]) -> None:
        self._items = items

    async def __aenter__(self) -> AsyncIterator[T]:
        return self._items

    async def __aexit__(self, *exc: object) -> None:
        await close(self._items)
