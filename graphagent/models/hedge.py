"""Several models as one: they are asked one after the other in short order, and the first that answers is heard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import anyio

from graphagent.agents.closing import close, closing
from graphagent.agents.model import Delta, Model, ModelRequest
from graphagent.errors import ModelError
from graphagent.models.failover import checked, combined, smallest_window


class HedgeModel:
    """Asks the first model, and after each delay the next one too; the first that says something wins, the others are
    cancelled. If nobody is being asked any more, the next one is asked at once.

    `delay`: seconds between two starts, or the start of each later model in seconds, not descending. Raises ValueError
    without models or for delays that don't fit them.
    """

    def __init__(
        self, models: Sequence[Model], *, delay: float | Sequence[float] = 0.1, name: str | None = None
    ) -> None:
        self._models = checked(models)
        self._starts = _starts(len(self._models), delay)
        self.name = name or self._models[0].name

    @property
    def context_window(self) -> int | None:
        """The smallest one of the models that have one, so that a request fits whichever answers."""
        return smallest_window(self._models)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """The answer of the model that was first to say something; ModelError with each failure if none did."""
        race = _Race(self._models, self._starts, request)
        winner = await race.run()
        if winner is None:
            raise combined([(self._models[place], error) for place, error in sorted(race.failures.items())])
        begun, deltas = winner
        async with closing(deltas):
            for delta in begun:
                yield delta
            async for delta in deltas:
                yield delta


class _Race:
    """One request to several models. It is over before anything is handed on, so no task outlives it."""

    def __init__(self, models: Sequence[Model], starts: Sequence[float], request: ModelRequest) -> None:
        self.failures: dict[int, Exception] = {}
        self._models = models
        self._starts = starts
        self._request = request
        self._begun: list[Delta] = []
        self._winner: AsyncIterator[Delta] | None = None
        self._idle = anyio.Event()  # set when nobody is being asked any more
        self._asked = 0

    async def run(self) -> tuple[list[Delta], AsyncIterator[Delta]] | None:
        """What the winner has said so far and the rest of its stream; None if all failed."""
        begin = anyio.current_time()
        try:
            async with anyio.create_task_group() as tasks:
                for place, start in enumerate(self._starts):
                    with anyio.move_on_after(begin + start - anyio.current_time()):
                        await self._idle.wait()
                    self._idle = anyio.Event()
                    self._asked += 1
                    tasks.start_soon(self._ask, place, tasks.cancel_scope)
        except BaseException:
            if self._winner is not None:  # cancelled just when it had won
                await close(self._winner)
            raise
        return None if self._winner is None else (self._begun, self._winner)

    async def _ask(self, place: int, everybody: anyio.CancelScope) -> None:
        """Ask one model until it says something; then it has won, unless another was quicker."""
        deltas = self._models[place].stream(self._request)
        begun: list[Delta] = []
        try:
            async for delta in deltas:
                begun.append(delta)
                if _says_something(delta):
                    if self._winner is None:
                        self._begun, self._winner = begun, deltas
                    everybody.cancel()
                    return
            self.failures[place] = ModelError("it answered nothing", retryable=True)
        except Exception as error:
            self.failures[place] = error
        finally:
            if self._winner is not deltas:  # that one stays open for the reader
                await close(deltas)
        self._asked -= 1
        if not self._asked:
            self._idle.set()


def _says_something(delta: Delta) -> bool:
    """True for a piece with content; usage and the end alone are none."""
    return bool(delta.text or delta.reasoning or delta.tool_calls)


def _starts(count: int, delay: float | Sequence[float]) -> tuple[float, ...]:
    """When each model is asked, in seconds from the beginning."""
    if isinstance(delay, int | float):
        if delay < 0:
            raise ValueError(f"the delay between two models can't be {delay} s; give 0 or more")
        return tuple(place * delay for place in range(count))
    starts = (0.0, *delay)
    if len(starts) != count or list(starts) != sorted(starts):
        raise ValueError(
            f"{count} model(s) need {count - 1} delay(s) that don't descend, one for each but the first, "
            f"not {list(delay)}"
        )
    return starts
