"""The text of a `SKILL.md`: a flat map before the first line of the body, then the body.

Source: spec/services, 2.1. It is no YAML: `key: value` by lines, the value as it stands; only a value that begins with
`|` or `>` goes on over the indented lines after it, as a block scalar of YAML 1.2 (8.1).
"""

from __future__ import annotations

import re
from typing import NamedTuple

FENCE = "---"
_HEADER = re.compile(r"[|>](?:[1-9][+-]?|[+-][1-9]?)?\s*(?:#.*)?")


class SkillText(NamedTuple):
    """What a `SKILL.md` says. `name` and `description` are empty where it doesn't say them."""

    name: str
    description: str
    body: str


def parse_skill(text: str) -> SkillText:
    """Read the text of a `SKILL.md`. Front matter that isn't closed is none: all of the text is the body then."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    lines = text.split("\n")
    if lines[0] != FENCE or FENCE not in lines[1:]:
        return SkillText("", "", text)
    end = lines.index(FENCE, 1)
    fields = _fields(lines[1:end])
    return SkillText(fields.get("name", ""), fields.get("description", ""), "\n".join(lines[end + 1 :]))


def _fields(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    place = 0
    while place < len(lines):
        key, colon, value = lines[place].partition(":")
        place += 1
        if not colon:
            continue
        value = value.strip()
        if value[:1] in ("|", ">"):
            end = place
            while end < len(lines) and (not lines[end].strip() or lines[end][0] in " \t"):
                end += 1
            block = _block(value, lines[place:end])
            place = end
            if block is None:
                continue
            value = block
        found[key.strip()] = value
    return found


def _block(header: str, lines: list[str]) -> str | None:
    """A block scalar without the line ends at its end; None for one that YAML doesn't take."""
    if not _HEADER.fullmatch(header):
        return None
    said = next((line for line in lines if line.strip()), "")
    digit = re.match(r"[|>][+-]?([1-9])", header)
    indent = int(digit[1]) if digit else len(said) - len(said.lstrip(" "))
    if said and (indent == 0 or any(line.strip() and line[:indent].strip(" ") for line in lines)):
        return None
    cut = [line[indent:] if line.strip() else line[indent:].strip(" ") for line in lines]
    text = "\n".join(cut) if header[0] == "|" else _folded(cut)
    return text.rstrip("\n")


def _folded(lines: list[str]) -> str:
    """Lines as one, as `>` has it: an empty line is a line end, and lines that are indented further stay lines."""
    text, gap, before = "", 0, ""
    for line in lines:
        if not line:
            gap += 1
            continue
        apart = line[:1] in " \t" or before[:1] in (" ", "\t")
        if before:
            text += "\n" * (gap + 1 if apart else gap) or " "
        else:
            text += "\n" * gap
        text, gap, before = text + line, 0, line
    return text
