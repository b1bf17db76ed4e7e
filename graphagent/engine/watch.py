"""Detection of in-place changes of the state, under pytest and with GRAPHAGENT_DEBUG=1."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Mapping
from typing import Any

from graphagent.errors import MutatedState

_FIXED = (str, int, float, bool, bytes, type(None))


def debug_enabled() -> bool:
    """GRAPHAGENT_DEBUG says so; without it, True under pytest."""
    setting = os.environ.get("GRAPHAGENT_DEBUG")
    return "pytest" in sys.modules if setting is None else setting not in ("", "0")


class Watch:
    """A copy of the mutable values of a state, to compare with after a node has run."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._copies: dict[str, Any] = {}
        for name, value in values.items():
            if not isinstance(value, _FIXED):
                try:
                    self._copies[name] = copy.deepcopy(value)
                except Exception:  # what can't be copied (an open client) can't be compared either
                    continue

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
        return not bool(value == kept) and bool(kept == kept)  # what differs from itself (NaN) tells nothing
    except Exception:
        return False


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
