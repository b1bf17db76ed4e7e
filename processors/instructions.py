"""What a model is told before the history: who it is, what it shall do, how to plan and answer, what day it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from graphagent.agents.placeholders import Values, render
from graphagent.errors import AgentError
from graphagent.messages import Message
from processors.assemble import with_text
from processors.projection import Note, Projection

STEP = "instructions"
_PLAN_SEEN = 100  # so many characters of a plan tell whether it is there already


@dataclass(frozen=True, slots=True)
class Instructions:
    """The system message.

    `text`: the agent's instruction, with placeholders (see `graphagent.agents.placeholders`), or a function that makes
    it; an instruction of the run takes its place. `system`: for all agents, put before it. `identity`: say the agent's
    name and description first. `planner`: makes a text that says how to plan. `output_schema`: the answer's JSON
    schema, said in words behind the instruction. `time_format`: adds the time in that form (`strftime`; a day is kinder
    to a provider's cache than a minute), in `timezone`. Nothing is added that is there already. Source: spec/context,
    5.2.
    """

    text: str | Callable[[Projection], str] = ""
    system: str = ""
    identity: bool = False
    planner: Callable[[Projection], str] | None = None
    output_schema: Mapping[str, Any] | None = None
    time_format: str | None = None
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        if self.timezone != "UTC":
            try:
                ZoneInfo(self.timezone)
            except (ZoneInfoNotFoundError, ValueError) as error:
                text = f"'Instructions(timezone=...)' got '{self.timezone}', which is no zone of the tz database"
                raise AgentError(text) from error

    def __call__(self, projection: Projection) -> Projection:
        """Make the system message, or add to the one that is there."""
        notes: list[Note] = []
        head = list(projection.head)
        if self.planner is not None:
            head = _with_plan(head, self.planner(projection), notes)
        values = Values(projection.state, projection.given.values, projection.given.runtime, projection.given.artifacts)
        system, text = self.templates(projection)
        head = _add(head, self._rendered(system, values, notes), before=True)
        head = _add(head, self._rendered(text, values, notes))
        if self.output_schema is not None:
            schema = json.dumps(self.output_schema, ensure_ascii=False, indent=2)
            head = _add(
                head, f"Answer with one JSON value that satisfies this JSON schema, and nothing else:\n{schema}"
            )
        if self.identity and projection.reader.agent:
            reader = projection.reader
            head = _add(head, f"You are {reader.agent}. {reader.description}".strip(), before=True)
        if self.time_format is not None:
            head = _add(head, self._time(projection.reader.now), last=True)
        return projection.noted(notes, head=tuple(head))

    def templates(self, projection: Projection) -> tuple[str, str]:
        """The text for all agents and the agent's own, before their placeholders are filled."""
        if projection.given.instruction is not None:
            return self.system, projection.given.instruction
        return self.system, self.text if isinstance(self.text, str) else self.text(projection)

    def _rendered(self, template: str, values: Values, notes: list[Note]) -> str:
        rendered = render(template, values)
        for placeholder in rendered.unresolved:
            notes.append(Note(STEP, "kept", f"placeholder '{placeholder}' has no value and stands as it is"))
        return rendered.text

    def _time(self, now: float) -> str:
        zone = UTC if self.timezone == "UTC" else ZoneInfo(self.timezone)
        moment = datetime.fromtimestamp(now, zone)
        return f"The current time is: {moment.strftime(self.time_format or '')} ({self.timezone})"


def _with_plan(head: list[Message], plan: str, notes: list[Note]) -> list[Message]:
    """The plan as a system message of its own behind those that are there."""
    seen = plan[:_PLAN_SEEN]
    if not plan.strip() or any(message.role == "system" and seen in message.text for message in head):
        return head
    notes.append(Note(STEP, "added", "how to plan"))
    at = next((at for at, message in enumerate(head) if message.role != "system"), len(head))
    return [*head[:at], Message.system(plan), *head[at:]]


def _add(head: list[Message], text: str, *, before: bool = False, last: bool = False) -> list[Message]:
    """The head with the text in its first (or last) system message, unless it is in one already."""
    places = [at for at, message in enumerate(head) if message.role == "system"]
    if not text.strip() or any(text in head[at].text for at in places):
        return head
    if not places:
        return [Message.system(text), *head]
    at = places[-1 if last else 0]
    return [*head[:at], with_text(head[at], text, after=not before), *head[at + 1 :]]
