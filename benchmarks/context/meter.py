"""Counts what models are sent and answer, in tokens of GPT-4o (`o200k_base`), exactly and without a network."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any, NamedTuple

from graphagent.agents.closing import closing
from graphagent.agents.model import Delta, Model, ModelRequest
from graphagent.ledger import TokenUsage
from graphagent.models.tokens import TokenCounter

FRAME = 3
"""Tokens that a request takes beside its messages; a message takes 4 (the rule of OpenAI's cookbook)."""
PIECE = 200_000
"""Characters that are encoded at once: the library refuses texts of more than 200,000 tokens."""


class Exchange(NamedTuple):
    """Tokens of one request and of the answer to it."""

    asked: int
    answered: int

    @property
    def both(self) -> int:
        """Together."""
        return self.asked + self.answered


class Metered:
    """A model that notes what it is sent and answers in `exchanges`, and says so in the usage of its answers."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self.exchanges: list[Exchange] = []
        self._model = model

    @property
    def context_window(self) -> int | None:
        """That of the model."""
        return self._model.context_window

    @property
    def asked(self) -> int:
        """Tokens of all requests."""
        return sum(one.asked for one in self.exchanges)

    @property
    def spent(self) -> int:
        """Tokens of all requests and answers."""
        return sum(one.both for one in self.exchanges)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """The model's answer."""
        asked, texts = COUNTER.request(request) + FRAME, [""]
        try:
            async with closing(self._model.stream(request)) as deltas:
                async for delta in deltas:
                    texts += [delta.text, *(call.arguments for call in delta.tool_calls)]
                    if delta.finish_reason is not None:
                        used = TokenUsage(input_tokens=asked, output_tokens=tokens("".join(texts)))
                        delta = delta._replace(usage=used)
                    yield delta
        finally:  # a request that is refused was sent all the same
            self.exchanges.append(Exchange(asked, tokens("".join(texts))))


def tokens(text: str) -> int:
    """Tokens of a text."""
    return _counted(text) if text else 0


def cut(text: str, size: int) -> str:
    """The beginning of a text that has so many tokens; a shorter one is filled up."""
    found = _encoding().encode_ordinary(text[: size * 40])[:size]
    whole: str = _encoding().decode(found) + " so" * (size - len(found))
    return whole


@lru_cache(200_000)
def _counted(text: str) -> int:
    pieces = (text[at : at + PIECE] for at in range(0, len(text), PIECE))
    return sum(len(_encoding().encode_ordinary(piece)) for piece in pieces)


@lru_cache(1)
def _encoding() -> Any:
    with warnings.catch_warnings():  # it reads its files with a function that a library of its own deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai

        return bpe_openai.get_encoding("o200k_base")


COUNTER = TokenCounter(lambda text: float(tokens(text)))
