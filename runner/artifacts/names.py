"""Whose a file is, and which names a file may have."""

from __future__ import annotations

from typing import NamedTuple

from graphagent.errors import NotFound, ServiceError
from graphagent.ledger import SessionKey
from runner.names import check_key, check_name

USER = "user:"
"""What the name of a file begins with that belongs to the user, not to one session."""

DEFAULT_MIME_TYPE = "application/octet-stream"
_REFUSED = ("/", "\\", "..", "\0")


class Owner(NamedTuple):
    """Whom files belong to: a session, or with an empty `session` a user."""

    app: str
    user: str
    session: str


class Place(NamedTuple):
    """A file: its owner and its name there, without the prefix."""

    owner: Owner
    name: str


def place(key: SessionKey, name: str) -> Place:
    """Where the file with that name is. Raises ServiceError for a name that isn't one."""
    check_key(key)
    bare = name.removeprefix(USER)
    check_name("file name", bare)
    found = [part for part in _REFUSED if part in bare]
    if found:
        raise ServiceError(f"file name '{name}' has {found[0]!r} in it; use a plain name such as 'report.md'")
    return Place(Owner(key.app, key.user, key.session if bare == name else ""), bare)


def owners(key: SessionKey) -> tuple[Owner, Owner]:
    """The owners whose files a session sees: itself and its user."""
    check_key(key)
    return Owner(*key), Owner(key.app, key.user, "")


def shown(owner: Owner, name: str) -> str:
    """The name as a session shows it."""
    return name if owner.session else USER + name


def no_such_version(name: str, version: int, known: list[int]) -> NotFound:
    """The error for a version that isn't there."""
    shown_versions = ", ".join(map(str, known))
    return NotFound(f"file '{name}' has no version {version}; known: {shown_versions}")
