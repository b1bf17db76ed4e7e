"""The threads of a user: which there are, and one of them as a stream that shows it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from ag_ui.core import PROTOCOL_VERSION, BaseEvent, CustomEvent, MessagesSnapshotEvent, RunStartedEvent

from graphagent.ids import fresh_id
from graphagent.ledger import Session, SessionKey
from runner.servers.agui.encode import encoded
from runner.servers.agui.errors import Refused, nothing_there
from runner.servers.agui.history import conversation, open_calls
from runner.servers.agui.prepare import Shared, questions
from runner.servers.agui.registry import Runs
from runner.servers.agui.state import ShownState
from runner.servers.agui.translator import RunNames, ended
from runner.servers.app import ServerContext

TRIMMED = "history.trimmed"
"""The name of the CUSTOM event that says that earlier messages are left out: `events` is how many are shown."""
GOING = "run.going"
"""The name of the CUSTOM event that names the run that goes on in the thread: `runId`."""
MOST_LISTED = 200


async def listed(context: ServerContext, runs: Runs, user: str, offset: str, limit: str) -> dict[str, Any]:
    """The threads of a user, the last changed first. Times are seconds since the epoch."""
    first, most = _number(offset, "offset", 10**9), _number(limit, "limit", MOST_LISTED)
    found = await context.runner.sessions.list(context.runner.app_name, user, offset=first, limit=most)
    return {"threads": [_row(runs, user, one) for one in found]}


async def history(
    context: ServerContext, runs: Runs, key: SessionKey, shared: Shared, most: int
) -> AsyncGenerator[str, None]:
    """The stream that shows a thread: its messages, its state, what it waits for. Raises Refused if there is none."""
    session = await context.runner.sessions.get(key, last=most + 1)
    if session is None:
        raise nothing_there("thread")
    asked = await questions(context.runner, key) or ()
    names = RunNames(key.session, f"history-{fresh_id()}")
    events = session.events
    told: list[BaseEvent] = [
        RunStartedEvent(thread_id=names.thread_id, run_id=names.run_id, protocol_version=PROTOCOL_VERSION)
    ]
    if len(events) > most:
        events = events[-most:]
        first = next((place for place, event in enumerate(events) if event.is_user), 0)
        events = events[first:]
        told.append(CustomEvent(name=TRIMMED, value={"events": len(events)}))
    told.append(MessagesSnapshotEvent(messages=conversation(events)))
    told += ShownState(shared.shown, session.state).snapshot()
    going = runs.going(key.user, key.session)
    if going is not None:
        told.append(CustomEvent(name=GOING, value={"runId": going.work.names.run_id}))
    told.append(ended(names, [] if going is not None else asked, [] if going is not None else open_calls(events)))
    yield "".join(encoded(event, None) for event in told)


def _row(runs: Runs, user: str, session: Session) -> dict[str, Any]:
    going = runs.going(user, session.id)
    return {
        "threadId": session.id,
        "createdAt": session.created_at,
        "updatedAt": session.updated_at,
        "runId": None if going is None else going.work.names.run_id,
    }


def _number(text: str, param: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 11 and int(text) <= most):
        raise Refused(f"{param} is {text[:40]!r}; it has to be a number from 0 to {most}", param=param)
    return int(text)
