"""What is searched for when a question finds too little: its clauses, its keywords, runs of its keywords. Pure.

Source: spec/context, 15.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from runner import words

_SPLIT = re.compile(r"[,;\uff0c\uff1b]|\s(?:and|or)\s", re.IGNORECASE)
_LEAD_IN = re.compile(
    r"^(?:what (?:did|does|do|is|are|was|were)|who (?:said|is|was|did)|how (?:did|does|do|is|was)"
    r"|when (?:did|does|is|was)|where (?:did|does|is|was)|why (?:did|does|is|was)"
    r"|summari[sz]e(?: the discussion (?:about|of|on))?|tell me about)\s+",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[^\W_]+")
_ENDS = " .?!:\u3002\uff1f\uff01\uff1a"  # these too as Chinese writes them
STOP_WORDS = words.STOP_WORDS | {"discuss", "discussed", "said", "say", "session", "summary", "tell"}
"""Words that tell nothing of what is asked, those of asking among them."""
SHORTEST, MOST, ENOUGH, FALLBACKS = 3, 8, 5, 4
"""Letters of a keyword; keywords of a long question; keywords from which on runs have four; queries by keywords."""


def collapsed(text: str) -> str:
    """The text with every run of white space as one blank."""
    return " ".join(text.split())


def tokens(text: str) -> list[str]:
    """The runs of letters and digits, in lower case."""
    return _TOKEN.findall(text.lower())


def keywords(text: str) -> list[str]:
    """The words that carry meaning, each once: no stop words, none that is very short unless it has a digit."""
    return list(dict.fromkeys(word for word in tokens(text) if _is_keyword(word)))


def queries(text: str) -> list[str]:
    """The text itself, then what to try when it finds too little; nothing for a blank one.

    "port 8443 and db host" gives also "port 8443", "db host", "host" and "port 8443 host".
    """
    primary = collapsed(text)
    found = [primary, *_clauses(primary), *_by_keywords(primary)]
    return list(dict.fromkeys(query for one in found if (query := one.strip())))


def is_compound(text: str) -> bool:
    """Whether a question asks for several things."""
    return _SPLIT.search(text) is not None


def share(part: str, whole: str) -> float:
    """How much of a question a part of it asks, by keywords: 1 for all, more than 0."""
    wanted = set(keywords(whole)) or set(tokens(whole))
    given = set(keywords(part)) or set(tokens(part))
    return len(wanted & given) / len(wanted) if wanted & given else 1 / (1 + len(wanted))


def _clauses(primary: str) -> Iterator[str]:
    pieces = [collapsed(piece) for piece in _SPLIT.split(primary)]
    pieces = [piece for piece in pieces if piece]
    if len(pieces) < 2:
        return
    for piece in pieces:
        clause = collapsed(_LEAD_IN.sub("", piece).strip(_ENDS))
        yield clause
        yield " ".join(keywords(clause))


def _by_keywords(primary: str) -> Sequence[str]:
    wanted = keywords(primary)
    if len(wanted) > MOST:
        wanted = [*wanted[: MOST // 2], *wanted[-MOST // 2 :]]
    whole = " ".join(wanted)
    if not whole or whole == primary:
        return ()
    found = [whole]
    if len(wanted) >= 3:
        size = 4 if len(wanted) >= ENOUGH else 3
        runs = (" ".join(wanted[at : at + size]) for at in range(len(wanted) - size + 1))
        found += list(runs)[: FALLBACKS - 1]
    return found


def _is_keyword(word: str) -> bool:
    if word in STOP_WORDS:
        return False
    return len(word) >= SHORTEST or any(c.isdigit() for c in word) or words.is_cut(word)
