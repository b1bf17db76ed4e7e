"""The order in which a debugger goes through the stored rows of a lineage.

A child frame comes behind the row that its activation started from; those of one step by their places in it. Rows that
a child wrote after its parent had been interrupted come behind the parent's row of that interrupt.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from graphagent.checkpoint.record import Header
from graphagent.debug.stored import Stored, is_within, with_end


class Place(NamedTuple):
    """A row of a frame."""

    namespace: str
    seq: int


class _Unread(NamedTuple):
    """A child frame that nobody has gone into yet."""

    namespace: str


class Walk:
    """The rows of a lineage in order, one branch of every frame: that of the newest row, or of one that was gone to."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self._tips: dict[str, int] = {}
        self._entries: list[Place | _Unread] = []
        self._version = -1
        self._last = 0  # where it was found last
        self._kids: dict[tuple[str, int], list[str]] = {}

    async def newest(self) -> Place | None:
        """The last place of the walk from the newest row; None where nothing is stored."""
        await self._ready()
        return await self._at(len(self._entries) - 1, -1)

    def to_newest(self) -> None:
        """Walk along the newest rows again."""
        if self._tips:
            self._tips = {}
            self._version = -1

    async def go_to(self, place: Place) -> None:
        """Walk along the branch that a row is on. Raises CheckpointNotFound."""
        await self._lead(place)
        await self._ready()

    async def following(self, place: Place, over: str | None = None) -> Place | None:
        """The next place, or None at the end. `over`: a frame whose children are passed by."""
        return await self._at(await self._index(place) + 1, 1, over)

    async def preceding(self, place: Place, over: str | None = None) -> Place | None:
        """The place before, or None at the beginning."""
        return await self._at(await self._index(place) - 1, -1, over)

    async def first(self) -> Place | None:
        """Where the walk begins."""
        await self._ready()
        return await self._at(0, 1)

    def on_newest(self, namespace: str) -> bool:
        """True if the walk goes along the newest rows of a frame, and of those around it."""
        return not any(one in self._tips for one in (namespace, *self.stored.around(namespace)))

    # -- inside ----------------------------------------------------------------------------------

    async def _ready(self) -> None:
        if self._version == self.stored.version:
            return
        if not self.stored.version:
            await self.stored.refresh()
        self._kids = {}
        for namespace in self.stored.spaces:
            child = self.stored.child_of(namespace)
            if child is not None:
                self._kids.setdefault((child.parent, child.base), []).append(namespace)
        for named in self._kids.values():
            named.sort(key=lambda name: (self.stored.child_of(name) or (0, 0, 0))[2])
        self._entries = list(self._of(self.stored.root, await self._chain(self.stored.root)))
        self._version = self.stored.version
        await self._open_interrupted(0, len(self._entries))

    async def _chain(self, namespace: str) -> list[Header]:
        rows = await self.stored.rows(namespace)
        chain = rows.chain(self._tips.get(namespace, rows.newest))
        told = {header.parent for header in chain if header.source == "end"}  # by an end row that came with them
        return [
            row
            for place, row in enumerate(chain)
            if row.seq not in told or place + 1 == len(chain) or not with_end(row, chain[place + 1])
        ]

    def _of(self, namespace: str, chain: Iterable[Header]) -> Iterable[Place | _Unread]:
        for header in chain:
            yield Place(namespace, header.seq)
            for child in self._kids.get((namespace, header.seq), ()):
                yield _Unread(child)

    async def _at(self, index: int, way: int, over: str | None = None) -> Place | None:
        """The place at an index; a child frame that stands there is gone into, from its beginning or its end."""
        while 0 <= index < len(self._entries):
            entry = self._entries[index]
            if over is not None and entry.namespace != over and is_within(entry.namespace, over):
                index += way
                continue
            if isinstance(entry, Place):
                self._last = index
                return entry
            added = await self._open(index)
            if added == 0 and way > 0:
                continue  # the entry is gone, and the next one stands there
            index += added - 1 if way < 0 else 0
        return None

    async def _open(self, index: int) -> int:
        """Put the rows of a child frame where it stands; returns how many entries that are, there."""
        entry = self._entries[index]
        assert isinstance(entry, _Unread)
        child = self.stored.child_of(entry.namespace)
        assert child is not None
        chain = await self._chain(entry.namespace)
        parts, stops = [chain], []
        for place, stop in await self._stops(index, child.parent):
            early = [header for header in parts[-1] if header.created_at <= stop.created_at]
            parts[-1:] = [early, parts[-1][len(early) :]]
            stops.append(place)
        for place, part in reversed(list(zip(stops, parts[1:], strict=True))):
            self._entries[place + 1 : place + 1] = list(self._of(entry.namespace, part))
        first = list(self._of(entry.namespace, parts[0]))
        self._entries[index : index + 1] = first
        grown = await self._open_interrupted(index, len(self._entries) if stops else index + len(first))
        return len(first) + grown

    async def _open_interrupted(self, first: int, last: int) -> int:
        """Go into the child frames between two indices whose step was interrupted: some of their rows stand behind the
        interrupt. Returns by how many the entries have grown."""
        before = len(self._entries)
        for index in range(min(last, before) - 1, first - 1, -1):
            entry = self._entries[index]
            if isinstance(entry, _Unread):
                child = self.stored.child_of(entry.namespace)
                if child is not None and await self._stops(index, child.parent):
                    await self._open(index)
        return len(self._entries) - before

    async def _stops(self, index: int, parent: str) -> list[tuple[int, Header]]:
        """The rows at which the step of a parent was interrupted that is open at an index."""
        rows = (await self.stored.rows(parent)).by_seq
        found = []
        for place in range(index + 1, len(self._entries)):
            entry = self._entries[place]
            if isinstance(entry, Place) and entry.namespace == parent:
                header = rows[entry.seq]
                if header.source not in ("interrupt", "error"):
                    break
                found.append((place, header))
        return found

    async def _index(self, place: Place) -> int:
        await self._ready()
        for index in range(max(self._last - 1, 0), min(self._last + 2, len(self._entries))):
            if self._entries[index] == place:
                return index
        if place in self._entries:
            return self._entries.index(place)
        await self._lead(place)
        await self._ready()
        child = self.stored.child_of(place.namespace)
        if child is not None:
            await self._index(await self._shown(Place(child.parent, child.base)))
            unread = _Unread(place.namespace)
            if unread in self._entries:
                await self._open(self._entries.index(unread))
        return self._entries.index(await self._shown(place))

    async def _shown(self, place: Place) -> Place:
        """The place, or the end row that was written with it and stands for both."""
        rows = await self.stored.rows(place.namespace)
        for after in rows.by_seq.values():
            if after.parent == place.seq and with_end(rows.by_seq[place.seq], after):
                return Place(place.namespace, after.seq)
        return place

    async def _lead(self, place: Place) -> None:
        """Have the walk come by a place: its frame's branch, and those of the frames around it."""
        rows = await self.stored.rows(place.namespace)
        if place.seq not in rows.by_seq:
            raise await self.stored.not_found(place.namespace, place.seq)
        tip = self._tips.get(place.namespace, rows.newest)
        if all(header.seq != place.seq for header in rows.chain(tip)):
            self._tips[place.namespace] = rows.tip_from(place.seq)
            self._version = -1
        child = self.stored.child_of(place.namespace)
        if child is not None:
            await self._lead(Place(child.parent, child.base))
