"""What is known about a graph beside the graph: how it will be run, and with what around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EngineName = Literal["superstep", "eager", "both"]


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes that are entered at `entry` and left at `exit` only."""

    id: str
    kind: str
    nodes: tuple[str, ...]
    entry: str
    exit: str


@dataclass(frozen=True, slots=True)
class Facts:
    """`engine`: whose semantics count. `store`: whether runs are checkpointed (None: not known). `max_steps`: the
    limit that the executor sets (None: not known). `retried`: the executor retries every node by default. `regions`:
    as declared in a document. `unchecked`: undeclared targets are meant, and a warning only, as with
    `compile(strict=False)`."""

    engine: EngineName = "superstep"
    store: bool | None = None
    max_steps: int | None = None
    retried: bool = False
    regions: tuple[Region, ...] = ()
    unchecked: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where the search gives up, and says so: `max_states` explored, or `max_seconds` (of monotonic time)."""

    max_states: int = 200_000
    max_seconds: float = 10.0
