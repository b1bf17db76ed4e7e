"""A model that says what it is told to say: for tests, examples and demos without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import anyio
import anyio.lowlevel

from graphagent.agents.model import Delta, ModelRequest, ToolCallDelta
from graphagent.errors import ModelError, alternatives
from graphagent.ledger import TokenUsage
from graphagent.messages import Message

Item = str | Message | Mapping[str, Any] | Sequence[Delta | str | Exception] | Exception | type[Exception]
"""What is answered to one request: see ScriptedModel."""

_KEYS = ("content", "reasoning", "tool_calls", "finish_reason")


class ScriptedModel:
    """Answers each request with the next item; a function in place of the items makes one from the request.

    An item is a text; a `Message`; a mapping with `tool_calls` (each with `name`, `arguments`, and `id` if it matters)
    and, if there are any, `content`, `reasoning`, `finish_reason`; a list of deltas, texts and exceptions, which go out
    as they are; an exception, which is raised; or a function that makes one of these from the request. An answer ends
    properly unless its list ends with an exception, or with `Delta(finish_reason="incomplete")` for one that was cut.

    `requests`: what was asked, oldest first (`keep_requests=False` keeps none). `pieces`: characters of a delta (None:
    the text in one). `delay`: seconds before each delta. `usage`: what each answer reports. Items may be endless, such
    as `itertools.cycle([...])`. Raises ModelError when they are used up.
    """

    def __init__(
        self,
        items: Iterable[Item | Callable[[ModelRequest], Item]] | Callable[[ModelRequest], Item],
        *,
        name: str = "scripted",
        context_window: int | None = None,
        pieces: int | None = None,
        delay: float = 0.0,
        usage: TokenUsage | None = None,
        keep_requests: bool = True,
    ) -> None:
        self.name = name
        self.requests: list[ModelRequest] = []
        self._items: Iterator[Item | Callable[[ModelRequest], Item]] = (
            iter(lambda: items, None) if callable(items) else iter(items)
        )
        self._window = context_window
        self._pieces = pieces
        self._delay = delay
        self._usage = usage
        self._keep = keep_requests
        self._asked = 0

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r})"

    @property
    def context_window(self) -> int | None:
        """What was given to the constructor."""
        return self._window

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """The deltas of the next item. Raises what the item raises, or ModelError if there is none."""
        number, self._asked = self._asked, self._asked + 1
        if self._keep:
            self.requests.append(request)
        for delta in self._deltas(self._next(request, number), number):
            if self._delay:
                await anyio.sleep(self._delay)
            elif self._pieces is not None:
                await anyio.lowlevel.checkpoint()
            if not isinstance(delta, Delta):
                raise delta
            yield delta

    def _next(self, request: ModelRequest, number: int) -> Item:
        item = next(self._items, None)
        if item is None:
            raise ModelError(
                f"the script of model '{self.name}' is over: request {number + 1} came and it has {number} item(s); "
                "add an item, or give a function or 'itertools.cycle' for an endless one",
                kind="invalid_request",
            )
        if callable(item) and not isinstance(item, type):
            return item(request)
        return item

    def _deltas(self, item: Item, number: int) -> Sequence[Delta | Exception]:
        """An item as deltas, the end announced; an exception stands for itself."""
        if isinstance(item, Mapping):
            return self._said(item, number)
        if isinstance(item, Message):
            calls = [call.model_dump() for call in item.tool_calls]
            return self._said({"content": item.text, "reasoning": item.reasoning, "tool_calls": calls}, number)
        if isinstance(item, Exception) or (isinstance(item, type) and issubclass(item, Exception)):
            return [item if isinstance(item, Exception) else item()]
        if isinstance(item, str):
            deltas: list[Delta | Exception] = [*self._spoken(text=item)]
        elif isinstance(item, Sequence):
            deltas = [Delta(part) if isinstance(part, str) else part for part in item]
        else:
            raise self._no_item(item)
        if not any(not isinstance(delta, Delta) or delta.finish_reason is not None for delta in deltas):
            deltas.append(Delta(finish_reason="stop", usage=self._usage))
        return deltas

    def _said(self, item: Mapping[str, Any], number: int) -> list[Delta]:
        for key in item:
            if key not in _KEYS:
                raise ValueError(f"an item of model '{self.name}' has '{key}': {alternatives(key, _KEYS)}")
        deltas: list[Delta] = []
        if reasoning := item.get("reasoning"):
            deltas += self._spoken(reasoning=reasoning)
        if text := item.get("content"):
            deltas += self._spoken(text=text)
        calls = [
            ToolCallDelta(place, call.get("id") or f"call_{number}_{place}", call["name"], call.get("arguments", ""))
            for place, call in enumerate(item.get("tool_calls") or ())
        ]
        reason = item.get("finish_reason") or ("tool_calls" if calls else "stop")
        deltas.append(Delta(tool_calls=tuple(calls), finish_reason=reason, usage=self._usage))
        return deltas

    def _spoken(self, text: str = "", reasoning: str = "") -> Iterator[Delta]:
        """One of the two, whole or in pieces."""
        whole = text or reasoning
        size = self._pieces or len(whole)
        for start in range(0, len(whole), size or 1):
            part = whole[start : start + size]
            yield Delta(text=part) if text else Delta(reasoning=part)

    def _no_item(self, item: object) -> TypeError:
        return TypeError(
            f"an item of model '{self.name}' is a '{type(item).__name__}'; it must be a text, a Message, a mapping "
            "with 'tool_calls', a list of deltas, an exception, or a function that makes one of these from the request"
        )
