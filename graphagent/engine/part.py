"""The context of one of several things that the body of a node does side by side, such as the calls of tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphagent.engine.context import NodeContext
from graphagent.engine.effects import Claim

QUESTIONS = 1000
"""Questions that one part may ask: part number n counts its own from (n + 1) * QUESTIONS."""


class PartContext(NodeContext):
    """A context for part `number` (from 0) of a body. Its questions, effects, keys and random numbers are its own, so
    they are found again whatever the other parts do, or don't do any more, when the node runs again.

    `broken`: what the engine's side of it raised last, None as long as all went well. That is a failure of the node,
    also if the code between swallowed it.
    """

    __slots__ = ("_parent", "_scope", "broken")

    def __init__(self, parent: NodeContext, number: int, scope: str) -> None:
        super().__init__(parent._frame, parent._position, parent._activation)
        self._attempt = parent._attempt
        self._ordinal = (number + 1) * QUESTIONS
        self._parent = parent
        self._scope = scope
        self.broken: Exception | None = None

    def _digest(self, name: str) -> str:
        return super()._digest(f"{self._scope}/{name}")

    def ask(self, key: str, prompt: Any, answer_type: Any) -> Any:
        """See `NodeContext.ask`; the question counts as one of the whole node too."""
        known = len(self._asked)
        try:
            return super().ask(key, prompt, answer_type)
        except Exception as error:
            self.broken = error
            raise
        finally:
            self._parent._asked += self._asked[known:]

    async def claim(self, name: str, fn: Callable[..., Any], reconciles: bool, idempotent: bool) -> Claim:
        """See `NodeContext.claim`."""
        try:
            return await self._parent.claim(f"{self._scope}/{name}", fn, reconciles, idempotent)
        except Exception as error:
            self.broken = error
            raise

    async def commit(self, claim: Claim, result: Any) -> None:
        """See `NodeContext.commit`."""
        try:
            await self._parent.commit(claim, result)
        except Exception as error:
            self.broken = error
            raise
