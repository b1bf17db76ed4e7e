"""Plain data as bytes: compact JSON text of the standard library, read back exactly as it was.

JSON as Python writes it: NaN and infinities are `NaN`, `Infinity`, `-Infinity`, floats are their shortest exact text,
text is UTF-8 with lone surrogates passed through. Integers longer than the interpreter converts (4300 digits unless
configured) are the one thing JSON text can't hold; a document that has one is written in a marked form.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from graphagent.errors import LoadError

_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))
_make: Any = getattr(json.encoder, "c_make_encoder", None)  # where the C part is missing, `encode` does without
_write = _make and _make(  # made once, where `encode` makes one for every call
    None, _ENCODER.default, json.encoder.encode_basestring, None, ":", ",", False, False, True
)
# without the search for blanks around the text that `loads` of the library does: `dumps` writes none
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_DAMAGED = "the row is damaged or not ours"
_MARK = b"#"  # no JSON text begins with it
_UNMARK: dict[str, Callable[[str], int | str]] = {"i": lambda text: int(text, 16), "s": str}


def dumps(plain: Any) -> bytes:
    """The bytes of plain data (None, bool, int, float, str, list, dict with str keys); same data, same bytes."""
    return plain_text(plain).encode("utf-8", "surrogatepass")


def loads(data: bytes) -> Any:
    """The plain data of bytes that `dumps` wrote; equal to what was dumped, classes included.

    Raises LoadError if the bytes are damaged.
    """
    marked = data[:1] == _MARK
    try:
        text = str(data[1:] if marked else data, "utf-8", "surrogatepass")
        plain, end = _scan(text, 0)
        if end != len(text):
            raise ValueError(f"something follows the JSON text at {end}")
        return _unmark(plain) if marked else plain
    except StopIteration as error:
        raise LoadError(f"{len(data)} stored bytes can't be read: no value at {error}; {_DAMAGED}") from error
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise LoadError(f"{len(data)} stored bytes can't be read: {error}; {_DAMAGED}") from error


def plain_text(plain: Any) -> str:
    """The text that `dumps` encodes; total order of texts is the order of elements of a stored set."""
    try:
        return _ENCODER.encode(plain) if _write is None else "".join(_write(plain, 0))
    except ValueError:  # an integer of too many digits
        return _MARK.decode() + _ENCODER.encode(_mark(plain))


def _mark(plain: Any) -> Any:
    """Plain data with integers as hexadecimal text, which has no limit of digits; a prefix tells text from text."""
    kind = type(plain)
    if kind is list:
        return [_mark(item) for item in plain]
    if kind is dict:
        return {key: _mark(item) for key, item in plain.items()}
    if kind is int:
        return f"i{plain:x}"
    return f"s{plain}" if kind is str else plain


def _unmark(plain: Any) -> Any:
    kind = type(plain)
    if kind is list:
        return [_unmark(item) for item in plain]
    if kind is dict:
        return {key: _unmark(item) for key, item in plain.items()}
    if kind is str:
        return _UNMARK[plain[0]](plain[1:])
    return plain
