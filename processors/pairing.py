"""Tool calls and their results stand together, each call with one result: providers refuse anything else.

The policy, in the order in which it is applied; every repair leaves a note:

1. A result belongs to the nearest call before it with its id that has none yet, of its own run first. The first result
   of a call counts; a second one is left out, and so is a result without a call. If such a result is what the agent was
   asked with, it is told as the user's text.
2. Results stand right behind their call, in the order of the calls.
3. A round of the current request that lacks results may still be running (in another branch, or the agent above): its
   calls and results are left out, its text stays.
4. A call of an earlier request without a result ended with its process: it is closed with a result that says so, or
   left out (`unanswered`). One of a tool whose result comes from outside is closed as waiting.
5. If a result came late and the history would end with what the model said in between, its round goes to the end, so
   that the model answers to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from graphagent.messages import Message, ToolCall
from processors.projection import Line, Note, Projection, Reader, one_of
from processors.rounds import Matched, Round, match_rounds
from processors.sanitise import ORPHAN_RESULT, tagged

STEP = "pairing"
Unanswered = Literal["close", "strip"]
Transcript = Literal["keep_all", "omit_previous_completed"]


@dataclass(frozen=True, slots=True)
class Pairing:
    """How calls and results are made to fit; the module says the policy.

    `unanswered`: a call of an earlier request without a result is closed, or its calls are left out. `transcript`:
    `omit_previous_completed` leaves out the answered tool rounds of earlier requests, and keeps what was said.
    `interrupted`, `waiting`: what the closing results say; `{name}` stands for the tool. Source: spec/context, 7.
    """

    unanswered: Unanswered = "close"
    transcript: Transcript = "keep_all"
    interrupted: str = "[interrupted] The call of '{name}' ended without a result; whether it took effect is not known."
    waiting: str = "[waiting] The call of '{name}' has not been answered yet."

    def __post_init__(self) -> None:
        one_of("Pairing", "unanswered", self.unanswered, get_args(Unanswered))
        one_of("Pairing", "transcript", self.transcript, get_args(Transcript))

    def __call__(self, projection: Projection) -> Projection:
        """Mend the calls and results of the view."""
        repair = _Repair(self, projection.lines, projection.reader, match_rounds(projection.lines), [])
        lines = repair.lines()
        return projection.noted(repair.notes, lines=tuple(lines))


@dataclass(slots=True)
class _Repair:
    """One application of the policy."""

    policy: Pairing
    old: Sequence[Line]
    reader: Reader
    matched: Matched
    notes: list[Note]

    def lines(self) -> list[Line]:
        """The mended lines."""
        groups: list[list[Line]] = []
        late = -1
        for at, line in enumerate(self.old):
            if at in self.matched.rounds:
                groups.append(self._round(self.matched.rounds[at]))
                late = len(groups) - 1 if len(self.old) - 1 in self.matched.rounds[at].results.values() else late
            elif at in self.matched.strays:
                groups.append(self._stray(line, self.matched.strays[at]))
            elif line.message.role != "tool":
                groups.append([line])
        last = next((group[-1] for group in reversed(groups) if group), None)
        if late >= 0 and last is not None and last.message.role == "assistant" and len(groups[late]) > 1:
            self._note("moved", groups[late][0], "a result came late: the round went to the end")
            groups.append(groups.pop(late))
        return [line for group in groups for line in group]

    def _round(self, round_: Round) -> list[Line]:
        """A message with calls and its results, as they may be shown."""
        if not round_.complete:
            if self.reader.request_id and round_.line.event.request_id == self.reader.request_id:
                return self._without_calls(round_, "its tool calls may still be running")
            if self.policy.unanswered == "strip":
                return self._without_calls(round_, "a tool call of it has no result")
        elif self.policy.transcript == "omit_previous_completed" and self._is_past(round_):
            return self._without_calls(round_, "tool rounds of earlier requests are left out")
        results = []
        for position, call in enumerate(round_.line.message.tool_calls):
            at = round_.results.get(position)
            results.append(self._closing(round_, call) if at is None else self.old[at])
        for expected, at in enumerate(round_.in_call_order, start=round_.at + 1):
            if at != expected:
                self._note("moved", self.old[at], "the result was moved behind its call")
        return [round_.line, *results]

    def _closing(self, round_: Round, call: ToolCall) -> Line:
        """A result for a call that has none."""
        line = round_.line
        text = self.policy.waiting if call.id in line.event.long_running_tool_ids else self.policy.interrupted
        self._note("added", line, f"call '{call.id}' of '{call.name}' has no result: it was closed")
        message = Message.tool(text.replace("{name}", call.name), call.id, name=call.name or None)
        return Line(message, line.event, line.place)

    def _without_calls(self, round_: Round, reason: str) -> list[Line]:
        """What is left of a message with calls when they and their results are left out."""
        for at in round_.in_call_order:
            self._note("dropped", self.old[at], reason)
        message = round_.line.message
        if not message.content:
            self._note("dropped", round_.line, reason)
            return self._asked_results(round_)
        self._note("changed", round_.line, f"{reason}; its text stays")
        kept = round_.line._replace(message=message.model_copy(update={"tool_calls": ()}))
        return [kept, *self._asked_results(round_)]

    def _asked_results(self, round_: Round) -> list[Line]:
        """Results that the agent was asked with: they are never left out."""
        asked = [self.old[at] for at in round_.in_call_order if self.old[at].current]
        return [self._told(line) for line in asked]

    def _stray(self, line: Line, reason: str) -> list[Line]:
        """A result without a call: left out, unless the agent was asked with it."""
        if line.current:
            return [self._told(line)]
        self._note("dropped", line, reason)
        return []

    def _told(self, line: Line) -> Line:
        self._note("changed", line, "the agent was asked with a result that has no call: it is told as text")
        return line._replace(message=tagged(ORPHAN_RESULT, line.message))

    def _is_past(self, round_: Round) -> bool:
        """True if call and results are all of earlier requests."""
        lines = [round_.line, *(self.old[at] for at in round_.in_call_order)]
        return all(line.event.request_id != self.reader.request_id for line in lines)

    def _note(self, action: Literal["added", "changed", "dropped", "moved"], line: Line, text: str) -> None:
        self.notes.append(Note(STEP, action, text, line.event.id))
