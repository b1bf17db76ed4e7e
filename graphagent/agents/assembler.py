"""Puts the pieces of a streamed answer together, whatever the provider did to the order and the names of the pieces.

Providers that call themselves compatible number tool calls from 1 or give every call number 0, leave ids out or change
them on the way, repeat the name in each piece, and break off in the middle of the arguments. So a piece is matched by
its id first, then by its number, then by what the call so far looks like; a call that can't be read is kept and told
to the model, never run and never dropped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from pydantic_core import from_json

from graphagent.agents.model import Delta, Reply, ToolCallDelta
from graphagent.ledger import TokenUsage
from graphagent.messages import Message, ToolCall

INCOMPLETE = "incomplete"
"""The finish reason of an answer whose end was never announced."""

_DECODER = json.JSONDecoder(strict=False)  # models write line breaks into strings
_ENCODER = json.JSONEncoder(ensure_ascii=False)  # both made once, where the module's functions make one for every call
_NO_USAGE = TokenUsage()
_ALIASES = {"function_call": "tool_calls", "tool_use": "tool_calls", "max_tokens": "length", "end_turn": "stop"}
_CUT = {
    "length": "the answer was cut at its token limit; ask for less at once, or raise 'max_tokens'",
    INCOMPLETE: "the stream ended before its end was announced; call it again",
}


def assemble(deltas: Iterable[Delta], *, taken: Iterable[str] = ()) -> Reply:
    """The whole answer that these pieces make; `taken`: ids of tool calls that the conversation has used."""
    assembler = Assembler(lambda: taken)
    for delta in deltas:
        assembler.add(delta)
    return assembler.reply()


def merged_usage(one: TokenUsage | None, other: TokenUsage) -> TokenUsage:
    """The larger number of each kind: right for a count at the end, for a growing one, and for one sent in parts."""
    if one is None:
        return other
    return TokenUsage(
        input_tokens=max(one.input_tokens, other.input_tokens),
        output_tokens=max(one.output_tokens, other.output_tokens),
        cached_tokens=max(one.cached_tokens, other.cached_tokens),
        cost=max((cost for cost in (one.cost, other.cost) if cost is not None), default=None),
    )


class Assembler:
    """Takes deltas in the order in which they came; `reply` can be asked at any time, also after a failure.

    `taken()`: ids of tool calls that the conversation has used; asked for if the answer has calls. A call whose id is
    missing, or used already, gets `auto_call_N`, N being its place in the answer or the next number that is free.
    """

    def __init__(self, taken: Callable[[], Iterable[str]] = tuple) -> None:
        self._taken = taken
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_both: dict[tuple[str, int | None], _Call] = {}
        self._by_place: dict[int | None, _Call] = {}
        self._finish_reason: str | None = None
        self._usage: TokenUsage | None = None

    def add(self, delta: Delta) -> None:
        """Take the next piece."""
        if delta.text:
            self._text.append(delta.text)
        if delta.reasoning:
            self._reasoning.append(delta.reasoning)
        for piece in delta.tool_calls:
            self._add_call(piece)
        if delta.finish_reason:
            self._finish_reason = delta.finish_reason
        if delta.usage is not None:
            self._usage = merged_usage(self._usage, delta.usage)

    def reply(self) -> Reply:
        """What came so far. Its finish reason is `incomplete` if no piece announced the end; `invalid` names the calls
        that must not be run, and they stand among the message's calls too, so that their results have a partner."""
        reason = self._reason()
        calls: list[ToolCall] = []
        invalid: list[tuple[ToolCall, str]] = []
        used: set[str] = set()
        for place, call in enumerate(self._calls):
            cut = reason if reason in _CUT and place == len(self._calls) - 1 else None
            arguments, problem = call.read(cut)
            id = call.id
            if not id or id in used or id in self._taken():
                id = _free_id(place, {*used, *self._taken()})
            made = ToolCall(id=id, name=call.name, arguments=arguments)
            used.add(id)
            calls.append(made)
            if problem is not None:
                invalid.append((made, problem))
        message = Message(
            role="assistant",
            content="".join(self._text),
            tool_calls=tuple(calls),
            reasoning="".join(self._reasoning) or None,
        )
        return Reply(message, self._usage or _NO_USAGE, reason, tuple(invalid))

    def _reason(self) -> str:
        """The finish reason in our words; whether tools are asked for is decided by the calls that are there."""
        if self._finish_reason is None:
            return INCOMPLETE
        reason = _ALIASES.get(self._finish_reason, self._finish_reason)
        if reason in ("stop", "tool_calls"):
            return "tool_calls" if self._calls else "stop"
        return reason

    def _add_call(self, piece: ToolCallDelta) -> None:
        """Add a piece to the call that it belongs to, or begin a new one with it."""
        text = _text_of(piece.arguments)
        call = self._match(piece)
        if call is None or call.ended_by(piece, text):
            if not (piece.id or piece.name or text):
                return  # numbers that start above zero leave empty entries behind
            call = _Call(piece.place)
            self._calls.append(call)
        call.take(piece, text)
        self._by_place[piece.place] = self._by_place[None] = call  # under None: the one touched last
        if piece.id:
            self._by_id[piece.id] = self._by_both[piece.id, piece.place] = call

    def _match(self, piece: ToolCallDelta) -> _Call | None:
        """The call that a piece seems to go on: by id, then by number, then the last one for a piece without either."""
        if piece.id:
            found = self._by_both.get((piece.id, piece.place)) or self._by_id.get(piece.id)
            if found is not None:
                return found
        found = self._by_place.get(piece.place)
        if found is None and not (piece.id or piece.name):
            found = self._by_place.get(None)
        return found


