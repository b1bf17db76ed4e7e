"""The tables of sessions, memory and artifacts, declared with SQLModel: imported only to render or migrate them.

Names are sorted by code points in every database. There are no foreign keys: what belongs to a session is written
while its row is locked, and deleted with it.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, String, UniqueConstraint
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

KEY = BigInteger().with_variant(Integer(), "sqlite")  # SQLite: exactly INTEGER makes it the rowid
NAME = String().with_variant(String(collation="C"), "postgresql")


class Table(SQLModel, registry=registry(metadata=MetaData())):
    """Base of the tables; it keeps them out of the metadata of the application's own SQLModel tables."""


class SessionTable(Table, table=True):
    """A session. `seq`: the number that its newest event or track item has; `shown`: how many events with content it
    has; `said` and `words`: how many messages it has in `ga_search`, and how many words those have; `expires`: NULL
    never does.

    Every append changes this row, so none of the columns that it changes has an index.
    """

    __tablename__ = "ga_sessions"
    __table_args__ = (UniqueConstraint("app", "user_id", "name"),)

    id: int | None = Field(default=None, sa_column=Column(KEY, primary_key=True))
    app: str = Field(sa_type=NAME)
    user_id: str = Field(sa_type=NAME)
    name: str = Field(sa_type=NAME)
    seq: int = Field(sa_type=BigInteger)
    shown: int = Field(sa_type=BigInteger)
    said: int = Field(sa_type=BigInteger)
    words: int = Field(sa_type=BigInteger)
    created_at: float
    updated_at: float
    expires: float | None


class EventTable(Table, table=True):
    """An event; `place` is made of session and number, so that a session's events lie together in order.

    `said` is how many of the session's messages were in `ga_search` once it was added. `shown` is its number among the
    events with content, 0 for one without: that is kept to know that it was there. `asked` is 1 if a person said it.
    `body` is the event as JSON.
    """

    __tablename__ = "ga_events"
    __table_args__ = (UniqueConstraint("session", "id"),)

    place: int = Field(sa_column=Column(KEY, primary_key=True, autoincrement=False))
    session: int = Field(sa_type=BigInteger)
    said: int = Field(sa_type=BigInteger)
    id: str
    at: float
    shown: int = Field(sa_type=BigInteger)
    asked: int
    body: str


_ASKED = EventTable.__table__.c.asked == 1  # type: ignore[attr-defined]
Index("ga_events_asked", EventTable.__table__.c.place, sqlite_where=_ASKED, postgresql_where=_ASKED)  # type: ignore[attr-defined]


class SearchTable(Table, table=True):
    """What an event is found by (see `runner.sessions.search_text.Said`). `place` is made of session and the message's
    number among those that can be found, so that neighbours are told by it; `seq` is the event's number. An index of
    each database's own has the words (see `full_text`)."""

    __tablename__ = "ga_search"

    place: int = Field(sa_column=Column(KEY, primary_key=True, autoincrement=False))
    seq: int = Field(sa_type=BigInteger)
    scope: str
    role: str
    filter_key: str
    speakers: str
    size: int = Field(sa_type=BigInteger)
    words: str
    marks: str


class VectorTable(Table, table=True):
    """The vector of a message for an embedder of that name, as 16-bit floats; `place` as in `ga_search`."""

    __tablename__ = "ga_vectors"

    place: int = Field(sa_column=Column(KEY, primary_key=True, autoincrement=False))
    name: str
    vector: bytes = Field(sa_type=LargeBinary)


class LeaseTable(Table, table=True):
    """Who makes a summary at the moment, until when."""

    __tablename__ = "ga_leases"
    __table_args__ = ({"sqlite_with_rowid": False},)

    session: int = Field(sa_column=Column(KEY, primary_key=True, autoincrement=False))
    filter_key: str = Field(sa_column=Column(NAME, primary_key=True))
    owner: str
    until: float


class StateTable(Table, table=True):
    """A key of a state, its value as JSON. Of an app: `user_id` and `session` are empty; of a user: `session` is."""

    __tablename__ = "ga_states"
    __table_args__ = ({"sqlite_with_rowid": False},)

    app: str = Field(sa_column=Column(NAME, primary_key=True))
    user_id: str = Field(sa_column=Column(NAME, primary_key=True))
    session: str = Field(sa_column=Column(NAME, primary_key=True))
    key: str = Field(sa_column=Column(NAME, primary_key=True))
    value: str
    expires: float | None


class SummaryTable(Table, table=True):
    """The summary of a session for a filter key, as JSON."""

    __tablename__ = "ga_summaries"
    __table_args__ = ({"sqlite_with_rowid": False},)

    session: int = Field(sa_column=Column(KEY, primary_key=True, autoincrement=False))
    filter_key: str = Field(sa_column=Column(NAME, primary_key=True))
    body: str


class TrackTable(Table, table=True):
    """An item of a track, as JSON; `place` as in events."""

    __tablename__ = "ga_tracks"

    place: int = Field(sa_column=Column(KEY, primary_key=True, autoincrement=False))
    track: str = Field(sa_type=NAME)
    at: float
    body: str


class MemoryTable(Table, table=True):
    """Something remembered about a user; `body` is JSON."""

    __tablename__ = "ga_memories"
    __table_args__ = ({"sqlite_with_rowid": False},)

    app: str = Field(sa_column=Column(NAME, primary_key=True))
    user_id: str = Field(sa_column=Column(NAME, primary_key=True))
    id: str = Field(sa_column=Column(NAME, primary_key=True))
    body: str
    created_at: float
    updated_at: float


class ArtifactTable(Table, table=True):
    """A version of a file; `session` is empty for a file of the user."""

    __tablename__ = "ga_artifacts"
    __table_args__ = (UniqueConstraint("app", "user_id", "session", "name", "version"),)

    id: int | None = Field(default=None, sa_column=Column(KEY, primary_key=True))
    app: str = Field(sa_type=NAME)
    user_id: str = Field(sa_type=NAME)
    session: str = Field(sa_type=NAME)
    name: str = Field(sa_type=NAME)
    version: int = Field(sa_type=BigInteger)
    mime_type: str
    data: bytes = Field(sa_type=LargeBinary)


METADATA = Table.metadata
