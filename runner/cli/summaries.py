"""The command that shows the summaries of a stored session."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from graphagent.ledger import Session, Summary
from runner.cli.output import columns
from runner.summary.record import TRACK
from runner.summary.rolling import uncovered


def summaries_document(session: Session, limit: int) -> dict[str, Any]:
    """The summaries by filter key (empty: of the whole session), with how many events each leaves in view, and the last
    `limit` attempts at one, the newest first."""
    found = {key: _summary(session, key, summary) for key, summary in sorted(session.summaries.items())}
    attempts = list(reversed(session.tracks.get(TRACK, [])))[:limit]
    return {"session": session.id, "summaries": found, "attempts": attempts}


def summaries_text(session: Session, limit: int) -> str:
    """The same as text."""
    document = summaries_document(session, limit)
    lines: list[str] = []
    for key, one in document["summaries"].items():
        boundary = one["boundary"]
        lines.append(
            f"{_named(key)}: up to number {boundary['seq']} (event {boundary['last_event_id']}, "
            f"{_time(boundary['cutoff_at'])}), {one['events_since']} event(s) since"
        )
        lines += [f"    {line}" for line in one["text"].splitlines()]
    if not lines:
        lines = [f"session '{session.id}' has no summary"]
    rows = [_row(attempt) for attempt in document["attempts"]]
    if rows:
        lines += ["", columns(("attempt", "of", "outcome", "in", "out", "seconds", "why"), rows)]
    return "\n".join(lines)


def _summary(session: Session, key: str, summary: Summary) -> dict[str, Any]:
    return {**summary.model_dump(mode="json"), "events_since": len(uncovered(session, key))}


def _row(attempt: dict[str, Any]) -> tuple[str, ...]:
    spent = attempt["spent"]
    return (
        _time(attempt["at"]),
        _named(attempt["filter_key"]),
        attempt["outcome"],
        str(spent["input_tokens"]),
        str(spent["output_tokens"]),
        f"{attempt['took']:.1f}",
        attempt["reason"] or attempt.get("trigger", ""),
    )


def _named(key: str) -> str:
    return key or "(whole session)"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
