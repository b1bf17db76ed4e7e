"""What is kept of an event so that it can be found: who said it, the stems of its words, and marks beside them."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import NamedTuple

from graphagent.ledger import Event
from runner.words import STOP_WORDS, is_cut, pieces, stem, stems

HEAD, TAIL = 6000, 2000
"""Characters of a text whose words are kept: so many at its beginning and, of a longer one, at its end."""

_SPEAKER = re.compile(r"(?:\[[^\]\n]{1,40}\]\s*)?([^\W\d_][^:\n\[\]]{0,39}):\s")
_BETWEEN = re.compile(r"\W+")


class Said(NamedTuple):
    """An event as it is found.

    `role`: empty for the result of a tool without text, which only its call id finds. `speakers`: names of who said it,
    one a line: the author, the names of the messages, and one that the text begins with (`Ann: ...`). `size`: how many
    words it has. `words`: these, in order, each as ` word;`, so that one is counted without cutting the text.
    `marks`: in the same form, what finds it beside its words: the words of its speakers, single Chinese or Japanese
    characters, ids of tool calls.
    """

    role: str
    filter_key: str
    speakers: str
    size: int
    words: str
    marks: str


def said_by(event: Event) -> Said | None:
    """What is kept of an event; None if it can't be found: it asks for tools, or has no text for anybody."""
    if event.partial or event.is_tool_call or not event.messages:
        return None
    text = event.text
    calls = [message.tool_call_id for message in event.messages if message.role == "tool" and message.tool_call_id]
    role = _role(event) if text.strip() else ""
    if not role and not calls:
        return None
    found = _SPEAKER.match(text) if role in ("user", "assistant") else None
    names = ["" if event.author == "user" else event.author]
    names += [message.name or "" for message in event.messages if message.role != "tool"]
    speakers = [name for name in dict.fromkeys([*names, found.group(1).strip() if found else ""]) if name]
    kept = _kept(text[found.end() :] if found else text)
    words = [word for word in stems(kept) if role]
    marks = [name_mark(word) for name in speakers for word in stems(name)] if role else []
    marks += [char for piece in pieces(kept) if is_cut(piece) for char in piece] if role else []
    marks += [call_mark(call) for call in calls]
    names_of = storable("\n".join(speakers))
    return Said(role, storable(event.filter_key), names_of, len(words), _joined(words), _joined(dict.fromkeys(marks)))


def storable(name: str) -> str:
    """A name without what PostgreSQL refuses in a text: NUL and lone surrogates become question marks."""
    return name.replace("\0", "?").encode("utf-8", "replace").decode()


def _role(event: Event) -> str:
    roles = {message.role for message in event.messages}
    return next((role for role in ("tool", "user", "assistant", "system") if role in roles), "")


def _kept(text: str) -> str:
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


def _joined(words: list[str] | dict[str, None]) -> str:
    return "".join(f" {word};" for word in words)


def name_mark(word: str) -> str:
    """The mark of a word of the name of who said something."""
    return f"@{word}"


def call_mark(tool_call_id: str) -> str:
    """The mark of the result of a tool call."""
    return "=" + hashlib.blake2b(tool_call_id.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def scope_of(app: str, user: str) -> str:
    """What is put before the words of a user in an index, so that the words of others are other words. Two users may
    have the same, if hardly ever: who reads the index asks whose the sessions are."""
    named = f"{app}\0{user}".encode("utf-8", "surrogatepass")
    return base64.b32encode(hashlib.blake2b(named, digest_size=5).digest()).decode().lower()


MOST_TERMS = 32
"""Words of a query that are looked up; of a longer one the first."""


def query_terms(text: str) -> list[str]:
    """The stems of a query, each once, in order; none if it has stop words only."""
    return list(dict.fromkeys(stems(text)))[:MOST_TERMS]


def is_named(speakers: str, query: str) -> bool:
    """True if a query names one of those who said something. A name that is a stop word, as the speaker `A` of a
    transcript is, counts only as it is written."""
    folded = query.casefold()
    for name in speakers.split("\n"):
        parts = [part for part in _BETWEEN.split(name) if part]
        if not parts:
            continue
        as_written = all(part.casefold() in STOP_WORDS for part in parts)
        pattern = r"\W+".join(re.escape(part if as_written else part.casefold()) for part in parts)
        if re.search(rf"(?<!\w){pattern}(?!\w)", query if as_written else folded):
            return True
    return False


def speaker_stems(speakers: str) -> set[str]:
    """The stems of the names of who said something."""
    return {stem(piece) for piece in pieces(speakers)}
