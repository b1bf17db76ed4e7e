"""Whose state a key belongs to: bare keys to the session, `app:` and `user:` keys to those, `temp:` keys to nobody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from graphagent.errors import ServiceError
from graphagent.ledger import SessionKey
from runner.names import check_name
from runner.plain import dumps

APP, USER, TEMP = "app:", "user:", "temp:"


class Slot(NamedTuple):
    """Where a key is stored: `user` and `session` are empty for the app's state, `session` for the user's."""

    app: str
    user: str
    session: str
    key: str

    @property
    def shown(self) -> str:
        """The key as a session shows it."""
        prefix = "" if self.session else USER if self.user else APP
        return prefix + self.key


def slots(key: SessionKey, delta: Mapping[str, Any]) -> list[tuple[Slot, str]]:
    """Where the values of a delta go, as JSON, in one order for all writers; `temp:` keys are left out.

    Raises ServiceError for a value that isn't plain data.
    """
    return _ordered({_slot(key, name): value for name, value in delta.items() if not name.startswith(TEMP)})


def shared_slots(app: str, user: str | None, delta: Mapping[str, Any]) -> list[tuple[Slot, str]]:
    """Where the values of a delta of an app (`user` is None) or a user go.

    Raises ServiceError for a key of another scope and for a value that isn't plain data.
    """
    own, others = (APP, (USER, TEMP)) if user is None else (USER, (APP, TEMP))
    found = {}
    for name, value in delta.items():
        if name.startswith(others):
            raise ServiceError(f"state key '{name}' is none of the {own[:-1]}'s; known: bare keys and '{own}...'")
        bare = name.removeprefix(own)
        found[Slot(app, user or "", "", bare)] = value
    return _ordered(found)


def _slot(key: SessionKey, name: str) -> Slot:
    if name.startswith(APP):
        return Slot(key.app, "", "", name.removeprefix(APP))
    if name.startswith(USER):
        return Slot(key.app, key.user, "", name.removeprefix(USER))
    return Slot(key.app, key.user, key.session, name)


def _ordered(found: Mapping[Slot, Any]) -> list[tuple[Slot, str]]:
    for slot in found:
        check_name("state key", slot.key)
    return [(slot, dumps(found[slot], f"state['{slot.shown}']")) for slot in sorted(found)]
