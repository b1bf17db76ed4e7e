"""Names that every database and file system can hold, checked where they come in."""

from __future__ import annotations

from graphagent.errors import ServiceError
from graphagent.ledger import SessionKey


def check_name(kind: str, name: str) -> None:
    """Raise ServiceError unless `name` is a text that isn't blank and has no NUL or lone surrogate."""
    if not isinstance(name, str) or not name.strip():
        raise ServiceError(f"{kind} is {name!r}: it must be a text that isn't blank")
    if not name.isprintable() and ("\0" in name or any("\ud800" <= char <= "\udfff" for char in name)):
        raise ServiceError(f"{kind} {name!r} has a NUL or a lone surrogate, which databases refuse; choose another")


def check_user(app: str, user: str) -> None:
    """Raise ServiceError unless both are names."""
    check_name("app name", app)
    check_name("user id", user)


def check_key(key: SessionKey) -> None:
    """Raise ServiceError unless all three parts are names."""
    check_user(key.app, key.user)
    check_name("session id", key.session)
