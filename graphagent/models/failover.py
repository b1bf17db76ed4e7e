"""Several models as one: the next one takes over from one that fails before it has said anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from graphagent.agents.closing import closing
from graphagent.agents.model import Delta, Model, ModelRequest
from graphagent.errors import ModelError


class FailoverModel:
    """Asks the models in their order until one begins to answer. From its first piece on, a failure is raised as it
    is, since another model's answer would come on top. If all fail, the ModelError names each with its failure.

    Raises ValueError without models.
    """

    def __init__(self, models: Sequence[Model], *, name: str | None = None) -> None:
        self._models = checked(models)
        self.name = name or self._models[0].name

    @property
    def context_window(self) -> int | None:
        """The smallest one of the models that have one, so that a request fits whichever answers."""
        return smallest_window(self._models)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """The answer of the first model that gives one."""
        failures: list[tuple[Model, Exception]] = []
        for model in self._models:
            async with closing(model.stream(request)) as deltas:
                try:
                    first = await anext(deltas, None)
                except Exception as error:
                    failures.append((model, error))
                    continue
                if first is not None:
                    yield first
                async for delta in deltas:
                    yield delta
                return
        raise combined(failures)


def checked(models: Sequence[Model]) -> tuple[Model, ...]:
    """The models; ValueError if there is none or one of them is None."""
    found = tuple(models)
    if not found or any(model is None for model in found):
        raise ValueError(f"at least one model is needed and none may be None; given: {list(found)}")
    return found


def smallest_window(models: Sequence[Model]) -> int | None:
    """The smallest known context window; None if none is known."""
    return min((model.context_window for model in models if model.context_window is not None), default=None)


def combined(failures: Sequence[tuple[Model, Exception]]) -> ModelError:
    """One error for several models; its kind is theirs if they agree, and it is retryable if one of them is."""
    told = "; ".join(f"'{model.name}': {error}" for model, error in failures)
    kinds = {error.kind if isinstance(error, ModelError) else "api_error" for _, error in failures}
    made = ModelError(
        f"none of {len(failures)} model(s) answered: {told}",
        kind=kinds.pop() if len(kinds) == 1 else "api_error",
        retryable=any(isinstance(error, ModelError) and error.retryable for _, error in failures),
    )
    made.__cause__ = ExceptionGroup("failures of models", [error for _, error in failures])
    return made
