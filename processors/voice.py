"""How the history speaks to its reader: other agents are retold, old thinking is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, get_args

from graphagent.ledger import Event, keys_match
from graphagent.messages import Message
from processors.projection import Line, Note, Projection, Reader, one_of
from processors.retell import merged, retold

STEP = "voice"
Preserve = Literal["none", "same_branch", "all"]
Reasoning = Literal["discard_previous_turns", "keep_all", "discard_all"]


@dataclass(frozen=True, slots=True)
class Voice:
    """How messages are told.

    `prefix`: what another agent said is told as `For context: [name] said: ...`, in one message for what follows
    directly. `preserve`: whose own words stay as they are: nobody else's, those of agents on the `same_branch` (above
    or below), or `all`. `reasoning`: what a model thought is left out of earlier turns unless that turn used tools,
    whose providers want it back; kept; or left out always. `rewrite`: changes the message of a line.
    Source: spec/context, 6.5 and 6.6.
    """

    prefix: bool = True
    preserve: Preserve = "none"
    reasoning: Reasoning = "discard_previous_turns"
    rewrite: Callable[[Line], Message] | None = None

    def __post_init__(self) -> None:
        one_of("Voice", "preserve", self.preserve, get_args(Preserve))
        one_of("Voice", "reasoning", self.reasoning, get_args(Reasoning))

    def __call__(self, projection: Projection) -> Projection:
        """Retell the lines of the view."""
        notes: list[Note] = []
        thought = any(line.message.reasoning for line in projection.lines)  # else nobody asks which requests used tools
        with_tools = {event.request_id for event in projection.events if event.is_tool_call} if thought else set()
        lines: list[Line] = []
        joining = False  # the line before was retold too
        for (foreign, _), group in groupby(self._marked(projection), key=lambda pair: (pair[1], _source(pair[0]))):
            own = [line for line, _ in group]
            if not foreign:
                told = self._told(own, projection.reader, with_tools, notes)
            else:
                told = _retell(own, self.prefix, notes)
            if foreign and told and joining:
                lines[-1] = _joined(lines[-1], told[0], notes)
            else:
                lines += told
            joining = self.prefix and (foreign if told else joining)
        return projection.noted(notes, lines=tuple(lines))

    def _marked(self, projection: Projection) -> Iterator[tuple[Line, bool]]:
        """Each line, and whether it is another agent's. A result is whose call it answers: they stay a pair."""
        foreign = False
        for line in projection.lines:
            if line.message.role != "tool":
                foreign = not line.current and self._is_foreign(line.event, projection.reader)
            yield line, foreign

    def _is_foreign(self, event: Event, reader: Reader) -> bool:
        if not reader.agent or event.author in ("", "user", reader.agent) or self.preserve == "all":
            return False
        return not (self.preserve == "same_branch" and keys_match(event.branch, reader.branch))

    def _told(self, lines: Sequence[Line], reader: Reader, with_tools: set[str], notes: list[Note]) -> list[Line]:
        """Lines in their own words, without thinking that isn't wanted and without what is empty then."""
        kept = []
        for line in lines:
            message = line.message
            if message.reasoning and self._forgets(line.event, reader, with_tools):
                message = message.model_copy(update={"reasoning": None})
                notes.append(Note(STEP, "changed", "the model's thinking was left out", line.event.id))
            if message.role == "assistant" and not message.content and not message.tool_calls:
                notes.append(Note(STEP, "dropped", "nothing but thinking is in it", line.event.id))
                continue
            if self.rewrite is not None:
                rewritten = self.rewrite(line._replace(message=message))
                if rewritten != message:
                    notes.append(Note(STEP, "changed", "rewritten by 'rewrite'", line.event.id))
                message = rewritten
            kept.append(line if message is line.message else line._replace(message=message))
        return kept

    def _forgets(self, event: Event, reader: Reader, with_tools: set[str]) -> bool:
        """True if the thinking of this event's message is not wanted."""
        if self.reasoning != "discard_previous_turns":
            return self.reasoning == "discard_all"
        return event.request_id != reader.request_id and event.request_id not in with_tools


def _source(line: Line) -> tuple[int, str]:
    return line.place, line.event.id


def _retell(lines: Sequence[Line], prefix: bool, notes: list[Note]) -> list[Line]:
    """One message of the user for what another agent's event says; nothing if it says nothing."""
    event = lines[0].event
    message = retold([line.message for line in lines], event.author, prefix)
    if message is None:
        notes.append(Note(STEP, "dropped", f"'{event.author}' says nothing in it", event.id))
        return []
    notes.append(Note(STEP, "changed", f"'{event.author}' is another agent: it is retold", event.id))
    return [lines[0]._replace(message=message)]


def _joined(one: Line, other: Line, notes: list[Note]) -> Line:
    """Two retold lines that follow each other, as one."""
    notes.append(Note(STEP, "changed", "joined with the message before it", other.event.id))
    return one._replace(
        message=merged(one.message, other.message), current=one.current or other.current, also=(*one.also, other.place)
    )
