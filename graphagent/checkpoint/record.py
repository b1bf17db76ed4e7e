"""What a store keeps: plain frozen values, free of any store and of any engine.

A *frame* is one run of one graph inside a lineage: the root graph has namespace `""`, a child graph has the path
of the activation that runs it. Rows of a frame are numbered from 0 (`seq`), so children that run side by side
never race for a number and the same run makes the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from graphagent.ids import checkpoint_id

Source = Literal["input", "step", "interrupt", "end", "edit", "fork", "error"]
"""Why a row was written."""

NO_VALUES: Mapping[str, Any] = {}


@dataclass(slots=True)
class ListDelta:
    """How an append-like field changed: first `drop`, then `put` (both by old index), then `items` at the end."""

    items: list[Any]
    put: tuple[tuple[int, Any], ...] = ()
    drop: tuple[int, ...] = ()

    def apply(self, old: list[Any]) -> list[Any]:
        """The new list; `old` is left as it is."""
        if not self.put and not self.drop:
            return old + self.items
        put, drop = dict(self.put), set(self.drop)
        return [put.get(i, item) for i, item in enumerate(old) if i not in drop] + self.items


@dataclass(frozen=True, slots=True)
class Question:
    """An interrupt as it is stored: one question of one activation, answered or not.

    `position` is the place of the activation in the open step's frontier, `ordinal` counts the questions of that
    activation, `frame` is the child frame that asks (namespace and seq of its newest row) or None for a question
    of this graph. `schema` is the JSON schema of the answer. `prompt` and `answer` are plain data.
    """

    id: str
    key: str
    node: str
    position: int
    ordinal: int
    prompt: Any = None
    schema: Any = None
    kind: str = "ask"  # "ask", "before", "after" (breakpoints) or "pause" (the pause button)
    frame: tuple[str, int] | None = None
    answered: bool = False
    answer: Any = None


@dataclass(slots=True)
class Row:
    """One checkpoint.

    A row holds what its step changed: `values` (field -> new value), `patches` (field -> changed entries of a
    mapping), `lists` (field -> ListDelta). `snap` is the seq of the row at which folding of `values` and `patches`
    begins: that row's `values` are complete. `root` is the seq of the row at which the history of `lists` begins;
    if that row has a `pointer`, its lists begin with the lists of row `pointer` of the same frame.

    `base` is the seq of the row from which the activations of the open step started; it differs from `seq` for
    interrupt and error rows, which leave the frontier as it was. `marking` is plain data (see
    `graphagent.graph.marking_codec`); `overlays` maps a frontier position to the overlay of a Send.
    """

    seq: int
    parent: int | None
    source: Source
    step: int
    base: int
    snap: int
    root: int
    marking: Any
    pointer: int | None = None
    nodes: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    patches: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    lists: Mapping[str, ListDelta] = field(default_factory=dict)
    overlays: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    questions: tuple[Question, ...] = ()
    note: Any = None  # plain data: what failed, which limit, what was edited
    run_id: str = ""
    fingerprint: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Header:
    """A row without its state, as `history` lists it."""

    lineage: str
    namespace: str
    seq: int
    parent: int | None
    source: Source
    step: int
    nodes: tuple[str, ...]
    created_at: float
    run_id: str = ""
    fingerprint: str = ""
    pinned: bool = False

    @property
    def id(self) -> str:
        """The checkpoint's id, such as `order-7:12`."""
        return checkpoint_id(self.lineage, self.namespace, self.seq)

    @property
    def parent_id(self) -> str | None:
        """The id of the checkpoint this one follows."""
        return None if self.parent is None else checkpoint_id(self.lineage, self.namespace, self.parent)


@dataclass(slots=True)
class Loaded:
    """A row with its full state: `values` has every field that is set and persistent."""

    lineage: str
    namespace: str
    row: Row
    values: dict[str, Any]
    newest: bool  # no row of this frame was written later
    delta_rows: int = 0  # rows folded since the last snapshot, and
    delta_size: int = 0  # their encoded size in bytes (0 in the memory store); both steer the next snapshot
    snap_size: int = 0
    finished: Callable[[Any], dict[int, ActivationRow]] | None = None
    """With a codec what `CheckpointStore.activations` says of the row's base, if the store has read them too."""


@dataclass(frozen=True, slots=True)
class ActivationRow:
    """A finished activation of an open step: its validated result, kept until the step's row is written."""

    position: int
    node: str
    update: Mapping[str, Any] = field(default_factory=dict)
    goto: tuple[str, ...] | None = None
    sends: tuple[tuple[str, Mapping[str, Any]], ...] | None = None
    note: Any = None  # plain data of the engine: usage, warnings


@dataclass(slots=True)
class Unencoded:
    """A result that a store which isn't persistent keeps as it is. `plain()` encodes it; raises EncodeError."""

    value: Any
    plain: Callable[[], Any] = field(compare=False, repr=False)


@dataclass(slots=True)
class EffectRow:
    """The ledger entry of one side effect. `committed` False: claimed, outcome unknown."""

    base: int
    position: int
    name: str
    ordinal: int
    committed: bool
    result: Any = None  # plain data, or Unencoded


@dataclass(frozen=True, slots=True)
class Retention:
    """What `prune` may remove, per frame. A row goes when any given bound says so.

    `keep_last`: rows to keep, newest first. `max_age`: seconds. `max_bytes`: of encoded rows. Never removed:
    the newest row of a frame, rows with unanswered questions that are still the newest, rows that others point to
    or were forked from, pinned rows.
    """

    keep_last: int | None = None
    max_age: float | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What `prune` did (or would do): rows removed and bytes freed."""

    rows: int
    bytes: int
    lineages: int
