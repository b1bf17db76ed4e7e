"""A record of the summaries of a session, kept beside its conversation: what was made, when, and what it took."""

from __future__ import annotations

import logging
import time
from typing import Any

from graphagent.services import SessionService
from runner.summary.values import Attempt

_log = logging.getLogger(__name__)

TRACK = "summary"
TOLD = ("updated", "empty", "overtaken", "failed", "cancelled")
"""The attempts that are recorded: those that took something. That none is due is found after nearly each event."""


def attempt_document(attempt: Attempt) -> dict[str, Any]:
    """An attempt as plain data. `at`: when it ended, in seconds since the epoch; `took`: seconds."""
    document: dict[str, Any] = {
        "at": time.time(),
        "filter_key": attempt.filter_key,
        "outcome": attempt.outcome,
        "reason": attempt.reason,
        "took": round(attempt.seconds, 3),
        "spent": attempt.spent._asdict(),
    }
    if attempt.trigger is not None:
        document["trigger"] = attempt.trigger.name
    if attempt.mode is not None:
        document["mode"] = attempt.mode
    if attempt.updated and attempt.summary is not None:
        document["up_to"] = attempt.summary.boundary.seq
    return document


async def keep_record(sessions: SessionService, attempt: Attempt) -> None:
    """Put an attempt on the session's track `summary`. A failure is logged: the summary itself doesn't depend on it."""
    try:
        await sessions.append_track(attempt.key, TRACK, [attempt_document(attempt)])
    except Exception as error:
        _log.debug("no record of a summary of session '%s': %s", attempt.key.session, error)
