"""What a server takes from its clients: bytes of a body, messages of a request, runs at the same time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from starlette.requests import Request

from graphagent.errors import GraphAgentError, UsageError
from runner.runner import Runner


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """`body_bytes`: of a request; `messages`: in a request; `concurrent_runs`: of all users, `runs_per_user`: of one;
    `session_id`: characters of the id that a client gives a session. Raises UsageError for one below 1."""

    body_bytes: int = 4_000_000
    messages: int = 1_000
    concurrent_runs: int = 256
    runs_per_user: int = 64
    session_id: int = 200

    def __post_init__(self) -> None:
        for one in fields(self):
            if getattr(self, one.name) < 1:
                raise UsageError(f"{one.name} is {getattr(self, one.name)}; a limit of a server has to be 1 or more")


class TooMany(GraphAgentError):
    """As many runs go on as the server allows; nothing was begun."""


class BadBody(GraphAgentError):
    """A request's body can't be read. `status`: the HTTP status that says so."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class RunSlots:
    """Counts the runs of a server: those with a reader, and those whose reader has left, until they end."""

    def __init__(self, runner: Runner, limits: ServerLimits) -> None:
        self._runner = runner
        self._limits = limits
        self._held: dict[str, str] = {}  # request id -> user
        self._left: dict[str, str] = {}

    @contextmanager
    def hold(self, request_id: str, user_id: str) -> Iterator[None]:
        """A place for a run, while it is read and as long as it goes on. Raises TooMany."""
        going = [*self._held.values(), *(self._left[one] for one in self.detached())]
        if len(going) >= self._limits.concurrent_runs:
            raise TooMany(f"the server runs {self._limits.concurrent_runs} requests, as many as it may; try again")
        if going.count(user_id) >= self._limits.runs_per_user:
            raise TooMany(f"{self._limits.runs_per_user} requests of this user run, as many as may; try again")
        self._held[request_id] = user_id
        try:
            yield
        finally:
            del self._held[request_id]
            if self._runner.status(request_id) is not None:
                self._left[request_id] = user_id

    def detached(self) -> list[str]:
        """The ids of the runs that go on without a reader."""
        self._left = {one: user for one, user in self._left.items() if self._runner.status(one) is not None}
        return list(self._left)


async def json_body(request: Request, limits: ServerLimits) -> Any:
    """The body of a request as JSON data, which may be stored: no NUL, no half of a surrogate pair, no NaN.

    Raises BadBody: 413 for one that is too large, 415 for another media type (a web page can send others without being
    asked whether it may), else 400.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise BadBody(f"the content type is {kind!r}; send 'application/json'", status=415)
    raw = await _bytes(request, limits.body_bytes)
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except RecursionError as error:
        raise BadBody("the body is nested too deep") from error
    except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are such
        raise BadBody(f"the body is not valid JSON: {error}") from error
    _check_texts(value)
    return value


async def _bytes(request: Request, most: int) -> bytes:
    said = request.headers.get("content-length", "")
    too_large = BadBody(f"the body has more than {most} bytes, which is this server's limit", status=413)
    if said.isdigit() and int(said[:20]) > most:
        raise too_large
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > most:
            raise too_large
    return bytes(found)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


MOST_DEPTH = 64
"""Levels of lists and objects in a body."""


def _check_texts(value: Any) -> None:
    """Raises BadBody for a text that no database takes, and for data nested deeper than anything that is meant."""
    open_now: list[tuple[Any, int]] = [(value, 0)]
    while open_now:
        one, depth = open_now.pop()
        if depth > MOST_DEPTH:
            raise BadBody(f"the body is nested deeper than {MOST_DEPTH} levels")
        if isinstance(one, str):
            if "\0" in one or any("\ud800" <= letter <= "\udfff" for letter in one if letter > "\ud7ff"):
                raise BadBody("a text of the body has a NUL or half of a surrogate pair, which can't be stored")
        elif isinstance(one, dict):
            open_now += [(part, depth + 1) for pair in one.items() for part in pair]
        elif isinstance(one, list):
            open_now += [(part, depth + 1) for part in one]
