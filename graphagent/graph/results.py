"""What a node may return besides a mapping of changed fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Send:
    """Start `node` once more in the next step, on the state overlaid with `overlay` (declared fields only).

    Returning Sends replaces all out-edges of the node that returns them. The Sends of one activation are a group:
    plain edges and joins behind its members fire once, when the last member has ended.
    """

    node: str
    overlay: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Command:
    """An update and a jump in one. `goto` replaces all out-edges of the node: an id or label, several, or Sends."""

    update: Mapping[str, Any] | None = None
    goto: str | Send | Sequence[str | Send] | None = None
