"""Results of tools that have been used give their room back: in the request only, never in the session.

A message never leaves its place, so calls and results stay paired, and what has been made short is not cut again.
Source: spec/context, 6.4 and 12; the bound for a round is our own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from graphagent.errors import AgentError
from graphagent.ledger import Event
from graphagent.messages import Message, ToolCall
from graphagent.models.tokens import TokenCounter, counter_for
from processors.projection import Compacted, Line, Note, Projection, Reader
from processors.shorten import (
    BY_POLICY,
    CONTEXT_NOTE,
    HISTORICAL,
    SUMMED_UP,
    Source,
    head_and_tail,
    is_short,
    level,
    placeholder,
)

STEP = "compaction"
LOAD = "session_load"
_LISTS = ("clean", "keep")
_SIZES = ("historical", "oversized", "group", "recent_turns", "skip_recent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Which results of tools are shortened. Sizes are tokens; 0 switches a pass off.

    `clean`: tools whose results are never shown again once their turn is over; `keep`: tools whose results are never
    touched, which beats everything. `historical`: longer results of turns that are over become a placeholder that names
    event, call and tool; so do those of this turn that a summary covers and that are only there for the model to go on
    from, with long arguments of their calls. `oversized`: longer results, of this turn too, keep head and tail.
    `group`: bound of the results of one round together; the longest are cut first. `recent_turns`: finished turns
    before this one that the first two leave alone; `skip_recent`: the turns of so many of the newest events, too.
    `load`: the name of the tool that loads events: where the reader is offered it, what was shortened says how to get a
    result back. Its own results are not cut. `counter`: None takes the estimate. Raises AgentError for sizes below 0.
    """

    clean: Collection[str] = ()
    keep: Collection[str] = ()
    historical: int = 1024
    oversized: int = 0
    group: int = 16_384
    recent_turns: int = 1
    skip_recent: int = 0
    load: str = LOAD
    counter: TokenCounter = field(default_factory=lambda: counter_for(""))

    def __post_init__(self) -> None:
        for name in _SIZES:
            if getattr(self, name) < 0:
                raise AgentError(f"'Compaction({name}=...)' got {getattr(self, name)}; it takes 0 (off) or more")
        for name in _LISTS:
            if isinstance(getattr(self, name), str):
                raise AgentError(f"'Compaction({name}=...)' got '{getattr(self, name)}'; it takes a list of names")

    def __call__(self, projection: Projection) -> Projection:
        """Shorten what has been used, in the view."""
        reader = projection.reader
        work = _Work(self, self.load if self.load in reader.tools else "")
        turns = _Turns.of(self, projection)
        lines = work.fitted([work.used(line, turns) for line in projection.lines])
        if not work.notes:
            return projection
        done = Compacted(len(work.notes), work.saved)
        told = Note(STEP, "changed", f"{done.results} result(s) of tools shortened, about {done.tokens} tokens saved")
        return projection.noted([*work.notes, told], lines=lines, compacted=done)

    def within(
        self, messages: Sequence[Message], events: Callable[[str], str], offered: Collection[str] = ()
    ) -> Within:
        """Messages of a turn that goes on, cut to `oversized` and `group`.

        `events`: the id of the event that has a call's result, empty if it isn't known; `offered`: the names of the
        tools in the request.
        """
        work = _Work(self, self.load if self.load in offered else "")
        places = [Line(one, Event(id=events(one.tool_call_id or "")), at) for at, one in enumerate(messages)]
        lines = work.fitted(places)
        return Within(tuple(line.message for line in lines), tuple(work.notes), work.saved)


class Within(NamedTuple):
    """`messages`: those that are sent. `notes`: one for each result that was shortened; `saved`: about how many
    tokens."""

    messages: tuple[Message, ...]
    notes: tuple[Note, ...]
    saved: int


class _Turns(NamedTuple):
    """`now`: the turn that goes on; `protected`: those whose results stay. `over`: the reader sees turns that are
    over."""

    now: str
    protected: frozenset[str]
    over: bool

    @classmethod
    def of(cls, policy: Compaction, projection: Projection) -> _Turns:
        """Those of a projection: this turn, those of the newest events, and the newest that are over stay."""
        now = _turn(projection.reader)
        newest: list[Event] = []
        for line in reversed(projection.lines):
            if not newest or newest[-1].id != line.event.id:
                newest.append(line.event)
        found = {now, *map(_turn, newest[: policy.skip_recent])}
        left = policy.recent_turns
        for event in newest:
            turn = _turn(event)
            over = event.is_final and not event.is_user and not event.is_tool_result
            if left and turn and turn not in found and over:
                found.add(turn)
                left -= 1
        return cls(now, frozenset(found), projection.contents == "session")


