"""A message of the user with files says in words which ones, so that a model can name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphagent.messages import Message
from processors.projection import Line, Note, Projection

STEP = "attachments"
_START = "Attached files ("
_MOST = 20


@dataclass(frozen=True, slots=True)
class Attachments:
    """Put `Attached files (n): name, ...` before the parts of messages with file parts; at most 20 names. Source:
    spec/context, 6.2."""

    def __call__(self, projection: Projection) -> Projection:
        """Annotate the lines of the view."""
        lines: list[Line] = []
        notes: list[Note] = []
        for line in projection.lines:
            message = annotated(line.message)
            if message is not line.message:
                notes.append(Note(STEP, "changed", "the names of its files were put before it", line.event.id))
            lines.append(line if message is line.message else line._replace(message=message))
        return projection.noted(notes, lines=tuple(lines)) if notes else projection


def annotated(message: Message) -> Message:
    """The message with the names of its files in front; the same if it has none, or says so already."""
    if message.role != "user" or isinstance(message.content, str) or message.text.startswith(_START):
        return message
    names = [_name(part) for part in message.content if part.get("type") == "file"]
    if not names:
        return message
    more = f" (+{len(names) - _MOST} more)" if len(names) > _MOST else ""
    text = f"{_START}{len(names)}): {', '.join(names[:_MOST])}{more}"
    return message.model_copy(update={"content": [{"type": "text", "text": text}, *message.content]})


def _name(part: Mapping[str, Any]) -> str:
    """What a file part calls its file; providers nest it or not."""
    inner = part.get("file")
    fields = inner if isinstance(inner, Mapping) else part
    return str(fields.get("filename") or fields.get("name") or fields.get("file_id") or "unnamed")