class _Call:
    """A tool call that is still coming."""

    __slots__ = ("_parts", "_shifts", "id", "name", "place")

    def __init__(self, place: int | None) -> None:
        self.place = place
        self.id = ""
        self.name = ""
        self._parts: list[str] = []
        self._shifts = False  # its id has changed before, so that a new id says nothing

    def take(self, piece: ToolCallDelta, text: str) -> None:
        """Add a piece that belongs here. The first id stays; a name is repeated, or comes in pieces."""
        self.id = self.id or piece.id or ""
        self._shifts = self._shifts or bool(piece.id and piece.id != self.id)
        if piece.name and piece.name != self.name and not self._parts:
            self.name += piece.name
        if text:
            self._parts.append(text)

    def ended_by(self, piece: ToolCallDelta, text: str) -> bool:
        """True if a piece that was matched with this call begins another one."""
        if piece.id and piece.id == self.id:  # one id for all calls: then number and name tell them apart
            return bool(piece.name) and piece.place != self.place and (piece.name != self.name or self._complete())
        if piece.id and self.id:
            if not piece.name:  # the id changed on the way
                return bool(text.strip()) and self._complete()
            if piece.name != self.name or not self._parts or text.lstrip().startswith("{"):
                return True
            return not self._shifts and (not text or self._complete())
        if not piece.name or not self.name:
            return False
        if piece.name == self.name:
            return bool(text.strip()) and self._complete()
        return bool(self._parts) or not self.id  # else the name comes in pieces

    def _complete(self) -> bool:
        """True if the arguments so far are a whole object."""
        return bool(self._parts) and self._parts[-1].rstrip().endswith("}") and isinstance(self._parsed(), dict)

    def _parsed(self) -> Any:
        """The arguments as data, or the parser's error if they can't be read."""
        try:
            found = _read("".join(self._parts))
            return _read(found) if isinstance(found, str) else found  # encoded twice
        except (ValueError, RecursionError) as error:
            return error

    def read(self, cut: str | None) -> tuple[dict[str, Any], str | None]:
        """The arguments, and why the call must not be run (None if it may). `cut`: the finish reason, if the answer
        was cut off within this call."""
        shown = f"the call of '{self.name}'"
        text = "".join(self._parts)
        found = self._parsed() if text.strip() else (None if cut is None else ValueError("there are none"))
        if cut is not None and isinstance(found, Exception):
            return {}, f"{shown} was not run: {_CUT[cut]}"
        if not self.name:
            return {}, f"a call without a name was not run; its arguments were '{_short(text)}'"
        if isinstance(found, Exception):
            return {}, f"{shown} was not run: its arguments are no JSON object ({found}): '{_short(text)}'"
        if found is None:
            return {}, None
        if not isinstance(found, dict):
            return {}, f"{shown} was not run: its arguments must be a JSON object, not '{_short(text)}'"
        return found, None


def _read(text: str) -> Any:
    """JSON text as data, by the quick parser, or else by the one that forgives more. Raises ValueError."""
    try:
        return from_json(text)
    except ValueError:
        return _DECODER.decode(text)


def _text_of(arguments: Any) -> str:
    """The arguments as text: some providers send the object itself, or null."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else _ENCODER.encode(arguments)


def _free_id(place: int, used: set[str]) -> str:
    """An id of ours, where the provider gave none or one that is used."""
    while f"auto_call_{place}" in used:
        place += 1
    return f"auto_call_{place}"


def _short(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
