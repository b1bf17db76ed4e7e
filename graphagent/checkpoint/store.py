"""The port that a checkpoint store fills. `graphagent.testing.checkpoint_store_suite` checks one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from graphagent.checkpoint.record import ActivationRow, EffectRow, Header, Loaded, PruneReport, Retention, Row

Signal = Literal["lost", "cancel"]


class PartCodec(Protocol):
    """Turns values of state fields into plain JSON-able data and back; the engine hands one to the store.

    A *part* is a value of the field's declared type or a piece of it: a whole value, a patch of a mapping, a list
    with only the new items. An *update* is what a node returned for the field, after validation.
    """

    def encode_part(self, field: str, part: Any) -> Any:
        """Plain data. Raises EncodeError with field and path."""
        ...

    def decode_part(self, field: str, plain: Any) -> Any:
        """The value. Raises DecodeError with the path."""
        ...

    def encode_update(self, field: str, update: Any) -> Any:
        """Plain data of an update. Raises EncodeError."""
        ...

    def decode_update(self, field: str, plain: Any) -> Any:
        """The update."""
        ...


Read = Callable[[PartCodec | None], Loaded | None]
"""What `CheckpointStore.load` says with a given codec, of a row that has been read already. Raises DecodeError."""


@dataclass(slots=True)
class Lease:
    """The right to write a lineage. `token` grows with every owner, and each write is checked against it."""

    lineage: str
    token: int
    run_id: str
    on_signal: Callable[[Signal], None] | None = None  # called from any thread
    lost: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


class Begin(Protocol):
    """A method `begin` that the class of a store may have besides those of `CheckpointStore`: `acquire` and `load` in
    one go."""

    async def __call__(
        self,
        lineage: str,
        run_id: str,
        namespace: str = "",
        seq: int | None = None,
        *,
        on_signal: Callable[[Signal], None] | None = None,
    ) -> tuple[Lease, Read]:
        """The lease, and what `load` says. Raises LineageBusy; LoadError for a row that is damaged."""
        ...


def is_instant(store: Any) -> bool:
    """True if nothing that the store does is ever waited for, so that there is nothing to shield from a cancellation.

    A store says so by `instant = True`, of its class or in itself: what stands around another one and hands its
    attributes on may well wait.
    """
    own = vars(type(store)).get("instant", False) or getattr(store, "__dict__", {}).get("instant", False)
    return bool(own)


class CheckpointStore(Protocol):
    """Where checkpoints live.

    All methods raise `CheckpointError` or a subclass. A write is atomic: all of one call or nothing. A write with a
    lease that is not the current one raises `LeaseLost` and writes nothing. No connection is held between calls.
    """

    persistent: bool
    """True if rows outlive the process: values are encoded when written."""

    async def acquire(self, lineage: str, run_id: str, *, on_signal: Callable[[Signal], None] | None = None) -> Lease:
        """Take the lineage for one run. Raises LineageBusy while another live owner holds it.

        An owner whose process is known to be dead, or whose lease has expired, is taken over at once. The store
        renews a lease by itself until it is released, also while the event loop is busy.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Give the lineage back; harmless if it was lost."""
        ...

    async def request_cancel(self, lineage: str) -> bool:
        """Ask the owner, in whatever process, to cancel its run; False if nobody holds the lineage."""
        ...

    async def append(
        self,
        lease: Lease,
        namespace: str,
        rows: Sequence[Row],
        codec: PartCodec,
        *,
        closes: int | None = None,
        release: bool = False,
    ) -> int:
        """Write rows of one frame in one transaction; returns the encoded bytes.

        `closes`: the base of a step that these rows end; its activation rows are removed, unless an interrupt row
        with that base exists (going back to it must find them). `release` gives the lease back in the same
        transaction.
        """
        ...

    async def put_activations(
        self, lease: Lease, namespace: str, base: int, done: Sequence[ActivationRow], codec: PartCodec
    ) -> None:
        """Keep finished activations of the open step that started from row `base`."""
        ...

    async def activations(
        self, lineage: str, namespace: str, base: int, codec: PartCodec | None
    ) -> dict[int, ActivationRow]:
        """The kept activations of an open step, by position."""
        ...

    async def load(
        self, lineage: str, namespace: str = "", seq: int | None = None, codec: PartCodec | None = None
    ) -> Loaded | None:
        """The newest row (or the one with `seq`) with its state; None if there is none.

        Without a codec values come as plain data, so that any tool can look at any lineage.
        """
        ...

    async def history(
        self, lineage: str, namespace: str = "", *, limit: int | None = None, before: int | None = None
    ) -> list[Header]:
        """Headers, newest first; an unknown lineage has none. `before`: only rows with a smaller seq."""
        ...

    async def namespaces(self, lineage: str) -> list[str]:
        """The frames of a lineage, sorted; `""` is the root."""
        ...

    async def lineages(self, *, prefix: str = "", limit: int | None = None) -> list[str]:
        """Known lineages, sorted."""
        ...

    async def effects(self, lineage: str, namespace: str, base: int) -> list[EffectRow]:
        """The ledger of the activations that started from row `base`."""
        ...

    async def claim_effect(self, lease: Lease, namespace: str, effect: EffectRow) -> None:
        """Record that a side effect is about to begin (`committed` False); must be durable on return."""
        ...

    async def commit_effect(self, lease: Lease, namespace: str, effect: EffectRow) -> None:
        """Record the result of a claimed effect."""
        ...

    async def save_graph(self, fingerprint: str, document: Mapping[str, Any]) -> None:
        """Keep the canonical document of a graph that is about to write rows; harmless if one is there already.

        A later graph that meets these rows can so tell what has changed. Documents stay when lineages go.
        """
        ...

    async def graph(self, fingerprint: str) -> Mapping[str, Any] | None:
        """The document that was kept of a graph; None if there is none, as in rows of release 0.1.0."""
        ...

    async def pin(self, lineage: str, namespace: str, seq: int, pinned: bool = True) -> None:
        """Protect a row from `prune`, or no longer. Raises CheckpointNotFound."""
        ...

    async def prune(self, policy: Retention, *, lineage: str | None = None, dry_run: bool = False) -> PruneReport:
        """Remove old rows of one or of all lineages; every row that stays loads as before."""
        ...

    async def delete(self, lineage: str) -> int:
        """Remove all of a lineage: frames, activations, effects, lease. Returns the number of rows removed."""
        ...

    async def aclose(self) -> None:
        """Close connections and helper threads; harmless twice."""
        ...

    async def __aenter__(self) -> CheckpointStore: ...

    async def __aexit__(self, *exc: object) -> None: ...


def encoded_overlays(codec: PartCodec, overlays: Mapping[int, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Overlays of Sends as plain data, by frontier position."""
    return {
        str(position): {name: codec.encode_part(name, value) for name, value in overlay.items()}
        for position, overlay in overlays.items()
    }


def encoded_fields(encode: Callable[[str, Any], Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Every entry of `fields` encoded under its own name."""
    return {name: encode(name, value) for name, value in fields.items()}


def matching(names: Iterable[str], prefix: str, limit: int | None) -> list[str]:
    """Sorted names with a prefix, at most `limit`."""
    found = sorted(name for name in names if name.startswith(prefix))
    return found if limit is None else found[:limit]
