"""Long results of tools made short: a placeholder, or head and tail around a mark of what is missing. Pure text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from graphagent.messages import Message

Count = Callable[[str], int]
"""Tokens of a text. One that fails leaves texts as they are."""
ELIDED = "[elided]"
BY_POLICY = "[omitted by policy] The result of this tool is not shown again."
_CUT = "\n[... {count} of {all} characters are left out here; {where}{hint} ...]\n"
_GONE = "the full result is not at hand: only call the tool again if it reads only, or repeating it does no harm"


class Source(NamedTuple):
    """Where a result can be found again. `load`: the name of the tool that loads it, empty where there is none."""

    event: str
    load: str = ""

    def hint(self, message: Message) -> str:
        """How the model gets the whole of it."""
        if not self.load or not self.event:
            return _GONE
        return (
            f"{self.load}(event_id='{self.event}', tool_call_id='{message.tool_call_id}', content_offset=..., "
            "content_limit=...) reads it"
        )

    def told(self, message: Message) -> str:
        """Where it is, in words."""
        return f"event_id: {self.event}, tool_call_id: {message.tool_call_id}, tool_name: {message.name}"


def is_short(text: str) -> bool:
    """True if it is a placeholder already."""
    return text.startswith((ELIDED, BY_POLICY))


def placeholder(message: Message, source: Source, reason: str) -> Message:
    """The message without its result, with what names it."""
    text = (
        f"{ELIDED} The call succeeded, and its result has been used already.\n"
        f"event_id: {source.event}\ntool_call_id: {message.tool_call_id}\ntool_name: {message.name}\n"
        f"reason: {reason}\n{source.hint(message)}"
    )
    return message.model_copy(update={"content": text, "reasoning": None})


def head_and_tail(message: Message, source: Source, limit: int, count: Count) -> Message | None:
    """The message with the largest head and tail that fit into so many tokens; None if it can't get smaller so. Parts
    that are not text stay."""
    text = message.text
    mark = _CUT.replace("{all}", str(len(text))).replace("{where}", f"{source.told(message)}; ")
    mark = mark.replace("{hint}", source.hint(message))

    def cut(kept: int) -> str:
        head = (kept + 1) // 2
        return text[:head] + mark.replace("{count}", str(len(text) - kept)) + text[len(text) - (kept - head) :]

    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(cut(middle)) <= limit else (low, middle - 1)
    short = cut(low)
    if low == len(text) or count(short) >= count(text):
        return None
    if isinstance(message.content, str):
        return message.model_copy(update={"content": short})
    others = [part for part in message.content if part.get("type") != "text"]
    return message.model_copy(update={"content": [{"type": "text", "text": short}, *others]})


def level(sizes: list[int], budget: int) -> int:
    """The largest size to which the larger ones have to be cut so that all together keep the budget."""
    left, count = budget, len(sizes)
    for size in sorted(sizes):
        if size * count > left:
            return left // count
        left -= size
        count -= 1
    return max(sizes, default=0)
