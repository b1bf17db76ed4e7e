"""What a skill, and a file of a skill, may be called."""

from __future__ import annotations

import re
import unicodedata

MAIN = "SKILL.md"
"""The file that makes a directory a skill."""
MOST_NAME = 64
_NAME = re.compile(r"\w(?:[\w.-]*\w)?")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|clock\$|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3])(?:\..*)?")
MOST_PATH = 512
MOST_SEGMENT = 200
DEEPEST = 16


def wrong_name(name: str) -> str:
    """What is wrong with the name of a skill, empty if nothing is. It becomes a directory's name, a state key and a
    part of a model's instruction, so it is letters, digits, `_`, `-` and `.`, at most 64."""
    if len(name) <= MOST_NAME and _NAME.fullmatch(name) and ".." not in name and not _DEVICE.fullmatch(name.lower()):
        return ""
    return f"'{name[:80]!s}' is no name for a skill: 1 to {MOST_NAME} letters, digits, '_', '-' and '.', without quotes"


def wrong_path(path: str) -> str:
    """What is wrong with the path of a file inside a skill, empty if nothing is. Forward slashes; a name that some
    system takes for something else (a drive, a device, a parent) is wrong on every system."""
    if len(path) > MOST_PATH:
        return f"it has more than {MOST_PATH} characters"
    if path.startswith("/"):
        return "it is absolute"
    segments = path.split("/")
    if len(segments) > DEEPEST:
        return f"it is more than {DEEPEST} levels deep"
    for segment in segments:
        if why := _wrong_segment(segment):
            return why
    return ""


def folded(path: str) -> str:
    """What two paths have in common that some file system takes for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _wrong_segment(segment: str) -> str:
    if segment in ("", ".", ".."):
        return f"'{segment}' in it is no name"
    if len(segment.encode(errors="surrogateescape")) > MOST_SEGMENT:
        return f"a name in it has more than {MOST_SEGMENT} bytes"
    if "\\" in segment or ":" in segment:
        return "it has '\\' or ':' in it"
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in segment):
        return "it has a control character in it"
    if _DEVICE.fullmatch(segment.lower()):
        return f"'{segment}' is the name of a device"
    if segment[-1] in ". " or segment[0] == " ":
        return "a name in it begins with a blank, or ends with a blank or a dot"
    return ""
