"""Models that need no provider: one that sums up to a wanted size, one that looks things up and copies its answer.

They stand for the size and the number of calls, which are what the tables count. What they say is a proxy only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.context.meter import cut, tokens
from graphagent.agents.model import ModelRequest
from graphagent.messages import Message
from graphagent.models import ScriptedModel

WINDOW = 128_000
LINE = 15
"""Tokens of a line that go into a summary at most."""
_MATERIAL = re.compile(r"<(earlier_summary|conversation)>\n(.*?)\n</\1>", re.DOTALL)
_SUMMARY = re.compile(r"<summary_of_previous_interactions>\n(.*?)\n</", re.DOTALL)
_NOTHING = "(none)"
_WORDS = re.compile(r"\w+")


def summariser(size: int) -> ScriptedModel:
    """Answers a request for a summary with a text of exactly `size` tokens, taken evenly from what it is given."""
    return ScriptedModel(lambda request: _extract(request, size), context_window=WINDOW, keep_requests=False)


def _extract(request: ModelRequest, size: int) -> str:
    """The beginnings of lines, as many and as long as there is room; those of the former summary have half of it."""
    found = {name: text for name, text in _MATERIAL.findall(request.messages[-1].text) if text != _NOTHING}
    lines = [line for text in found.values() for line in text.split("\n")]
    former = found.get("earlier_summary", "")
    room = size // 2 if former else size
    talk = [line for line in found.get("conversation", "").split("\n") if line] or lines
    beginnings = [cut(line, LINE) if tokens(line) > LINE else line for line in talk]
    step = max(1, -(-sum(tokens(line) + 1 for line in beginnings) // max(room, 1)))
    new = "\n".join(beginnings[::step])
    return cut(cut(former, size - room) + "\n" + new if former else new, size)


def reader(question: str, *, search: bool = False, load: bool = False) -> ScriptedModel:
    """Answers a question with the sentence of its request that has most of the question's words; before that it
    searches with the question as it stands (`search`), and reads around a hit (`load`)."""
    calls = [*(["session_search"] if search else []), *(["session_load"] if load else [])]

    def answer(request: ModelRequest) -> Any:
        results = [message for message in request.messages if message.role == "tool"]
        left = calls[len(results) :]
        if not left:
            return best_sentence(question, request.messages)
        hits = json.loads(results[0].text)["results"] if results else []
        if left[0] == "session_load" and not hits:
            return best_sentence(question, request.messages)
        found = {"query": question} if left[0] == "session_search" else place_of(hits)
        return {"tool_calls": [{"name": left[0], "arguments": json.dumps(found)}]}

    return ScriptedModel(answer, context_window=WINDOW, keep_requests=False)


def place_of(hits: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Where to read on: around the best hit that isn't shown with its surroundings already, else around the best."""
    alone = next((hit for hit in hits if "\n" not in hit["snippet"]), hits[0])
    return {name: alone[name] for name in ("event_id", "session_id") if name in alone} | {"before": 2, "after": 2}


def best_sentence(question: str, messages: Sequence[Message]) -> str:
    """The sentence that shares most words with the question, weighed by how rare they are; the question is none."""
    texts = [_spoken(message) for message in messages if message.text != question]
    sentences = [s for text in texts for s in re.split(r"(?<=[.!?])\s+|\n", text) if s.strip()]
    bags = [set(_WORDS.findall(sentence.lower())) for sentence in sentences]
    wanted = set(_WORDS.findall(question.lower()))
    rarity = {word: 1 / sum(word in bag for bag in bags) for word in wanted if any(word in bag for bag in bags)}
    scores = [sum(rarity.get(word, 0.0) for word in bag) for bag in bags]
    return sentences[max(range(len(scores)), key=scores.__getitem__)] if sentences else "I don't know."


def _spoken(message: Message) -> str:
    """What a message says; of a tool's result the texts that were said, of a system message the summary."""
    if message.role == "system":
        return "\n".join(_SUMMARY.findall(message.text))
    if message.role != "tool":
        return message.text
    try:
        data = json.loads(message.text)
    except ValueError:
        return message.text
    entries = (*data.get("results", ()), *data.get("messages", ()))
    texts = [one.get("snippet") or one.get("text") or "" for one in entries]
    return "\n".join([*texts, *(line.partition(": ")[2] for line in data.get("more", ()))])
