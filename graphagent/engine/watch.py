"""Detection of in-place changes of the state, under pytest and with GRAPHAGENT_DEBUG=1."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Collection, Mapping
from typing import Any

from graphagent.errors import MutatedState

_FIXED = (str, int, float, bool, bytes, type(None))


def debug_enabled() -> bool:
    """GRAPHAGENT_DEBUG says so; without it, True under pytest."""
    setting = os.environ.get("GRAPHAGENT_DEBUG")
    return "pytest" in sys.modules if setting is None else setting not in ("", "0")


class Watch:
    """A copy of the mutable values of a state, to compare with after a node has run.

    `fields`: which to look at; transient ones (an open client, a cache) change by being used.
    """

    def __init__(self, values: Mapping[str, Any], fields: Collection[str]) -> None:
        self._copies: dict[str, Any] = {}
        for name, value in values.items():
            if name in fields and not isinstance(value, _FIXED):
                try:
                    kept = copy.deepcopy(value)
                except Exception:  # what can't be copied can't be compared either
                    continue
                if not _differs(value, kept):  # else its kind has no equality of content
                    self._copies[name] = kept

    def undo(self, values: Mapping[str, Any]) -> str | None:
        """Put back what was changed in place; the name of the first such field, or None if nothing was."""
        changed = [name for name, kept in self._copies.items() if _differs(values[name], kept)]
        for name in changed:
            _put_back(values[name], self._copies[name])
        return changed[0] if changed else None

    def error(self, node: str, field: str) -> MutatedState:
        """The error for a change in place."""
        return MutatedState(
            f"node '{node}' changed '{field}' of the state in place; other nodes and earlier checkpoints share it: "
            f"return the new items or a changed copy instead",
            field=field,
            node=node,
        )


def _differs(value: Any, kept: Any) -> bool:
    try:
        return not bool(value == kept)
    except Exception:
        return True


def _put_back(value: Any, kept: Any) -> None:
    """The content of `kept` into the object that everybody shares, where its kind allows."""
    if isinstance(value, list):
        value[:] = kept
    elif isinstance(value, dict | set):
        value.clear()
        value.update(kept)
    elif hasattr(value, "__dict__"):
        value.__dict__.clear()
        value.__dict__.update(kept.__dict__)
