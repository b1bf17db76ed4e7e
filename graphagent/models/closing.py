"""Streams that are closed for sure, whatever kind of iterator a model hands out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio


async def close(deltas: AsyncIterator[Any]) -> None:
    """Close a stream, also while its reader is being cancelled, so that connections don't stay open."""
    aclose = getattr(deltas, "aclose", None)
    if aclose is not None:
        with anyio.CancelScope(shield=True):
            await aclose()


@asynccontextmanager
async def closing(deltas: AsyncIterator[Any]) -> AsyncIterator[AsyncIterator[Any]]:
    """The stream; it is closed at the end."""
    try:
        yield deltas
    finally:
        await close(deltas)
