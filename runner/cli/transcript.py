"""A conversation as text: events as they come, and events as they are stored."""

from __future__ import annotations

from collections.abc import Iterator

from graphagent.ledger import Event, TokenUsage
from runner.cli.output import Output, short


class Transcript:
    """Prints the events of runs: text as it comes, tool calls with their results, errors apart.

    With `--json` every event is a line of JSON, the completion too.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._speaker: tuple[str, str, str] | None = None  # whose text is on the line that is not ended yet

    def event(self, event: Event) -> None:
        """Print one event of a run."""
        if self._output.as_json:
            self._output.line(event.model_dump(mode="json", exclude_defaults=True), "")
            return
        speaker = (event.invocation_id, event.branch, event.author)
        if event.partial:
            if event.delta:
                self._begin(speaker, event.author)
                self._write(event.delta)
            return
        streamed = self._speaker == speaker
        self.end_line()
        for number, line in enumerate(lines_of(event)):
            if not (streamed and number == 0 and event.text):
                self._write(f"{line}\n")
        if event.error is not None and event.kind != "completion":
            self._output.note(f"error: {event.error.message}")

    def end_line(self) -> None:
        """End a line of text that is not complete."""
        if self._speaker is not None:
            self._write("\n")
            self._speaker = None

    def _begin(self, speaker: tuple[str, str, str], name: str) -> None:
        if self._speaker != speaker:
            self.end_line()
            self._write(f"{name}: ")
            self._speaker = speaker

    def _write(self, text: str) -> None:
        print(text, end="", file=self._output.stream, flush=True)


def usage_line(usage: TokenUsage | None) -> str:
    """What was used as text; empty if no tokens were counted."""
    if usage is None or not (usage.input_tokens or usage.output_tokens):
        return ""
    cached = f" ({usage.cached_tokens} cached)" if usage.cached_tokens else ""
    cost = "not known" if usage.cost is None else f"${usage.cost:.6f}"
    return f"tokens: {usage.input_tokens} in{cached}, {usage.output_tokens} out; cost: {cost}"


def lines_of(event: Event) -> Iterator[str]:
    """What a complete event says, a line for each text, call and result."""
    for message in event.messages:
        if message.role == "tool":
            yield f"  <- {short(message.text)}"
            continue
        if message.text:
            yield f"{event.author}: {message.text}"
        for call in message.tool_calls:
            yield f"  -> {call.name}({', '.join(f'{name}={short(value)}' for name, value in call.arguments.items())})"
