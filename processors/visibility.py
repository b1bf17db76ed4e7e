"""Which events of a session a reader sees at all: by time, by filter key, and always what it was asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from graphagent.ledger import Event, is_below, keys_match
from graphagent.messages import Message
from processors.projection import SEED_HISTORY, Branch, Contents, Line, Note, Projection, Reader, Timeline, one_of

STEP = "visibility"


@dataclass(frozen=True, slots=True)
class Visibility:
    """Which events are in view.

    `branch`: events whose filter key is on the reader's path, above or below it (`prefix`), at it or below
    (`subtree`), at it (`exact`), or `all`. `timeline`: of `all` times, of this `request`, or of this `invocation`.
    `contents`: the `session`, or only the reader's own `invocation` whatever else is set (no summary, no recall).
    What the reader was asked is always in view, once. Source: spec/context, 6.3.
    """

    branch: Branch = "prefix"
    timeline: Timeline = "all"
    contents: Contents = "session"

    def __post_init__(self) -> None:
        one_of("Visibility", "branch", self.branch, get_args(Branch))
        one_of("Visibility", "timeline", self.timeline, get_args(Timeline))
        one_of("Visibility", "contents", self.contents, get_args(Contents))

    def __call__(self, projection: Projection) -> Projection:
        """Fill the view with the events that the reader sees."""
        reader = projection.reader
        contents: Contents = "invocation" if projection.given.own_run_only else self.contents
        notes: list[Note] = []
        lines: list[Line] = []
        asked = _asked(projection.events, reader)
        for place, event in enumerate(projection.events):
            current = place == asked or (reader.in_run(event) and event.is_user and not _is_seed(event))
            reason = _not_eligible(event) or (None if current else self._hides(event, reader, contents))
            if reason is not None:
                notes.append(Note(STEP, "dropped", reason, event.id))
                continue
            if current:
                notes.append(Note(STEP, "kept", "it is what the agent was asked", event.id))
            if not event.has_content:
                notes.append(Note(STEP, "changed", "it has no words: its error is told", event.id))
            for message in _said(event):
                is_asked = current and (message.role == "user" or message == reader.message)
                lines.append(Line(message, event, place, is_asked))
        if asked is None and reader.message is not None:
            lines = _insert(lines, reader.message, reader)
            notes.append(Note(STEP, "added", "what the agent was asked is not in the session; it was put in"))
        return projection.noted(
            notes, lines=tuple(lines), branch=self.branch, timeline=self.timeline, contents=contents
        )

    def _hides(self, event: Event, reader: Reader, contents: Contents) -> str | None:
        """Why the reader doesn't see this event, or None if it does."""
        if contents == "invocation":
            return None if event.invocation_id == reader.invocation_id else "only the agent's own run is asked for"
        if self.timeline == "request" and event.request_id != reader.request_id:
            return f"request '{event.request_id}' is not this one"
        if self.timeline == "invocation" and event.invocation_id != reader.invocation_id:
            return f"run '{event.invocation_id}' is not this one"
        if not key_is_visible(event.filter_key, reader.filter_key, self.branch):
            return f"filter key '{event.filter_key}' is not visible from '{reader.filter_key}' ({self.branch})"
        return None


FULL_CONTEXT = Visibility()
"""All times, own path above and below."""
REQUEST_CONTEXT = Visibility(timeline="request")
"""This request, own path above and below."""
ISOLATED_REQUEST = Visibility(branch="exact", timeline="request")
"""This request, own key only."""
ISOLATED_INVOCATION = Visibility(branch="exact", timeline="invocation")
"""This run, own key only."""


def key_is_visible(key: str, reader: str, branch: Branch) -> bool:
    """Whether an event with this filter key is visible to a reader with that one."""
    if branch == "exact":
        return key == reader
    if branch == "subtree":
        return not key or is_below(key, reader)
    return branch == "all" or keys_match(key, reader)


def _is_seed(event: Event) -> bool:
    return bool(event.extensions.get(SEED_HISTORY))


def _asked(events: tuple[Event, ...], reader: Reader) -> int | None:
    """The place of the event that holds what the reader was asked: the last of its own run, else the last of the
    request. One with a sibling's key is the sibling's own copy."""
    found: int | None = None
    for place, event in enumerate(events):
        if reader.message is None or _is_seed(event) or event.request_id != reader.request_id:
            continue
        if event.partial or reader.message not in event.messages:
            continue
        if not keys_match(event.filter_key, reader.filter_key):
            continue
        if found is None or reader.in_run(event) or not reader.in_run(events[found]):
            found = place
    return found


def _not_eligible(event: Event) -> str | None:
    """Why an event never goes to a model, or None if it may."""
    if event.partial:
        return "it is a piece of a message that was still coming"
    if event.kind == "completion":
        return "it marks the end of a run and repeats what was said"
    if not event.has_content and event.error is None:
        return "it has no message with content"
    return None


def _said(event: Event) -> Iterator[Message]:
    """The messages of an event; one that only has an error says so."""
    if event.has_content:
        yield from event.messages
    elif event.error is not None:
        yield Message.assistant(f"type: {event.error.type}, message: {event.error.message}")


def _insert(lines: list[Line], message: Message, reader: Reader) -> list[Line]:
    """The lines with the reader's message before the first of its own run, else at the end."""
    event = Event(
        id=f"asked:{reader.invocation_id}",
        author="user",
        messages=(message,),
        request_id=reader.request_id,
        invocation_id=reader.invocation_id,
        branch=reader.branch,
        filter_key=reader.filter_key,
        timestamp=reader.now,
    )
    at = next((i for i, line in enumerate(lines) if reader.in_run(line.event)), len(lines))
    return [*lines[:at], Line(message, event, -1, current=True), *lines[at:]]
