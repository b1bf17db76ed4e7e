"""From the events of a run to what the API says of it: text, tool calls, how it ended, usage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphagent.agents.output import OutputSchema, json_part
from graphagent.ledger import Event, TokenUsage
from graphagent.messages import ToolCall
from runner.outcome import OUTCOME
from runner.servers.openai.errors import ApiError, run_error
from runner.servers.openai.floor import Floor, speaker_of

_REASONS = ("stop", "length", "content_filter")


@dataclass(slots=True)
class Answer:
    """What is known of an answer. `whole`: it goes out when it is complete, without what is said on the way to it;
    `schema`: and it is JSON that has what this requires. `text`: the last message without tool calls; `calls`: those
    that the client has to run."""

    whole: bool = False
    schema: Mapping[str, Any] | None = None
    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    finish_reason: str = "stop"
    usage: TokenUsage = field(default_factory=TokenUsage)
    interrupts: tuple[Mapping[str, Any], ...] = ()
    error: ApiError | None = None
    _floor: Floor = field(default_factory=Floor)

    def take(self, event: Event) -> Iterator[dict[str, Any]]:
        """The deltas that an event gives a stream: pieces of text, calls of the client's tools."""
        if event.kind == "completion":
            yield from self._end(event)
        elif event.partial:
            if event.delta and not self.whole:
                yield from _said(self._floor.piece(speaker_of(event), event.delta))
        elif event.error is None and any(message.role == "assistant" for message in event.messages):
            yield from self._message(event)

    @property
    def changed(self) -> bool:
        """Whether a reader of the pieces has another text than the session."""
        return self._floor.changed

    def _message(self, event: Event) -> Iterator[dict[str, Any]]:
        calls = [call for message in event.messages for call in message.tool_calls]
        if not self.whole:
            yield from _said(self._floor.whole(speaker_of(event), event.text))
        if not calls:
            self.text = event.text if self.schema is None else json_part(event.text)
            self.finish_reason = event.finish_reason if event.finish_reason in _REASONS else "stop"
        mine = [call for call in calls if call.id in event.long_running_tool_ids]
        if mine:
            self.text = event.text
            first = len(self.calls)
            self.calls += mine
            yield {"tool_calls": [{"index": first + place, **call_data(call)} for place, call in enumerate(mine)]}

    def _end(self, event: Event) -> Iterator[dict[str, Any]]:
        yield from _said(self._floor.rest())
        self.usage = event.usage or self.usage
        self.interrupts = event.interrupts
        outcome = str(event.extensions.get(OUTCOME, ""))
        if outcome == "limit_reached":
            self.finish_reason = "length"
        elif outcome not in ("completed", "interrupted"):
            self.error = run_error(outcome, event.error)
        elif self.calls:
            self.finish_reason = "tool_calls"
        elif self.schema is not None and self.finish_reason == "stop" and not self.interrupts:
            self._check(self.schema)
        if self.whole and self.text and self.error is None and not self.calls:
            yield {"content": self.text}

    def _check(self, schema: Mapping[str, Any]) -> None:
        try:
            OutputSchema(schema).read(self.text)
        except ValueError as error:
            self.error = ApiError(
                f"the model's answer does not fit 'response_format': {error}", status=502, code="output_does_not_fit"
            )


def call_data(call: ToolCall) -> dict[str, Any]:
    """A tool call as the API has it."""
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def usage_data(usage: TokenUsage) -> dict[str, Any]:
    """The tokens of all models of a run as the API counts them."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def _said(text: str) -> Iterator[dict[str, Any]]:
    if text:
        yield {"content": text}
