"""The checkpoints of a lineage as they are known here, read once and then only what is new."""

from __future__ import annotations

from collections.abc import Mapping

from graphagent.checkpoint.record import Header
from graphagent.checkpoint.store import CheckpointStore

_FIRST, _PAGE = 32, 2000
"""Headers that a look for new rows reads at first, and then while it has not met a known one."""


class Rows:
    """Headers of every frame of a lineage that belongs to one run. Frames that have ended are not looked at again."""

    def __init__(self, store: CheckpointStore, lineage: str, namespace: str) -> None:
        self._store, self._lineage, self._root = store, lineage, namespace
        self._headers: dict[str, list[Header]] = {}
        self.version = 0

    @property
    def by_frame(self) -> Mapping[str, list[Header]]:
        """Namespace -> headers, the oldest first; not to be changed. `version` grows with every new row."""
        return self._headers

    @property
    def newest(self) -> Header | None:
        """The header that was written last, of whatever frame; of those of one time that of the outermost frame."""
        heads = [rows[-1] for rows in self._headers.values() if rows]
        return max(heads, key=lambda head: (head.created_at, -len(head.namespace)), default=None)

    @property
    def newest_id(self) -> str | None:
        """Its id."""
        return None if self.newest is None else self.newest.id

    @property
    def oldest_id(self) -> str | None:
        """Id of the first row of the run's root frame."""
        rows = self._headers.get(self._root)
        return rows[0].id if rows else None

    @property
    def count(self) -> int:
        """How many rows are known."""
        return sum(map(len, self._headers.values()))

    def head(self, namespace: str) -> Header | None:
        """The newest header of a frame."""
        rows = self._headers.get(namespace)
        return rows[-1] if rows else None

    async def refresh(self) -> bool:
        """Read what is new; True if there was something. Raises LoadError."""
        grown = False
        for namespace in await self._store.namespaces(self._lineage):
            if not self._is_own(namespace):
                continue
            known = self._headers.setdefault(namespace, [])
            if known and known[-1].source == "end" and namespace != self._root:
                continue
            grown = await self._read(namespace, known) or grown
        self.version += grown
        return grown

    def _is_own(self, namespace: str) -> bool:
        if namespace == self._root:
            return True
        return "@" in namespace and (not self._root or namespace.startswith(f"{self._root}/"))

    async def _read(self, namespace: str, known: list[Header]) -> bool:
        if not known:
            known += reversed(await self._store.history(self._lineage, namespace))
            return bool(known)
        last, limit, before = known[-1].seq, _FIRST, None
        found: list[Header] = []
        while True:
            page = await self._store.history(self._lineage, namespace, limit=limit, before=before)
            found += [header for header in page if header.seq > last]
            if len(page) < limit or page[-1].seq <= last:
                break
            limit, before = _PAGE, page[-1].seq
        known += reversed(found)
        return bool(found)
