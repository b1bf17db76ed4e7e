"""A model whose answers are recorded to a file and replayed from it: tests with a real model's words, offline."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from graphagent.agents.closing import closing
from graphagent.agents.model import Delta, Model, ModelRequest
from graphagent.errors import ModelError
from graphagent.models.cassette import Call, Cassette, asked_of, key_of

Mode = Literal["record", "replay", "auto"]
Match = Literal["content", "order"]


class RecordedModel:
    """Records what a model answers, or replays it.

    `mode`: `record` begins the file anew and asks the model; `replay` never asks it (it may be None) and raises
    ModelError for a request that is not on file, saying what differs; `auto` replays what is on file and records the
    rest. `match`: `content` finds an answer by the request, equal requests getting their answers in recorded order;
    `order` gives the n-th request the n-th answer, so that a changed prompt replays too. A failed call is recorded with
    its ModelError, one that its reader left is not recorded.
    """

    def __init__(
        self, model: Model | None, path: str | PathLike[str], mode: Mode = "replay", *, match: Match = "content"
    ) -> None:
        if mode not in ("record", "replay", "auto"):
            raise ValueError(f"a cassette is opened with mode 'record', 'replay' or 'auto', not '{mode}'")
        if model is None and mode != "replay":
            raise ValueError(f"with mode '{mode}' a model is needed to be asked; give one, or replay")
        self._model = model
        self._mode = mode
        self._match = match
        self._cassette = Cassette(Path(path))
        self._waiting: dict[str, deque[Call]] | None = None  # recorded answers that were not given yet
        self._given = 0
        self.name = "recorded" if model is None else model.name

    @property
    def context_window(self) -> int | None:
        """That of the model; None if there is none."""
        return None if self._model is None else self._model.context_window

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """The recorded answer, or the model's own while it is written down. Raises ModelError."""
        asked = {place: key_of(value) for place, value in asked_of(request).items()}
        call = self._recorded(asked)
        if call is not None:
            for delta in call.deltas:
                yield delta
            if call.error is not None:
                raise call.error
            return
        if self._mode == "replay" or self._model is None:
            raise self._divergence(request, asked)
        heard: list[Delta] = []
        async with closing(self._model.stream(request)) as deltas:
            try:
                async for delta in deltas:
                    heard.append(delta)
                    yield delta
            except ModelError as error:
                self._cassette.add(request, tuple(heard), error)
                raise
        self._cassette.add(request, tuple(heard), None)

    def _recorded(self, asked: dict[str, str]) -> Call | None:
        """The next answer on file for this request; it is given once."""
        if self._waiting is None:
            self._waiting = self._opened()
        number, self._given = self._given, self._given + 1
        waiting = self._waiting.get(str(number) if self._match == "order" else _key(asked))
        return waiting.popleft() if waiting else None

    def _opened(self) -> dict[str, deque[Call]]:
        if self._mode == "record":
            self._cassette.clear()
            return {}
        self._cassette.load()
        if self._mode == "replay" and not self._cassette.calls:
            raise ModelError(
                f"there is no call on cassette '{self._cassette.path}'; record it first, with mode 'record' or 'auto'",
                kind="invalid_request",
            )
        found: dict[str, deque[Call]] = {}
        for number, call in enumerate(self._cassette.calls):
            key = str(number) if self._match == "order" else _key(call.asked)
            found.setdefault(key, deque()).append(call)
        return found

    def _divergence(self, request: ModelRequest, asked: dict[str, str]) -> ModelError:
        """Why there is no answer: what differs from the recorded call that is nearest."""
        calls = self._cassette.calls
        times = sum(call.asked == asked for call in calls)
        if self._match == "order":
            why = f"{len(calls)} call(s) are on it and this is request {self._given}"
        elif times:
            why = f"this request is on it {times} time(s), and came once more"
        else:
            number = min(range(len(calls)), key=lambda n: (*_distance(calls[n].asked, asked), n != self._given - 1))
            why = f"the nearest is call {number + 1}: {self._difference(calls[number].asked, request, asked)}"
        return ModelError(
            f"request {self._given} to model '{self.name}' is not on cassette '{self._cassette.path}': {why}; "
            "mend what changed, or record it again",
            kind="invalid_request",
        )

    def _difference(self, recorded: dict[str, str], request: ModelRequest, asked: dict[str, str]) -> str:
        """The first place at which two requests differ, with both values."""
        values = asked_of(request)
        place = next(place for place in [*asked, *recorded] if asked.get(place) != recorded.get(place))
        if place not in recorded:
            return f"{place} is new: {_short(values[place])}"
        if place not in asked:
            return f"{place} is missing: {_short(self._cassette.part(recorded[place]))}"
        return f"{place} was {_short(self._cassette.part(recorded[place]))} and is {_short(values[place])}"


def _key(asked: dict[str, str]) -> str:
    """A request by its parts; the order in which places are listed says nothing."""
    return json.dumps(asked, sort_keys=True)


def _distance(recorded: dict[str, str], asked: dict[str, str]) -> tuple[int, int]:
    """At how many places two requests differ, and how many places only one of them has."""
    places = recorded.keys() | asked.keys()
    return sum(recorded.get(place) != asked.get(place) for place in places), len(recorded.keys() ^ asked.keys())


def _short(value: Any, limit: int = 160) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
