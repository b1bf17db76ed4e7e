"""The command on stored sessions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import anyio

from graphagent import SqlCheckpoints
from graphagent.errors import SessionNotFound, UsageError, alternatives
from graphagent.ledger import Session, SessionKey
from runner.cli.exits import Exit
from runner.cli.opening import existing_store
from runner.cli.output import Output, columns, fields
from runner.cli.search import search
from runner.cli.summaries import summaries_document, summaries_text
from runner.cli.talk_options import SessionsAction, SessionsOptions
from runner.cli.transcript import lines_of, usage_line
from runner.cli.why import seen_document, seen_lines
from runner.outcome import total
from runner.removal import remove_session
from runner.sessions import SqlSessions
from runner.turns import Turns


def sessions(options: SessionsOptions, output: Output) -> int:
    """List, show, search or delete, or show the summaries."""
    url = existing_store(options.db)
    if options.action is SessionsAction.search:
        search(url, options, output)
        return Exit.COMPLETED
    if options.action is SessionsAction.list:
        if options.session is not None:
            raise UsageError(f"'list' takes no session; did you mean 'sessions show {options.session}'?")
        _show_list(anyio.run(_list, url, options), output)
        return Exit.COMPLETED
    if options.session is None:
        raise UsageError(f"'{options.action.value}' needs to know which session: 'graphagent sessions list' names them")
    if options.action is SessionsAction.show:
        session = anyio.run(_read, url, options)
        output.show(_document(session, options.why), _text(session, options.why))
    elif options.action is SessionsAction.summaries:
        session = anyio.run(_read, url, options)
        output.show(summaries_document(session, options.limit), summaries_text(session, options.limit))
    else:
        anyio.run(_delete, url, options)
        output.show({"session": options.session, "deleted": True}, f"removed session '{options.session}'")
    return Exit.COMPLETED


async def _list(url: str, options: SessionsOptions) -> list[Session]:
    service = SqlSessions(url)
    try:
        return await service.list(options.app, options.user)
    finally:
        await service.aclose()


async def _read(url: str, options: SessionsOptions) -> Session:
    service = SqlSessions(url)
    try:
        found = await service.get(_key(options))
        if found is None:
            raise await _unknown(service, options)
        return found
    finally:
        await service.aclose()


async def _delete(url: str, options: SessionsOptions) -> None:
    service = SqlSessions(url)
    try:
        async with SqlCheckpoints(url) as checkpoints:
            if not await remove_session(service, checkpoints, Turns(checkpoints, "reject"), _key(options)):
                raise await _unknown(service, options)
    finally:
        await service.aclose()


def _key(options: SessionsOptions) -> SessionKey:
    return SessionKey(options.app, options.user, str(options.session))


async def _unknown(service: SqlSessions, options: SessionsOptions) -> SessionNotFound:
    known = [session.id for session in await service.list(options.app, options.user)]
    hint = alternatives(str(options.session), known) if known else "nor any other"
    return SessionNotFound(f"user '{options.user}' of app '{options.app}' has no session '{options.session}': {hint}")


def _show_list(found: list[Session], output: Output) -> None:
    rows = [(session.id, _time(session.updated_at), _time(session.created_at)) for session in found]
    documents = [session.model_dump(mode="json", exclude={"events", "tracks"}) for session in found]
    output.show(documents, columns(("session", "changed", "made"), rows) if rows else "no sessions")


def _document(session: Session, why: bool) -> dict[str, Any]:
    """A session as JSON data; `why`: with what each model saw, event by event."""
    document = session.model_dump(mode="json")
    for event in document["events"] if why else ():
        if (seen := seen_document(session, event["id"])) is not None:
            event["saw"] = seen
    return document


def _text(session: Session, why: bool) -> str:
    """A session as text: what was said, what that took, then its state and which summaries there are. `why`: with
    numbers of events, and what each model saw."""
    lines = [f"session {session.id}, made {_time(session.created_at)}, changed {_time(session.updated_at)}"]
    for number, event in enumerate(session.events, start=1):
        place = f"{number:>4}  " if why else ""
        lines += [f"{place}{_time(event.timestamp)}  {line}" for line in lines_of(event)]
        lines += seen_lines(session, event) if why else ()
    if used := usage_line(total(event.usage for event in session.events if event.usage is not None)):
        lines.append(used)
    if session.state:
        lines += ["state:", fields(session.state)]
    lines += [f"summary of '{key or 'all'}': {summary.text}" for key, summary in session.summaries.items()]
    return "\n".join(lines)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
