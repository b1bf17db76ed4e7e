"""What a reader has seen of an answer that is not complete, so that a run that is cut off doesn't lose it."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphagent.ledger import Event
from graphagent.messages import Message

INTERRUPTED = "interrupted_assistant"
"""The extension of an event that holds what an assistant had said when it was cut off: its value is the reason."""

CUT = "cancelled"
"""The finish reason of such an event."""


@dataclass(slots=True)
class _Pieces:
    last: Event
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)


class PartialText:
    """Collects the pieces of each speaker until the complete message comes."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str, str], _Pieces] = {}

    def take(self, event: Event) -> None:
        """Note an event of the run, in the order in which they come."""
        speaker = (event.invocation_id, event.branch, event.author)
        if not event.partial:
            if event.has_content:
                self._open.pop(speaker, None)
            return
        if not (event.delta or event.reasoning_delta or speaker in self._open):
            return
        pieces = self._open.setdefault(speaker, _Pieces(event))
        if event.usage is not None or pieces.last.usage is None:
            pieces.last = event
        pieces.text.append(event.delta)
        pieces.reasoning.append(event.reasoning_delta)

    def left(self, reason: str, *, branch: str = "") -> list[Event]:
        """A complete event for each answer that was not finished, in the order in which they began; once.

        `branch`: only of speakers there and below.
        """
        cut_off = [speaker for speaker in self._open if not branch or f"{speaker[1]}/".startswith(f"{branch}/")]
        found = [_event_of(self._open.pop(speaker), reason) for speaker in cut_off]
        return [event for event in found if event.has_content]


def _event_of(pieces: _Pieces, reason: str) -> Event:
    said = Message.assistant("".join(pieces.text), reasoning="".join(pieces.reasoning) or None)
    changes = {
        "kind": "message",
        "messages": (said,),
        "partial": False,
        "delta": "",
        "reasoning_delta": "",
        "finish_reason": CUT,
        "extensions": {**pieces.last.extensions, INTERRUPTED: reason},
    }
    return pieces.last.clone().model_copy(update=changes)


def is_partial_answer(event: Event) -> bool:
    """True if an event holds what an assistant had said when it was cut off, whoever kept it."""
    return event.kind == "message" and event.finish_reason == CUT and not event.partial
