"""A checkpoint store that passes everything on to another one and can get in the way of every write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from graphagent.checkpoint.record import ActivationRow, EffectRow, Header, Loaded, PruneReport, Retention, Row
from graphagent.checkpoint.store import Begin, CheckpointStore, Lease, PartCodec, Read, Signal

T = TypeVar("T")
Call = Callable[[], Awaitable[T]]


class StoreProxy:
    """A `CheckpointStore` around `inner`; subclasses say in `writing` and `reading` what happens to a call.

    What else a store has (such as its cipher) is that of `inner`, which is opened and closed with the proxy.
    """

    def __init__(self, inner: CheckpointStore) -> None:
        self.inner = inner
        self.persistent = inner.persistent

    async def writing(self, what: str, call: Call[T]) -> T:
        """Carry out a write. `what`: the method's name, then where it writes: `append root/3 step`."""
        return await call()

    async def reading(self, call: Call[T]) -> T:
        """Carry out a read."""
        return await call()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    # -- writes ----------------------------------------------------------------------------------

    async def acquire(self, lineage: str, run_id: str, *, on_signal: Callable[[Signal], None] | None = None) -> Lease:
        """See `CheckpointStore.acquire`."""
        return await self.writing("acquire", lambda: self.inner.acquire(lineage, run_id, on_signal=on_signal))

    @property
    def begin(self) -> Begin | None:
        """See `Begin`; counts as `acquire`. None if `inner` has no such method."""
        inner: Begin | None = getattr(self.inner, "begin", None)
        if inner is None:
            return None

        async def begin(
            lineage: str,
            run_id: str,
            namespace: str = "",
            seq: int | None = None,
            *,
            on_signal: Callable[[Signal], None] | None = None,
        ) -> tuple[Lease, Read]:
            return await self.writing("acquire", lambda: inner(lineage, run_id, namespace, seq, on_signal=on_signal))

        return begin

    async def release(self, lease: Lease) -> None:
        """See `CheckpointStore.release`."""
        await self.writing("release", lambda: self.inner.release(lease))

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
        """See `CheckpointStore.append`."""
        what = f"append {_place(namespace, rows[0].seq)} {'+'.join(row.source for row in rows)}"
        return await self.writing(
            what, lambda: self.inner.append(lease, namespace, rows, codec, closes=closes, release=release)
        )

    async def put_activations(
        self, lease: Lease, namespace: str, base: int, done: Sequence[ActivationRow], codec: PartCodec
    ) -> None:
        """See `CheckpointStore.put_activations`."""
        positions = ",".join(str(row.position) for row in done)
        await self.writing(
            f"put_activations {_place(namespace, base)}.{positions}",
            lambda: self.inner.put_activations(lease, namespace, base, done, codec),
        )

    async def claim_effect(self, lease: Lease, namespace: str, effect: EffectRow) -> None:
        """See `CheckpointStore.claim_effect`."""
        what = f"claim_effect {_effect(namespace, effect)}"
        await self.writing(what, lambda: self.inner.claim_effect(lease, namespace, effect))

    async def commit_effect(self, lease: Lease, namespace: str, effect: EffectRow) -> None:
        """See `CheckpointStore.commit_effect`."""
        what = f"commit_effect {_effect(namespace, effect)}"
        await self.writing(what, lambda: self.inner.commit_effect(lease, namespace, effect))

    async def save_graph(self, fingerprint: str, document: Mapping[str, Any]) -> None:
        """See `CheckpointStore.save_graph`."""
        await self.writing(f"save_graph {fingerprint}", lambda: self.inner.save_graph(fingerprint, document))

    async def request_cancel(self, lineage: str) -> bool:
        """See `CheckpointStore.request_cancel`."""
        return await self.writing("request_cancel", lambda: self.inner.request_cancel(lineage))

    async def pin(self, lineage: str, namespace: str, seq: int, pinned: bool = True) -> None:
        """See `CheckpointStore.pin`."""
        await self.writing(f"pin {_place(namespace, seq)}", lambda: self.inner.pin(lineage, namespace, seq, pinned))

    async def prune(self, policy: Retention, *, lineage: str | None = None, dry_run: bool = False) -> PruneReport:
        """See `CheckpointStore.prune`."""
        return await self.writing("prune", lambda: self.inner.prune(policy, lineage=lineage, dry_run=dry_run))

    async def delete(self, lineage: str) -> int:
        """See `CheckpointStore.delete`."""
        return await self.writing("delete", lambda: self.inner.delete(lineage))

    # -- reads -----------------------------------------------------------------------------------

    async def activations(
        self, lineage: str, namespace: str, base: int, codec: PartCodec | None
    ) -> dict[int, ActivationRow]:
        """See `CheckpointStore.activations`."""
        return await self.reading(lambda: self.inner.activations(lineage, namespace, base, codec))

    async def load(
        self, lineage: str, namespace: str = "", seq: int | None = None, codec: PartCodec | None = None
    ) -> Loaded | None:
        """See `CheckpointStore.load`."""
        return await self.reading(lambda: self.inner.load(lineage, namespace, seq, codec))

    async def history(
        self, lineage: str, namespace: str = "", *, limit: int | None = None, before: int | None = None
    ) -> list[Header]:
        """See `CheckpointStore.history`."""
        return await self.reading(lambda: self.inner.history(lineage, namespace, limit=limit, before=before))

    async def namespaces(self, lineage: str) -> list[str]:
        """See `CheckpointStore.namespaces`."""
        return await self.reading(lambda: self.inner.namespaces(lineage))

    async def lineages(self, *, prefix: str = "", limit: int | None = None) -> list[str]:
        """See `CheckpointStore.lineages`."""
        return await self.reading(lambda: self.inner.lineages(prefix=prefix, limit=limit))

    async def effects(self, lineage: str, namespace: str, base: int) -> list[EffectRow]:
        """See `CheckpointStore.effects`."""
        return await self.reading(lambda: self.inner.effects(lineage, namespace, base))

    async def graph(self, fingerprint: str) -> Mapping[str, Any] | None:
        """See `CheckpointStore.graph`."""
        return await self.reading(lambda: self.inner.graph(fingerprint))

    # -- life ------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Close the store inside."""
        await self.inner.aclose()

    async def __aenter__(self) -> StoreProxy:
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.inner.__aexit__(*exc)


def _place(namespace: str, seq: int) -> str:
    return f"{namespace or 'root'}/{seq}"


def _effect(namespace: str, effect: EffectRow) -> str:
    return f"{_place(namespace, effect.base)}.{effect.position} {effect.name}.{effect.ordinal}"
