"""A real store whose calls fail on command, for what an engine does when a write or a read goes wrong."""

from __future__ import annotations

from typing import Any


class Faulty:
    """Passes every call on to `store`; from the call of `method` after the first `good` ones on, `error` is raised
    instead, until `error` is set to None."""

    def __init__(self, store: Any, method: str, error: Exception | None, *, good: int = 0) -> None:
        self.store = store
        self.method = method
        self.error = error
        self.good = good

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        if name != self.method:
            return found

        async def call(*args: Any, **options: Any) -> Any:
            if self.good > 0 or self.error is None:
                self.good -= 1
                return await found(*args, **options)
            raise self.error

        return call
