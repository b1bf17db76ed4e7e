"""How much history a model is sent: the newest messages, in whole groups, with what it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphagent.errors import AgentError
from processors.assemble import assemble
from processors.projection import Budget, Line, Note, Projection

STEP = "history"


@dataclass(frozen=True, slots=True)
class HistoryLimit:
    """Keep the last so many messages (0: all); beside a summary, which does this better, it is not applied.

    A call and its results are kept or left out together, so there may be fewer; what the agent was asked stays, so
    there may be one more; the last group stays too, since the model goes on from it. Where the projection has a
    budget, the oldest groups are left out until all fits. Source: spec/context, 6.2.
    """

    messages: int = 0

    def __post_init__(self) -> None:
        if self.messages < 0:
            raise AgentError(f"'HistoryLimit(messages=...)' got {self.messages}; it takes a number from 0 on")

    def __call__(self, projection: Projection) -> Projection:
        """Leave out the oldest lines of the view."""
        notes: list[Note] = []
        lines = list(projection.lines)
        if self.messages and projection.summarised:
            notes.append(Note(STEP, "ignored", "summaries are in use: the number of messages is not limited"))
        elif self.messages:
            lines = _cut(lines, _start(lines, self.messages), f"only the last {self.messages} are asked for", notes)
        if projection.budget is not None:
            lines = _fit(projection, lines, projection.budget, notes)
        return projection.noted(notes, lines=tuple(lines))


def groups(lines: Sequence[Line]) -> list[list[Line]]:
    """What is kept or left out together: a message with calls and its results; any other message alone."""
    found: list[list[Line]] = []
    for line in lines:
        if line.message.role == "tool" and found and found[-1][0].message.tool_calls:
            found[-1].append(line)
        else:
            found.append([line])
    return found


def _start(lines: Sequence[Line], count: int) -> int:
    """Where the last `count` lines begin; results whose call is before that are left out too, unless they are last."""
    start = max(0, len(lines) - count)
    while start < len(lines) and lines[start].message.role == "tool":
        start += 1
    return start if start < len(lines) or not lines else len(lines) - len(groups(lines)[-1])


def _cut(lines: Sequence[Line], start: int, reason: str, notes: list[Note]) -> list[Line]:
    """The groups from there on, with what the agent was asked."""
    kept: list[Line] = []
    at = 0
    for group in groups(lines):
        if at >= start or any(line.current for line in group):
            kept += group
        else:
            notes += _gone(group, reason)
        at += len(group)
    return kept


def _gone(group: Sequence[Line], reason: str) -> list[Note]:
    return [Note(STEP, "dropped", reason, event) for event in dict.fromkeys(line.event.id for line in group)]


def _fit(projection: Projection, lines: Sequence[Line], budget: Budget, notes: list[Note]) -> list[Line]:
    """The lines without the oldest groups that the budget has no room for."""
    total = sum(map(budget.count, assemble(projection.noted([], lines=tuple(lines)))))
    whole = groups(lines)
    kept: list[list[Line]] = []
    for at, group in enumerate(whole):
        needed = at == len(whole) - 1 or any(line.current for line in group)
        if total <= budget.tokens or needed:
            kept.append(group)
            continue
        total -= sum(budget.count(line.message) for line in group)
        notes += _gone(group, f"the budget of {budget.tokens} tokens has no room for it")
    if total > budget.tokens:
        text = f"{total} tokens remain, more than the budget of {budget.tokens}: what is asked and the last round stay"
        notes.append(Note(STEP, "kept", text))
    return [line for group in kept for line in group]
