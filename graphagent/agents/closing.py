"""Iterators that are closed for sure, whether or not they are generators."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


async def close(items: AsyncIterator[Any]) -> None:
    """Close an iterator that can be closed, also while its reader is being cancelled: connections don't stay open."""
    aclose = getattr(items, "aclose", None)
    if aclose is not None:
        with anyio.CancelScope(shield=True):
            await aclose()


@asynccontextmanager
async def closing(items: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """The iterator; it is closed at the end, also while its reader is being cancelled."""
    try:
        yield items
    finally:
        await close(items)
