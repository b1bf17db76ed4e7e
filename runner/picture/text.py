"""Texts in a picture: how wide they are, how they are shortened, and how they are written so that the file is XML."""

from __future__ import annotations

import re
import unicodedata
from html import escape

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML 1.0 document may have in it, section 2.2: control characters, halves of surrogate pairs."""
_BREAKS = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


def text_width(text: str, letter: float) -> float:
    """The width of a text in pixels; letters of East Asian scripts are twice as wide."""
    return letter * sum(_columns(sign) for sign in text)


def cut(text: str, columns: int) -> str:
    """The text on one line, with an ellipsis if it takes more columns."""
    text = " ".join(text.split())
    if sum(_columns(sign) for sign in text) <= columns:
        return text
    kept, left = "", columns - 1
    for sign in text:
        left -= _columns(sign)
        if left < 0:
            break
        kept += sign
    return kept.rstrip() + "…"


def safe(text: str) -> str:
    """The text as it may stand in XML, also in an attribute, where line breaks would else become spaces. A sign that
    XML can't have becomes the replacement character."""
    text = escape(_NOT_XML.sub("\ufffd", text))
    return re.sub("[\t\n\r]", lambda found: _BREAKS[found[0]], text)


def _columns(sign: str) -> int:
    return 0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1
