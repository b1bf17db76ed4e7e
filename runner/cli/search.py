"""The command that finds events in stored sessions."""

from __future__ import annotations

from typing import Any

import anyio

from graphagent.errors import SessionNotFound, UsageError, alternatives
from graphagent.ledger import SessionKey
from runner.cli.output import Output
from runner.cli.talk_options import SessionsOptions
from runner.recall.excerpt import excerpt
from runner.recall.queries import collapsed
from runner.recall.said import moment, role_of, words_of
from runner.recall.search import Found, Wanted, in_session
from runner.sessions import SqlSessions

SNIPPET = 280
"""Characters of a hit."""


def search(url: str, options: SessionsOptions, output: Output) -> None:
    """Print the events that fit, best first. Raises UsageError without words, SessionNotFound for `--session`."""
    query = collapsed(options.session or "")
    if not query:
        raise UsageError("'search' needs the words to look for: graphagent sessions search \"tls certificate\" ...")
    found = anyio.run(_found, url, options, query)
    output.show(
        {"query": query, "hits": [_data(one, query) for one in found]},
        "\n".join(line for one in found for line in _lines(one, query)) if found else "nothing is found",
    )


async def _found(url: str, options: SessionsOptions, query: str) -> list[Found]:
    async with SqlSessions(url) as service:
        within = options.within
        if within is not None and await service.get(SessionKey(options.app, options.user, within), last=0) is None:
            known = [session.id for session in await service.list(options.app, options.user)]
            hint = alternatives(within, known) if known else "nor any other"
            raise SessionNotFound(f"user '{options.user}' of app '{options.app}' has no session '{within}': {hint}")
        wanted = Wanted(query, "current_session", options.limit)
        return await in_session(service, options.app, options.user, within, wanted)


def _data(found: Found, query: str) -> dict[str, Any]:
    event = found.event
    return {
        "session": found.key.session,
        "event": event.id,
        "number": event.seq,
        "created": moment(event.timestamp),
        "role": role_of(event),
        "author": event.author,
        "score": round(found.score, 4),
        "text": excerpt(collapsed(words_of(event)), SNIPPET, query),
    }


def _lines(found: Found, query: str) -> list[str]:
    shown = _data(found, query)
    head = f"{found.score:.2f}  session {shown['session']}  event {shown['event']}  {shown['created']}"
    who = shown["role"] if shown["role"] == "user" else f"{shown['role']} ({shown['author']})"
    return [head, f"      {who}: {shown['text']}"]
