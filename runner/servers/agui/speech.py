"""What agents say and think, piece by piece and whole: each message is told once, under an id of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from graphagent.ledger import Event
from graphagent.messages import Message
from runner.partial_text import is_partial_answer
from runner.servers.agui.history import reasoning_id

RESTARTED = "message.restarted"
"""The name of the CUSTOM event after which a message that was begun is said again, under another id."""

Place = tuple[str, str, str, str]


@dataclass(slots=True)
class Speech:
    """A message that is being said. `answer`: the id of the answer that it is, empty if that is not known; `thought`:
    the id of its reasoning that is open, empty if none is; `text`, `reasoning`: what has gone out."""

    id: str
    author: str
    answer: str = ""
    begun: bool = False
    thought: str = ""
    text: str = ""
    reasoning: str = ""


class Speeches:
    """The messages of one run that are being said, by where they are said. `fresh`: makes an id that nothing has yet
    of one that is wanted. `changed`: a reader has been told something that no message of the session says."""

    def __init__(self, fresh: Callable[[str], str]) -> None:
        self.changed = False
        self.last = ""
        self._fresh = fresh
        self._now: dict[Place, Speech] = {}
        self._unnamed = 0

    def asked(self, event: Event, mark: Mapping[str, Any]) -> Iterator[BaseEvent]:
        """A model is asked at this place: what comes is its answer. What it had said before is over, and void."""
        place, wanted = _place(event), str(mark.get("message", ""))
        before = self._now.pop(place, None)
        if before is not None:
            yield from self._cut(before)
        if wanted:
            self._now[place] = Speech(wanted, event.author, wanted)

    def piece(self, event: Event) -> Iterator[BaseEvent]:
        """A piece of text or of reasoning."""
        place = _place(event)
        speech = self._now.get(place)
        if speech is None:
            self._unnamed += 1
            speech = self._now[place] = Speech(f"{event.request_id or 'said'}-{self._unnamed}", event.author)
        if event.reasoning_delta:
            yield from self._think(speech, event.reasoning_delta)
        if event.delta:
            yield from self._say(speech, event.delta)

    def whole(self, event: Event, message: Message, wanted: str) -> Iterator[BaseEvent]:
        """A message that is complete. What has gone out of it is not said again. `wanted`: its id, if it has none
        yet; the one that it has is `last` then."""
        speech = self._take(event, message, wanted)
        if speech is not None and not message.text.startswith(speech.text):
            yield from self._cut(speech)
            speech = None
        if speech is None:
            speech = Speech(wanted, event.author, wanted)
        yield from self._rest(speech, message)
        self.last = speech.id

    def reopened(self) -> Iterator[BaseEvent]:
        """What opens all that is open, for a reader who has nothing of it."""
        for speech in self._now.values():
            if speech.thought:
                yield ReasoningStartEvent(message_id=speech.thought)
                yield ReasoningMessageStartEvent(message_id=speech.thought)
                yield ReasoningMessageContentEvent(message_id=speech.thought, delta=speech.reasoning)
            if speech.begun:
                yield TextMessageStartEvent(message_id=speech.id, role="assistant", name=speech.author or None)
                yield TextMessageContentEvent(message_id=speech.id, delta=speech.text)

    # -- one message -----------------------------------------------------------------------------

    def _think(self, speech: Speech, piece: str) -> Iterator[BaseEvent]:
        if not speech.thought:
            speech.thought = self._fresh(reasoning_id(speech.id))
            speech.reasoning = ""
            yield ReasoningStartEvent(message_id=speech.thought)
            yield ReasoningMessageStartEvent(message_id=speech.thought)
        speech.reasoning += piece
        yield ReasoningMessageContentEvent(message_id=speech.thought, delta=piece)

    def _say(self, speech: Speech, piece: str) -> Iterator[BaseEvent]:
        yield from self._thought(speech)
        if not speech.begun:
            speech.begun, speech.id = True, self._fresh(speech.id)
            yield TextMessageStartEvent(message_id=speech.id, role="assistant", name=speech.author or None)
        speech.text += piece
        yield TextMessageContentEvent(message_id=speech.id, delta=piece)

    def _rest(self, speech: Speech, message: Message) -> Iterator[BaseEvent]:
        """What is missing of a message, and its end."""
        if message.reasoning and not speech.reasoning and not speech.begun:
            yield from self._think(speech, message.reasoning)
        if len(message.text) > len(speech.text):
            yield from self._say(speech, message.text[len(speech.text) :])
        yield from self._end(speech)

    def _thought(self, speech: Speech) -> Iterator[BaseEvent]:
        if speech.thought:
            yield ReasoningMessageEndEvent(message_id=speech.thought)
            yield ReasoningEndEvent(message_id=speech.thought)
            speech.thought = ""

    def _end(self, speech: Speech) -> Iterator[BaseEvent]:
        yield from self._thought(speech)
        if speech.begun:
            yield TextMessageEndEvent(message_id=speech.id)

    def _cut(self, speech: Speech) -> Iterator[BaseEvent]:
        """The end of a message that was begun and is not what the session says."""
        yield from self._end(speech)
        if speech.begun or speech.reasoning:
            self.changed = True
            yield CustomEvent(name=RESTARTED, value={"messageId": speech.id})

    def _take(self, event: Event, message: Message, wanted: str) -> Speech | None:
        """The speech that a complete message ends: that of this answer, else one of the same speaker that has begun
        so, else one of which it is not known what it is. What was cut off has an id of its own."""
        cut = is_partial_answer(event)
        for place, speech in self._now.items():
            if speech.answer == wanted:
                return self._now.pop(place)
        if event.error is not None and not cut:
            return None
        speaker = _place(event)[:3]
        mine = {place: one for place, one in self._now.items() if place[:3] == speaker and (one.begun or one.thought)}
        fitting = [place for place, one in mine.items() if message.text.startswith(one.text)]
        others = [place for place, one in mine.items() if cut or not one.answer]
        if fitting and not cut:
            fitting = [place for place in fitting if not mine[place].answer]
        found = next(iter([*fitting, *others]), None)
        return None if found is None else self._now.pop(found)


def _place(event: Event) -> Place:
    activation = str(event.extensions.get("activation", "")) if event.partial else ""
    return event.invocation_id, event.branch, event.author, activation
