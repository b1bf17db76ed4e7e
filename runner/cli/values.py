"""Inputs, answers and assignments as they are written on a command line."""

from __future__ import annotations

import json
import re
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from graphagent.engine.questions import adapter_of, type_of
from graphagent.engine.result import Interrupt
from graphagent.errors import UsageError

_AGES = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SIZES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def read_input(given: str | None) -> dict[str, Any] | None:
    """The input of a run: a JSON object given as such, as a file, or on standard input (`-`). Raises UsageError."""
    if given is None:
        return None
    where = "standard input" if given == "-" else "--input" if given.lstrip()[:1] in ("{", "[") else f"file '{given}'"
    try:
        text = sys.stdin.read() if given == "-" else given if where == "--input" else Path(given).read_text("utf-8")
        value = json.loads(text)
    except OSError as error:
        raise UsageError(
            f"{where} can't be read: {error.strerror}; --input takes a file, '-' or a JSON object such as "
            """'{"text": "hello"}'"""
        ) from error
    except ValueError as error:  # of JSON, or of an encoding other than UTF-8
        raise UsageError(f"{where} is not JSON: {error}; give one JSON object with the fields of the state") from error
    if not isinstance(value, dict):
        raise UsageError(f"{where} is {text.strip()[:40]!r}, not a JSON object; give the fields of the state by name")
    return value


def pairs(given: Sequence[str], option: str) -> list[tuple[str, str]]:
    """Each `name=text`, in order. Raises UsageError for one without '='."""
    for item in given:
        if "=" not in item:
            raise UsageError(f"{option} '{item}' has no '='; write {option} NAME=VALUE")
    return [(name, text) for name, _, text in (item.partition("=") for item in given)]


def fitting(text: str, accepts: Callable[[Any], object]) -> Any:
    """The JSON value that `text` is, or `text` itself: the first that `accepts` doesn't refuse.

    If both are refused it is the JSON value if there is one, so that whoever uses it says what is wrong.
    """
    try:
        value = json.loads(text)
    except ValueError:
        return text
    for candidate in (value, text):
        try:
            accepts(candidate)
            return candidate
        except (ValidationError, ValueError):
            continue
    return value


def answer_value(text: str, question: Interrupt) -> Any:
    """An answer as the question's schema wants it, as far as that can be told."""
    return fitting(text, adapter_of(type_of(question.schema)).validate_python)


class Answers:
    """The answers of a command line; each is given once, those of the same key one after another."""

    def __init__(self, given: Sequence[str]) -> None:
        self._left: dict[str, deque[str]] = {}
        for name, text in pairs(given, "--answer"):
            self._left.setdefault(name, deque()).append(text)

    def take(self, asked: Sequence[Interrupt], *, all_keys: bool = False) -> dict[str, Any]:
        """The next answer to each question that has one; with `all_keys` also those nobody asks for."""
        taken: dict[str, Any] = {}
        for name, texts in self._left.items():
            found = [one for one in asked if name in (one.id, one.key)]
            if texts and (found or all_keys):
                taken[name] = answer_value(texts.popleft(), found[0]) if found else texts.popleft()
        return taken

    def unused(self) -> list[str]:
        """Keys with answers that were never asked for."""
        return [name for name, texts in self._left.items() if texts]


def seconds(text: str) -> float:
    """An age such as `90`, `30m` or `7d` in seconds. Raises UsageError."""
    return _measured(text, _AGES, "--max-age", "'90' (seconds), '30m', '12h', '7d' or '4w'")


def size(text: str) -> int:
    """A size such as `500000`, `20MB` or `1GiB` in bytes. Raises UsageError."""
    return round(_measured(text, _SIZES, "--max-bytes", "'500000', '500kB', '20MB' or '1GiB'"))


def _measured(text: str, units: dict[str, int], option: str, examples: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in units:
        raise UsageError(f"{option} '{text}' is not understood; write for example {examples}")
    return float(found[1]) * units[found[2]]
