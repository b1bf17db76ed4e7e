"""The context of one of several things that the body of a node does side by side, such as the calls of tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from graphagent.checkpoint.record import Question
from graphagent.engine.context import NodeContext
from graphagent.engine.effects import Claim, Ledger
from graphagent.engine.questions import InterruptSignal

QUESTIONS = 1000
"""Questions that one part may ask: part number n counts its own from (n + 1) * QUESTIONS."""


class PartContext(NodeContext):
    """A context for part `number` (from 0) of a body. Its questions, effects, keys, random numbers and child graphs are
    its own, so they are found again whatever the other parts do, or don't do any more, when the node runs again.

    `broken`: what the engine's side of it raised last, None as long as all went well. That is a failure of the node,
    also if the code between swallowed it.
    """

    __slots__ = ("_number", "_parent", "_scope", "broken")

    def __init__(self, parent: NodeContext, number: int, scope: str) -> None:
        super().__init__(parent._frame, parent._position, parent._activation)
        self._attempt = parent._attempt
        self._ordinal = (number + 1) * QUESTIONS
        self._number = number
        self._parent = parent
        self._scope = scope
        self.broken: Exception | None = None

    def _digest(self, name: str) -> str:
        return super()._digest(f"{self._scope}/{name}")

    def ask(self, key: str, prompt: Any, answer_type: Any) -> Any:
        """See `NodeContext.ask`; the question counts as one of the whole node too."""
        known = len(self.asked)
        try:
            return super().ask(key, prompt, answer_type)
        except Exception as error:
            self.broken = error
            raise
        finally:
            self._parent.asked += self.asked[known:]

    def take(self, questions: tuple[Question, ...]) -> None:
        """See `NodeContext.take`; the questions count as those of the whole node too."""
        self._parent.asked += questions
        super().take(questions)

    def nested(self, scope: str) -> str:
        """See `NodeContext.nested`."""
        return super().nested(f"{scope}[{self._number}]")

    async def claim(self, name: str, fn: Callable[..., Any], reconciles: bool, idempotent: bool) -> Claim:
        """See `NodeContext.claim`; what other parts have asked doesn't hold this one up."""
        if self.asked:
            raise InterruptSignal(self.asked[0].key)
        parent = self._parent
        if parent._ledger is None:
            parent._ledger = Ledger(self._frame, self._frame.origin(self._position))
        own, may_repeat = f"{self._scope}/{name}", reconciles or idempotent
        try:
            return await parent._ledger.claim(own, lambda: self.idempotency_key(name), fn, may_repeat=may_repeat)
        except Exception as error:
            self.broken = error
            raise

    async def commit(self, claim: Claim, result: Any, *, final: bool = False) -> None:
        """See `NodeContext.commit`."""
        try:
            assert self._parent._ledger is not None
            await self._parent._ledger.commit(claim, result, final=final)
        except Exception as error:
            self.broken = error
            raise


def put_in_order(ctx: NodeContext, parts: Iterable[PartContext]) -> None:
    """Let the open questions of a node stand in the order of its parts, whichever of them asked first."""
    ctx.asked = tuple(question for part in parts for question in part.asked)
