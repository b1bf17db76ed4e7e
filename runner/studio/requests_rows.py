"""The messages of a stored request as rows: where each comes from, and why it is there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graphagent.agents.requests import NO_RESULT
from graphagent.agents.secrets_in import masked
from graphagent.agents.stored_frames import Frames
from graphagent.agents.stored_request import StoredRequest
from graphagent.agents.written import Written, written_by
from graphagent.ledger import Event
from graphagent.messages import Message, Role
from processors.summary import as_system_text
from runner.studio.requests_session import Told
from runner.user_turn import QUEUED

Origin = Literal[
    "instruction",
    "summary",
    "projection",
    "event",
    "run",
    "input",
    "one_shot",
    "queued",
    "limit",
    "retry",
    "pairing",
    "edit",
]
"""Where a message of a request comes from: the node's `instruction`; the session's `summary`, or something else that
the `projection` put in; an `event` of the session; an activation of the `run` itself; what the person or the caller
asked (`input`); messages for one call only (`one_shot`); what a person said while the run went on (`queued`); the text
of a last call (`limit`); an answer that couldn't be used, and what was wrong with it (`retry`); the place of a result
that is missing (`pairing`); an `edit` of the stored state."""
_SUMMARY = as_system_text("").partition("\n")[0]


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A message of a request, or a part of one that has two origins. `place`: of the message, from 0; `text`, `calls`:
    without secrets; `events`: ids of the events that it is of; `checkpoint`: the row that brought it into the history;
    `activations`: which of them may have written it, one if that is known."""

    place: int
    role: Role
    text: str
    origin: Origin
    reason: str
    calls: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    checkpoint: str = ""
    activations: tuple[str, ...] = ()


