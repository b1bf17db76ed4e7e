"""How a codec says no: one internal exception that gathers the path to the value while it travels up.

The walkers carry no path, so a value that can be stored pays nothing for messages about one that can't.
"""

from __future__ import annotations

import reprlib
from enum import Enum

from graphagent.errors import DecodeError, EncodeError

MAX_DEPTH = 100
"""Levels of containers and records in one stored value. A fixed number, not the interpreter's stack: what one caller
could store, any other caller can load."""

_SHOWN_PARTS = 8
_TOO_DEEP = f"it is nested deeper than {MAX_DEPTH} levels; flatten it"
_BUILTINS = (dict, list, tuple, set, frozenset, str, bytes, bytearray, int, float)


class Refused(Exception):
    """Why a value can't be encoded or decoded; `within` adds one step of its path at a time, innermost first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.trail: list[tuple[int, str]] = []

    def within(self, owner: object, step: str) -> None:
        """Note that the trouble is at `step` of `owner`."""
        self.trail.append((id(owner), step))

    def encode_error(self, path: str) -> EncodeError:
        """The error for the caller whose value stands at `path`."""
        where, reason = self._place(path)
        return EncodeError(f"{where or 'the value'} can't be stored: {reason}", path=where)

    def decode_error(self, path: str) -> DecodeError:
        """The error for the caller whose stored data stands at `path`."""
        where, reason = self._place(path)
        return DecodeError(f"{where or 'the value'} can't be restored: {reason}", path=where)

    def _place(self, path: str) -> tuple[str, str]:
        steps = [step for _, step in reversed(self.trail)]
        if self.reason is not _TOO_DEEP:
            return path + "".join(steps), self.reason
        first: dict[int, int] = {}
        for position, (owner, _) in enumerate(reversed(self.trail)):
            start = first.setdefault(owner, position)
            if start != position:
                outer = path + "".join(steps[:start])
                return path + "".join(steps[:position]), f"it is '{outer}' again: a value that contains itself"
        return path + "".join(steps[:_SHOWN_PARTS]) + "...", self.reason


def too_deep() -> Refused:
    """The refusal of a value below the last allowed level; a cycle always ends here."""
    return Refused(_TOO_DEEP)


def class_name(cls: type) -> str:
    """The name of a class as messages show it: with its module unless it is a builtin."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def shown(value: object) -> str:
    """A short text of stored plain data or of a mapping key of a builtin class; of anything else only the class."""
    if value is None or type(value) in (bool, int, float, str, list, dict):
        return reprlib.repr(value)
    return f"<{class_name(type(value))}>"


def not_plain(value: object) -> Refused:
    """The refusal of a value in a field of type Any whose class the codec doesn't know. Never shows the value."""
    cls = type(value)
    return Refused(f"class '{class_name(cls)}' has no stored form in a field of type 'Any'; {_mend(cls)}")


def not_declared(value: object, label: str) -> Refused:
    """The refusal of a value whose class is not the declared one. Never shows the value."""
    return Refused(
        f"class '{class_name(type(value))}' is not the declared '{label}'; "
        "declare a union that names the class, convert the value, or mark the field 'Transient'"
    )


def not_stored_as(plain: object, label: str) -> Refused:
    """The refusal of stored data that has another shape than the declared type is stored in."""
    return Refused(f"stored {shown(plain)} doesn't fit the declared '{label}'; edit the row or restore the old type")


def _mend(cls: type) -> str:
    last = "or mark the field 'Transient'"
    if cls.__module__.split(".")[0] == "numpy":
        return f"convert it with .item() or .tolist(), {last}"
    if cls.__module__.startswith("pydantic") and cls.__name__.startswith("Secret"):
        return f"declare the field as '{cls.__name__}' and give the store a cipher, {last}"
    base = next((item for item in _BUILTINS if issubclass(cls, item)), None)
    if base is not None and not issubclass(cls, Enum):
        return f"declare the field's type, convert the value with {base.__name__}(...), {last}"
    return f"declare the field's type, convert the value to plain data, {last}"
