"""Globs over paths: `*` and `?` within a part, `[...]`, `**` for any number of parts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphagent.errors import UsageError
from runner.execution.beneath import parts_of

PLACES = {"WORKSPACE_DIR": ".", "SKILLS_DIR": "skills", "WORK_DIR": "work", "OUTPUT_DIR": "out"}
"""Variables of a program's environment, and where in the workspace they lead."""
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))(?=/|$)")


def relative(path: str) -> str:
    """A path that may begin with one of the variables, as one of the workspace. Raises UsageError for another."""
    found = _VARIABLE.match(path)
    if found is None:
        return path
    name = found[1] or found[2]
    if name not in PLACES:
        raise UsageError(f"variable '{name}' of path '{path}' is unknown: known are {', '.join(sorted(PLACES))}")
    return f"{PLACES[name]}/{path[found.end() :].lstrip('/')}"


def matcher(patterns: Sequence[str]) -> re.Pattern[str]:
    """An expression for the paths that fit any of the globs. Raises PathEscape for one that leaves the workspace."""
    return re.compile("|".join(f"(?:{_translated(pattern)})" for pattern in patterns) or r"(?!)", re.DOTALL)


def _translated(pattern: str) -> str:
    parts = parts_of(relative(pattern))
    made: list[str] = []
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part == "**":
            made.append(".+" if last else "(?:.+/)?")
        else:
            made.append(_part(part) + ("" if last else "/"))
    return "".join(made)


def _part(part: str) -> str:
    found, place = "", 0
    while place < len(part):
        letter = part[place]
        close = part.find("]", place + 2) if letter == "[" else -1
        if letter == "*":
            found += "[^/]*"
        elif letter == "?":
            found += "[^/]"
        elif close > 0:
            inside = part[place + 1 : close].replace("\\", "\\\\")
            found += "[" + ("^" + inside[1:] if inside[0] in "!^" else inside) + "]"
            place = close
        else:
            found += re.escape(letter)
        place += 1
    return found
