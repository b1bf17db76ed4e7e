"""Long results of tools made short: a placeholder, or head and tail around a mark of what is missing. Pure text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from graphagent.messages import Message

Count = Callable[[str], int]
"""Tokens of a text. One that fails leaves texts as they are."""
ELIDED = "[elided]"
BY_POLICY = "[omitted by policy] The result of this tool is not shown again."
HISTORICAL = "historical_compaction"
SUMMED_UP = "current_invocation_summary"
CONTEXT_NOTE = "_context_note"
"""The key under which the arguments of a call say that they are not shown."""
_WHY = {
    HISTORICAL: "The call succeeded, and its result has been used already.",
    SUMMED_UP: "The call succeeded, and the summary says what came of it.",
}
_GONE = "the full result is not at hand: only call the tool again if it reads only, or repeating it does no harm"
_ASKED = "event_id='{event}', tool_call_id='{call}', content_offset=..., content_limit=..."
_CUT = "\n[... {count} of {all} characters are left out here; {where} ...]\n"
_BARE = frozenset(f"{ELIDED} {why} {_GONE}" for why in _WHY.values())
_NAMED = re.compile(
    rf"{re.escape(ELIDED)} (?:{'|'.join(map(re.escape, _WHY.values()))})\n"
    rf"event_id: [^\n]+\ntool_call_id: [^\n]+\ntool_name: [^\n]*\nreason: (?:{'|'.join(_WHY)})\n"
    rf"(?:{re.escape(_GONE)}|\w+\(event_id=[^\n]+\) reads it)"
)
_MARK = re.compile(r"\n\[\.\.\. (\d+) of (\d+) characters are left out here; [^\n]* \.\.\.\]\n")


class Source(NamedTuple):
    """Where a result can be found again. `event`: empty if it isn't known; `load`: the name of the tool that loads it,
    empty where there is none."""

    event: str
    load: str = ""

    def hint(self, message: Message) -> str:
        """How the model gets the whole of it."""
        if not self.load or not self.event:
            return _GONE
        return f"{self.load}({_ASKED.format(event=self.event, call=message.tool_call_id)}) reads it"

    def ids(self, message: Message) -> str:
        """Event and call."""
        return ", ".join(
            ([f"event_id: {self.event}"] if self.event else []) + [f"tool_call_id: {message.tool_call_id}"]
        )


def is_short(text: str) -> bool:
    """True if the text is what `placeholder` or `head_and_tail` made, or `BY_POLICY`, word by word: one that quotes
    such a text is not."""
    if text == BY_POLICY or text in _BARE or _NAMED.fullmatch(text):
        return True
    return any(len(text) - len(mark[0]) == int(mark[2]) - int(mark[1]) for mark in _MARK.finditer(text))


def placeholder(message: Message, source: Source, reason: str) -> Message:
    """The message without its result, with what names it; `reason`: HISTORICAL or SUMMED_UP."""
    text = f"{ELIDED} {_WHY[reason]} {_GONE}"
    if source.event and message.tool_call_id:
        text = (
            f"{ELIDED} {_WHY[reason]}\nevent_id: {source.event}\ntool_call_id: {message.tool_call_id}\n"
            f"tool_name: {message.name or ''}\nreason: {reason}\n{source.hint(message)}"
        )
    return message.model_copy(update={"content": text, "reasoning": None})


def head_and_tail(message: Message, source: Source, limit: int, count: Count) -> Message | None:
    """The message with the largest head and tail that fit into so many tokens; None if it can't get smaller so.

    Where the mark of what is missing takes all the room, a smaller one is tried, and that one stands in any case: it
    names event and call. Parts that are not text stay.
    """
    text = message.text
    whole = f"{source.ids(message)}, tool_name: {message.name or ''}; {source.hint(message)}"
    for where in (whole, source.ids(message)):
        kept = _largest(text, where, limit, count)
        if kept >= 2:
            break
    short = _cut(text, max(kept, 0), where)
    if kept == len(text) or count(short) >= count(text):
        return None
    if isinstance(message.content, str):
        return message.model_copy(update={"content": short})
    others = [part for part in message.content if part.get("type") != "text"]
    return message.model_copy(update={"content": [{"type": "text", "text": short}, *others]})


def _largest(text: str, where: str, limit: int, count: Count) -> int:
    """How many characters can be kept; -1 if not even the mark fits."""
    low, high = -1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(_cut(text, middle, where)) <= limit else (low, middle - 1)
    return low


def _cut(text: str, kept: int, where: str) -> str:
    head = (kept + 1) // 2
    mark = _CUT.replace("{count}", str(len(text) - kept)).replace("{all}", str(len(text))).replace("{where}", where)
    return text[:head] + mark + text[len(text) - (kept - head) :]


def level(sizes: list[int], budget: int) -> int:
    """The largest size to which the larger ones have to be cut so that all together keep the budget."""
    left, count = budget, len(sizes)
    for size in sorted(sizes):
        if size * count > left:
            return left // count
        left -= size
        count -= 1
    return max(sizes, default=0)