class _Work:
    """One application. `load`: the tool that loads events, if it is there."""

    def __init__(self, policy: Compaction, load: str) -> None:
        self.policy = policy
        self.load = load
        self.notes: list[Note] = []
        self.saved = 0

    def used(self, line: Line, turns: _Turns) -> Line:
        """The line without a result that has been used."""
        if line.resumed and line.message.tool_calls:
            return self._without_arguments(line)
        if not self._may_touch(line):
            return line
        turn = _turn(line.event)
        if turns.over and (not turn or turn not in turns.protected):
            if line.message.name and line.message.name in self.policy.clean:
                return self._replaced(line, line.message.model_copy(update={"content": BY_POLICY}), "by policy")
            if turn and turns.now:
                return self._put_away(line, HISTORICAL, "used in a turn that is over")
        return self._put_away(line, SUMMED_UP, "the summary covers it") if line.resumed else line

    def fitted(self, lines: Sequence[Line]) -> tuple[Line, ...]:
        """The lines with head and tail of results that are too long, or that are too long together."""
        if not self.policy.oversized and not self.policy.group:
            return tuple(lines)
        found = list(lines)
        for start, end in _rounds(found):
            found[start:end] = self._fitted_round(found[start:end])
        return tuple(found)

    def _fitted_round(self, lines: list[Line]) -> list[Line]:
        sizes = [self._size(line.message.text) for line in lines]
        known = [size for size in sizes if size is not None]
        free = [self._may_touch(line) and not self._is_loaded(line) for line in lines]
        most = self.policy.oversized or None
        if self.policy.group and len(known) == len(sizes):
            bounded = [min(size, most) if most and may else size for size, may in zip(known, free, strict=True)]
            if sum(bounded) > self.policy.group:
                fixed = sum(size for size, may in zip(bounded, free, strict=True) if not may)
                most = level([s for s, may in zip(bounded, free, strict=True) if may], self.policy.group - fixed)
        if most is None:
            return lines
        limit = max(most, 0)
        return [
            self._cut_to(line, limit) if may and size is not None and size > limit else line
            for line, size, may in zip(lines, sizes, free, strict=True)
        ]

    def _cut_to(self, line: Line, limit: int) -> Line:
        try:
            short = head_and_tail(line.message, self._source(line), limit, self.policy.counter.text)
        except Exception:  # a counter's
            return line
        return line if short is None else self._replaced(line, short, f"longer than {limit} tokens")

    def _put_away(self, line: Line, reason: str, why: str) -> Line:
        """A placeholder for a long result, if that saves anything."""
        size = self._size(line.message.text)
        if not self.policy.historical or size is None or size <= self.policy.historical:
            return line
        short = placeholder(line.message, self._source(line), reason)
        after = self._size(short.text)
        return line if after is None or after >= size else self._replaced(line, short, why)

    def _without_arguments(self, line: Line) -> Line:
        calls = tuple(map(self._short_call, line.message.tool_calls))
        if calls == line.message.tool_calls:
            return line
        return self._replaced(line, line.message.model_copy(update={"tool_calls": calls}), "the summary covers it")

    def _short_call(self, call: ToolCall) -> ToolCall:
        size = self._size(json.dumps(call.arguments, ensure_ascii=False, default=str))
        if call.name in self.policy.keep or not self.policy.historical or size is None:
            return call
        if size <= self.policy.historical:
            return call
        said = f"arguments of about {size} tokens are left out here: {SUMMED_UP}"
        return call.model_copy(update={"arguments": {CONTEXT_NOTE: said}})

    def _may_touch(self, line: Line) -> bool:
        message = line.message
        if message.role != "tool" or not message.tool_call_id or not message.content:
            return False
        return not (message.name and message.name in self.policy.keep) and not is_short(message.text)

    def _is_loaded(self, line: Line) -> bool:
        return bool(self.policy.load) and line.message.name == self.policy.load

    def _source(self, line: Line) -> Source:
        return Source(line.event.id, self.load)

    def _size(self, text: str) -> int | None:
        try:
            return self.policy.counter.text(text)
        except Exception:  # a counter of one's own may fail: then the result stays as it is
            return None

    def _replaced(self, line: Line, message: Message, reason: str) -> Line:
        before, after = (self._size(_said(one)) for one in (line.message, message))
        if before is not None and after is not None:
            self.saved += max(before - after, 0)
        what = "arguments" if message.tool_calls else f"result of '{line.message.name}'"
        self.notes.append(Note(STEP, "changed", f"{what} shortened: {reason}", line.event.id))
        return line._replace(message=message)


def _said(message: Message) -> str:
    """What is counted as saved."""
    return "".join([message.text, *(json.dumps(call.arguments, default=str) for call in message.tool_calls)])


def _turn(of: Event | Reader) -> str:
    """The turn of an event, or of a reader; empty if it is of none."""
    return f"req:{of.request_id}" if of.request_id else f"inv:{of.invocation_id}" if of.invocation_id else ""


def _rounds(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Where the results of each round begin and end: they follow each other."""
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and lines[end].message.role == "tool":
            end += 1
        if end > at:
            yield at, end
        at = max(end, at + 1)
