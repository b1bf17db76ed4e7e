"""Which result belongs to which tool call. Pure matching; what is done about what doesn't match is a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from processors.projection import Line


@dataclass(slots=True)
class Round:
    """A message that asks for tools. `at`: its place among the lines; `results`: place among its calls to place among
    the lines."""

    at: int
    line: Line
    results: dict[int, int] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """True if every call has its result."""
        return len(self.results) == len(self.line.message.tool_calls)

    @property
    def in_call_order(self) -> list[int]:
        """Places of the results among the lines, in the order of the calls."""
        return [self.results[position] for position in sorted(self.results)]


class Matched(NamedTuple):
    """`rounds`: by the place of their message. `strays`: places of results without a call, or that are a second one,
    with the reason."""

    rounds: dict[int, Round]
    strays: dict[int, str]


def match_rounds(lines: Sequence[Line]) -> Matched:
    """Give each result to the nearest call before it that has its id and no result yet.

    A call of the same run goes first, since models number their calls alike and parallel agents interleave; a call of
    another run is taken for results that come from outside. The first result of a call counts.
    """
    rounds: dict[int, Round] = {}
    strays: dict[int, str] = {}
    slots: dict[str, list[tuple[Round, int]]] = {}
    for at, line in enumerate(lines):
        if line.message.role == "assistant" and line.message.tool_calls:
            rounds[at] = Round(at, line)
            for position, call in enumerate(line.message.tool_calls):
                slots.setdefault(call.id, []).append((rounds[at], position))
        elif line.message.role == "tool":
            known = slots.get(line.message.tool_call_id or "", [])
            own = [slot for slot in known if slot[0].line.event.invocation_id == line.event.invocation_id]
            slot = _pending(own) or (None if own else _pending(known))
            if slot is not None:
                slot[0].results[slot[1]] = at
            else:
                strays[at] = "its call has a result already" if known else "there is no call before it with its id"
    return Matched(rounds, strays)


def _pending(slots: Sequence[tuple[Round, int]]) -> tuple[Round, int] | None:
    """The last call that has no result."""
    return next((slot for slot in reversed(slots) if slot[1] not in slot[0].results), None)
