"""One text out of what several agents say at the same time: who began is heard out, then the next."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphagent.ledger import Event

Speaker = tuple[str, str, str]
GAP = "\n\n"
"""Between two messages."""


def speaker_of(event: Event) -> Speaker:
    """Who says it: an agent in a run, at its place."""
    return event.invocation_id, event.branch, event.author


@dataclass(slots=True)
class Floor:
    """Takes pieces and whole messages in the order in which they come; gives the text that may go out now."""

    _holder: Speaker | None = None
    _pieces: dict[Speaker, str] = field(default_factory=dict)
    _whole: list[str] = field(default_factory=list)
    _begun: bool = False
    _sent: str = ""
    changed: bool = False  # a message came out otherwise than its pieces, such as after a second attempt of its model

    def piece(self, speaker: Speaker, text: str) -> str:
        """A piece of a message."""
        if self._holder is None:
            self._holder, self._sent = speaker, text
            return self._next(text)
        if self._holder == speaker:
            self._sent += text
            return text
        self._pieces[speaker] = self._pieces.get(speaker, "") + text
        return ""

    def whole(self, speaker: Speaker, text: str) -> str:
        """A message that is complete; what has gone out of it in pieces is not said again."""
        if self._holder == speaker:
            self._holder = None
            self.changed |= self._sent != text
            return self._go_on()
        self._pieces.pop(speaker, None)
        if self._holder is not None:
            self._whole.append(text)
            return ""
        return self._next(text)

    def rest(self) -> str:
        """What has not gone out at the end."""
        waiting, self._pieces = [*self._whole, *self._pieces.values()], {}
        self._whole = []
        return "".join(self._next(text) for text in waiting)

    def _go_on(self) -> str:
        out = "".join(self._next(text) for text in self._whole)
        self._whole = []
        if self._pieces:
            self._holder = next(iter(self._pieces))
            self._sent = self._pieces.pop(self._holder)
            out += self._next(self._sent)
        return out

    def _next(self, text: str) -> str:
        """The text of a message that begins, behind those before it."""
        if not text:
            return ""
        begun, self._begun = self._begun, True
        return GAP + text if begun else text
