"""Callbacks around node runs. Those of the executor and the graph come first, then those of the node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from graphagent.unset import UNSET

Before = Callable[[Any, Any], Any]
After = Callable[[Any, Any, Any, Exception | None], Any]
OnError = Callable[[Any, Any, Exception], Any]


@dataclass(frozen=True, slots=True)
class NodeCallbacks:
    """Functions, sync or async, that are called around a node with its context and state.

    `before(ctx, state)`: a result other than None stands for the node's run. `after(ctx, state, result, error)`: once
    at the end, also after a cache hit or a final failure; a result other than None replaces the node's (and recovers
    a failed one), and later callbacks see it. `on_error(ctx, state, error)`: at every failed attempt, only looks on.
    `on_activation_end(ctx, outcome)`: awaited before an activation counts as finished.
    """

    before: Before | None = None
    after: After | None = None
    on_error: OnError | None = None
    on_activation_end: Callable[[Any, Any], Any] | None = None


async def call_before(callbacks: Sequence[NodeCallbacks], ctx: Any, state: Any) -> Any:
    """The first result other than None, else UNSET."""
    for callback in callbacks:
        if callback.before is not None:
            result = await settled(callback.before(ctx, state))
            if result is not None:
                return result
    return UNSET


async def call_after(
    callbacks: Sequence[NodeCallbacks], ctx: Any, state: Any, result: Any, error: Exception | None
) -> Any:
    """The result after all have seen it, UNSET if there is none (a failure that nobody recovered).

    The node's own callbacks run first here: they are nearer to it.
    """
    current = UNSET if error is not None else result
    for callback in reversed(callbacks):
        if callback.after is not None:
            shown = None if current is UNSET else current
            changed = await settled(callback.after(ctx, state, shown, error if current is UNSET else None))
            if changed is not None:
                current = changed
    return current


async def call_on_error(callbacks: Sequence[NodeCallbacks], ctx: Any, state: Any, error: Exception) -> None:
    """Tell every callback about a failed attempt."""
    for callback in callbacks:
        if callback.on_error is not None:
            await settled(callback.on_error(ctx, state, error))


def call_end(callbacks: Sequence[NodeCallbacks], ctx: Any, outcome: Any) -> Awaitable[None] | None:
    """Let every callback finish its work before the activation counts as finished: None if all of them have, else what
    has to be awaited for that."""
    for place, callback in enumerate(callbacks):
        if callback.on_activation_end is not None:
            waits = callback.on_activation_end(ctx, outcome)
            if waits is not None and isawaitable(waits):
                return _rest(waits, callbacks[place + 1 :], ctx, outcome)
    return None


async def _rest(waits: Awaitable[Any], callbacks: Sequence[NodeCallbacks], ctx: Any, outcome: Any) -> None:
    await waits
    for callback in callbacks:
        if callback.on_activation_end is not None:
            await settled(callback.on_activation_end(ctx, outcome))


async def settled(value: Any) -> Any:
    """The value, awaited if it is awaitable."""
    return await value if isawaitable(value) else value
