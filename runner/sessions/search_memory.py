"""The index of words in memory, as `search` asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from graphagent.ledger import Event
from runner.sessions.meaning import Vectors
from runner.sessions.search import MOST_PLACES, SESSION_BITS, Found, Span
from runner.sessions.search_ranking import Row
from runner.sessions.search_text import said_by


class Messages:
    """The messages of a session that can be found, and where its words stand. `number`: the session's key."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.rows: list[Row] = []
        self.words = 0
        self.vectors: dict[str, dict[int, bytes]] = {}
        self.stored: dict[int, Callable[[], Event]] = {}
        self._places: dict[str, list[int]] = {}

    def add(self, event: Event, hand_out: Callable[[], Event]) -> int:
        """Take in a stored event, if it can be found; how many messages there are now."""
        said = said_by(event)
        if said is not None:
            place = (self.number << SESSION_BITS) + len(self.rows) + 1
            self.rows.append(Row(place, event.seq, said.role, said.filter_key, said.speakers, said.size, said.words))
            self.words += said.size
            self.stored[event.seq] = hand_out
            for word in set(f"{said.words}{said.marks}".split()):
                self._places.setdefault(word[:-1], []).append(place)
        return len(self.rows)

    def places(self, word: str) -> list[int]:
        """Where a word stands, oldest first."""
        return self._places.get(word, [])


class MemoryIndex:
    """See `runner.sessions.search.Index`; of the sessions of one user, by name, that are alive."""

    def __init__(self, sessions: Mapping[str, Messages]) -> None:
        self._sessions = sessions
        self._numbered = {one.number: one for one in sessions.values()}

    async def sessions(self, app: str, user: str, name: str | None) -> list[Found]:
        """The sessions, or the one of this name."""
        return [
            Found(one.number, own, len(one.rows), one.words)
            for own, one in self._sessions.items()
            if name is None or own == name
        ]

    async def places(self, app: str, user: str, words: Sequence[str], span: Span) -> list[list[int]]:
        """For each word the places where it stands, newest first, at most MOST_PLACES."""
        latest = sorted(self._numbered, reverse=True)
        return [
            [
                place
                for number in latest
                for place in reversed(self._numbered[number].places(word))
                if span.first <= place < span.end and not span.hole <= place < span.hole_end
            ][:MOST_PLACES]
            for word in words
        ]

    async def rows(self, places: Sequence[int]) -> list[Row]:
        """The messages at these places, as far as there are any."""
        found = []
        for place in places:
            number, within = divmod(place, 1 << SESSION_BITS)
            messages = self._numbered.get(number)
            if messages is not None and 1 <= within <= len(messages.rows):
                found.append(messages.rows[within - 1])
        return found

    async def vectors(self, name: str, sessions: Sequence[int]) -> Vectors:
        """Those of a model, of the messages of sessions."""
        of_model = [self._numbered[number].vectors.get(name, {}) for number in sessions]
        return [item for found in of_model for item in found.items()]

    async def without_vector(self, name: str, sessions: Sequence[int], limit: int) -> list[tuple[int, str]]:
        """Places and texts of messages that have none of it, newest first."""
        found: list[tuple[int, str]] = []
        for number in sorted(sessions, reverse=True):
            messages = self._numbered[number]
            known = messages.vectors.get(name, {})
            missing = [row for row in reversed(messages.rows) if row.role and row.place not in known]
            found += [(row.place, messages.stored[row.seq]().text) for row in missing[: limit - len(found)]]
        return found

    async def put_vectors(self, name: str, vectors: Vectors) -> None:
        """Keep vectors."""
        for place, vector in vectors:
            self._numbered[place >> SESSION_BITS].vectors.setdefault(name, {})[place] = vector

    async def events(self, places: Sequence[int]) -> dict[int, Event]:
        """The events at these places."""
        found = {}
        for place in places:
            number, seq = divmod(place, 1 << SESSION_BITS)
            found[place] = self._numbered[number].stored[seq]()
        return found
