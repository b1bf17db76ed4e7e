"""Results of tools that have been used give their room back: in the request only, never in the session.

Three passes, of which each can be switched off, and a bound for the results of one round together. A message never
leaves its place, so calls and results stay paired. Source: spec/context, 12; the bound for a round is our own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from graphagent.errors import AgentError
from graphagent.ledger import Event
from graphagent.messages import Message
from graphagent.models.tokens import TokenCounter, counter_for
from processors.projection import Compacted, Line, Note, Projection, Reader
from processors.shorten import BY_POLICY, Source, head_and_tail, is_short, level, placeholder

STEP = "compaction"
HISTORICAL = "historical_compaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Which results of tools are shortened. Sizes are tokens; 0 switches a pass off.

    `clean`: tools whose results are never shown again once their turn is over; `keep`: tools whose results are never
    touched, which beats everything. `historical`: longer results of turns that are over become a placeholder that names
    event, call and tool. `oversized`: longer results, of this turn too, keep head and tail. `group`: bound of the
    results of one round together; the longest are cut first. `recent_turns`: finished turns before this one that the
    first two leave alone; `skip_recent`: the turns of so many of the newest events, too. `load`: the name of the tool
    that loads events, if the agent has one (`session_load`): then placeholders say how to get a result back. Its own
    results are not cut. `counter`: None takes the estimate. Raises AgentError for sizes below 0.
    """

    clean: Collection[str] = ()
    keep: Collection[str] = ()
    historical: int = 1024
    oversized: int = 0
    group: int = 16_384
    recent_turns: int = 1
    skip_recent: int = 0
    load: str = ""
    counter: TokenCounter = field(default_factory=lambda: counter_for(""))

    def __post_init__(self) -> None:
        for name in ("historical", "oversized", "group", "recent_turns", "skip_recent"):
            if getattr(self, name) < 0:
                raise AgentError(f"'Compaction({name}=...)' got {getattr(self, name)}; it takes 0 (off) or more")

    def __call__(self, projection: Projection) -> Projection:
        """Shorten what has been used, in the view."""
        work = _Work(self, projection)
        lines = tuple(map(work.shortened, projection.lines))
        lines = self._within_groups(lines, work)
        if not work.notes:
            return projection
        done = Compacted(len(work.notes), work.saved)
        told = Note(STEP, "changed", f"{done.results} result(s) of tools shortened, about {done.tokens} tokens saved")
        return projection.noted([*work.notes, told], lines=lines, compacted=done)

    def within(self, messages: Sequence[Message], events: Callable[[str], str]) -> tuple[Message, ...]:
        """Messages of a turn that goes on, cut to `oversized` and `group`; the very same where nothing is too long.
        `events`: the id of the event of a call's result, empty if it isn't known."""
        places = [Line(one, Event(id=events(one.tool_call_id or "")), at) for at, one in enumerate(messages)]
        work = _Work(self, Projection(reader=Reader()))
        lines = self._within_groups(tuple(map(work.cut, places)), work)
        return tuple(line.message for line in lines) if work.notes else tuple(messages)

    def _within_groups(self, lines: tuple[Line, ...], work: _Work) -> tuple[Line, ...]:
        if not self.group:
            return lines
        found, at = list(lines), 0
        while at < len(found):
            end = at
            while end < len(found) and found[end].message.role == "tool":
                end += 1
            if end - at > 1:
                found[at:end] = work.together(found[at:end])
            at = max(end, at + 1)
        return tuple(found)


class _Work:
    """One application."""

    def __init__(self, policy: Compaction, projection: Projection) -> None:
        self.policy = policy
        self.notes: list[Note] = []
        self.saved = 0
        reader = projection.reader
        self._now = _unit(reader.request_id, reader.invocation_id)
        self._over = projection.contents == "session"  # else the reader sees its own run, and no turn that is over
        self._protected = _protected(policy, projection.lines, self._now)

    def shortened(self, line: Line) -> Line:
        """The line after the passes."""
        if not self._may_touch(line):
            return line
        unit = _unit(line.event.request_id, line.event.invocation_id)
        if self._over and (unit not in self._protected or not unit):
            if line.message.name in self.policy.clean:
                return self._replaced(line, line.message.model_copy(update={"content": BY_POLICY}), "by policy")
            size = self._size(line.message)
            if unit and self._now and self.policy.historical and size is not None and size > self.policy.historical:
                short = placeholder(line.message, Source(line.event.id, self.policy.load), HISTORICAL)
                if (self._size(short) or size) < size:
                    return self._replaced(line, short, "used in a turn that is over")
        return self.cut(line)

    def cut(self, line: Line) -> Line:
        """The line with head and tail of a result that is too long."""
        return self._cut_to(line, self.policy.oversized) if self.policy.oversized and self._may_touch(line) else line

    def together(self, lines: list[Line]) -> list[Line]:
        """The results of one round, the longest cut so that all keep the bound."""
        sizes = [self._size(line.message) for line in lines]
        known = [size for size in sizes if size is not None]
        if len(known) < len(sizes) or sum(known) <= self.policy.group:
            return lines
        fixed = [size for line, size in zip(lines, known, strict=True) if not self._may_touch(line)]
        free = [size for line, size in zip(lines, known, strict=True) if self._may_touch(line)]
        most = level(free, max(self.policy.group - sum(fixed), 0))
        return [
            self._cut_to(line, most) if size > most and self._may_touch(line) else line
            for line, size in zip(lines, known, strict=True)
        ]

    def _cut_to(self, line: Line, limit: int) -> Line:
        size = self._size(line.message)
        if size is None or size <= limit or (self.policy.load and line.message.name == self.policy.load):
            return line
        source = Source(line.event.id, self.policy.load)
        try:
            short = head_and_tail(line.message, source, limit, self.policy.counter.text)
        except Exception:  # a counter's
            return line
        return line if short is None else self._replaced(line, short, f"longer than {limit} tokens")

    def _may_touch(self, line: Line) -> bool:
        message = line.message
        if message.role != "tool" or not message.tool_call_id or not message.content or is_short(message.text):
            return False
        return not (message.name and message.name in self.policy.keep)

    def _size(self, message: Message) -> int | None:
        try:
            return self.policy.counter.text(message.text)
        except Exception:  # a counter of one's own may fail: then the result stays as it is
            return None

    def _replaced(self, line: Line, message: Message, reason: str) -> Line:
        before, after = self._size(line.message), self._size(message)
        if before is not None and after is not None:
            self.saved += max(before - after, 0)
        self.notes.append(Note(STEP, "changed", f"result of '{line.message.name}' shortened: {reason}", line.event.id))
        return line._replace(message=message)


def _unit(request_id: str, invocation_id: str) -> str:
    """A turn."""
    return f"req:{request_id}" if request_id else f"inv:{invocation_id}" if invocation_id else ""


def _protected(policy: Compaction, lines: Sequence[Line], now: str) -> set[str]:
    """The turns whose results stay: this one, those of the newest events, and the newest that are over."""
    found = {now}
    newest: list[Event] = []
    for line in reversed(lines):
        if not newest or newest[-1].id != line.event.id:
            newest.append(line.event)
    found |= {_unit(event.request_id, event.invocation_id) for event in newest[: policy.skip_recent]}
    left = policy.recent_turns
    for event in newest:
        unit = _unit(event.request_id, event.invocation_id)
        if left and unit and unit not in found and event.is_final and not event.is_user and not event.is_tool_result:
            found.add(unit)
            left -= 1
    return found
