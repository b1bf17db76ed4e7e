"""A real store whose process dies at a chosen write: nothing that would come later happens."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import anyio.lowlevel

WRITES = ("append", "put_activations", "claim_effect", "commit_effect")


class Died(BaseException):
    """The end of the process, as far as one process can play another."""


class Dying:
    """Passes calls on to `store` and counts its writes; at write number `at` (from 1) the process dies `before` or
    `after` it is done. The lease is free then, as that of a dead owner is. `pauses`: how many turns of the event loop
    each write takes first, in turn."""

    def __init__(self, store: Any, at: int = 0, when: str = "before", pauses: tuple[int, ...] = (0,)) -> None:
        self.store = store
        self.at = at
        self.when = when
        self.writes = 0
        self.dead = False
        self._pauses = itertools.cycle(pauses)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        if name == "release" or not callable(found):
            return found

        async def call(*args: Any, **options: Any) -> Any:
            if self.dead:
                raise Died
            return await (self._write(found, args, options) if name in WRITES else found(*args, **options))

        return call

    async def _write(self, found: Callable[..., Awaitable[Any]], args: Any, options: Any) -> Any:
        self.writes += 1
        here = self.writes == self.at
        for _ in range(next(self._pauses)):
            await anyio.lowlevel.checkpoint()
        if here and self.when == "before":
            self.dead = True
            raise Died
        done = await found(*args, **options)
        if here:
            self.dead = True
            raise Died
        return done


async def survives(run: Callable[[], Awaitable[Any]]) -> bool:
    """Whether `run` comes to its end; False if the process died on the way."""
    try:
        await run()
    except Died:
        return False
    except BaseExceptionGroup as group:
        if group.split(Died)[1] is not None:
            raise
        return False
    return True