class Rows:
    """Makes the rows of a request."""

    def __init__(self, frames: Frames, stored: StoredRequest, told: Told | None, written: list[Written | None]) -> None:
        self.frames = frames
        self.stored = stored
        self.told = told
        self.written = written
        asked = stored.asked.messages
        self.events = [()] * len(asked) if told is None else told.events_of(asked)
        self.asked_at = {id(message): place for place, message in enumerate(asked)}
        self.queued = {id(message) for turn in stored.turns for message in turn.queued}
        self.answers = {id(turn.reply.message) for turn in stored.turns}

    @classmethod
    async def made(cls, frames: Frames, stored: StoredRequest, told: Told | None) -> Rows:
        """For the messages of a request. `told`: of its session, None where there is none."""
        header, _ = await frames.at(stored.checkpoint)
        return cls(frames, stored, told, await written_by(frames, header, stored.asked.messages))

    def answer(self) -> RequestRow | None:
        """The row of the answer, None as long as there is none."""
        stored = self.stored
        answer = stored.answer or (stored.turns[-1].reply.message if stored.turns else None)
        if answer is None:
            return None
        place = 0 if stored.request is None else len(stored.request.messages)
        return self._row(place, answer, "run", f"the answer that {stored.activation} got")

    def of(self, messages: Sequence[Message]) -> Iterator[RequestRow]:
        """A row for each message, two for one that has two origins."""
        wrong = False
        for place, message in enumerate(messages):
            if id(message) in self.asked_at:
                yield self._history(place, self.asked_at[id(message)], message)
            elif id(message) in self.queued:
                yield self._row(place, message, "queued", "said while the run was going on")
            elif wrong or id(message) in self.answers:
                why = "what was wrong with the answer before" if wrong else "an answer that did not satisfy the schema"
                wrong = not wrong
                yield self._row(place, message, "retry", why)
            elif place == 0 and message.role == "system":
                yield from self._system(message)
            elif message.role == "tool" and message.content == NO_RESULT:
                yield self._row(place, message, "pairing", "the history has no result of this call")
            else:
                yield self._row(place, message, "limit", "put behind the messages of the last call of a turn")

    def _system(self, message: Message) -> Iterator[RequestRow]:
        """The instruction, and the system message that the history began with."""
        text = self.stored.instruction
        yield self._row(0, Message.system(text), "instruction", f"the instruction of node '{self.stored.node}'")
        if len(message.text) > len(text):
            yield self._history(0, 0, self.stored.asked.messages[0])

    def _history(self, place: int, at: int, message: Message) -> RequestRow:
        """A message of the history that was asked."""
        written, events = self.written[at], self.events[at]
        if self.stored.asked.once:
            return self._row(place, message, "one_shot", "a message for this call only, in place of the history")
        if events:
            return self._of_events(place, message, events, written)
        if written is None and self.stored.asked.cleared and at == len(self.written) - 1:
            return self._row(place, message, "input", "the input of the turn")
        if self.told is not None and (written is None or written.source == "input"):
            return self._projected(place, message, written)
        if written is None:
            return self._row(place, message, "projection", "put in when the history was made anew, before the call")
        return self._of_run(place, message, written)

    def _of_events(
        self, place: int, message: Message, events: tuple[Event, ...], written: Written | None
    ) -> RequestRow:
        """A message that the session has, too."""
        told = self.told
        assert told is not None
        ids = tuple(event.id for event in events)
        seen = [told.seen[id] for id in ids if id in told.seen]
        codes = ", ".join(dict.fromkeys(code for one in seen for code in one.reasons))
        verdict = ", ".join(dict.fromkeys(one.verdict for one in seen)) or "what became of it is not recorded"
        reason = f"{verdict} ({codes})" if codes else verdict
        if told.shortened & set(ids):
            reason += "; shortened in the request"
        origin: Origin = "event"
        if told.asked & set(ids):
            origin = "input"
        elif any(QUEUED in event.extensions for event in events):
            origin, reason = "queued", "said while a run was going on"
        elif written is not None and written.activations:
            origin, reason = "run", f"{_wrote(written)}; {reason}"
        return self._row(place, message, origin, reason, events=ids, written=written)

    def _projected(self, place: int, message: Message, written: Written | None) -> RequestRow:
        """A message that the projection made, of no single event."""
        told = self.told
        assert told is not None
        if (key := told.summary_in(message.text)) is not None:
            why = f"the summary of {repr(key) if key else 'the whole session'}"
            return self._row(place, message, "summary", why, written=written)
        if _SUMMARY in message.text:
            return self._row(
                place, message, "summary", "a summary that another one has replaced since", written=written
            )
        return self._row(place, message, "projection", "made by the projection, of no event", written=written)

    def _of_run(self, place: int, message: Message, written: Written) -> RequestRow:
        """A message that only the checkpoints know."""
        if written.since:
            why = f"there before {written.checkpoint}, the oldest row that is kept"
            return self._row(place, message, "input", why, written=written)
        if written.source in ("edit", "fork"):
            return self._row(place, message, "edit", f"put in by hand at {written.checkpoint}", written=written)
        if not written.activations:
            return self._row(place, message, "input", f"in the input at {written.checkpoint}", written=written)
        if message.role == "user" and self._by_models(written):
            why = f"the input of a turn, put into the history by {' or '.join(written.activations)}"
            return self._row(place, message, "input", why, written=written)
        return self._row(place, message, "run", _wrote(written), written=written)

    def _by_models(self, written: Written) -> bool:
        """True if only model nodes can have written it."""
        names = (text.partition("~")[0].rpartition("#")[0] for text in written.activations)
        nodes = [self.frames.graph.nodes.get(name.rpartition("/")[2]) for name in names]
        return all(node is not None and node.kind == "llm" for node in nodes)

    def _row(
        self,
        place: int,
        message: Message,
        origin: Origin,
        reason: str,
        *,
        events: tuple[str, ...] = (),
        written: Written | None = None,
    ) -> RequestRow:
        where, who = ("", ()) if written is None else (written.checkpoint, written.activations)
        secrets = self.stored.secrets
        calls = tuple(masked(_call(call.name, call.arguments), secrets) for call in message.tool_calls)
        return RequestRow(
            place, message.role, masked(_text(message), secrets), origin, reason, calls, events, where, who
        )


def _wrote(written: Written) -> str:
    return f"written by {' or '.join(written.activations)} at {written.checkpoint}"


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({json.dumps(arguments, ensure_ascii=False, default=str)})"


def _text(message: Message) -> str:
    """The text; other parts of it by their type."""
    if isinstance(message.content, str):
        return message.content
    parts = (
        str(part.get("text", "")) if part.get("type") == "text" else f"[{part.get('type')}]" for part in message.content
    )
    return "\n".join(parts)
