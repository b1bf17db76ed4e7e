"""The tables of checkpoints, declared with SQLModel: imported only to create a database or to migrate one.

Integer keys stand for names, so that a row of a checkpoint costs little more than what it holds. There are no foreign
keys: each would cost a lookup per step, and the stores write parents before children and delete them together.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, UniqueConstraint
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

KEY = BigInteger().with_variant(Integer(), "sqlite")  # SQLite: exactly INTEGER makes it the rowid


class Table(SQLModel, registry=registry(metadata=MetaData())):
    """Base of the tables; it keeps them out of the metadata of the application's own SQLModel tables."""


class LineageTable(Table, table=True):
    """A lineage, and who may write it.

    `token` grows with every owner. `owner` names a process (see `owner.py`): who holds the lineage, or held it last;
    NULL where an older release gave it back. `since` and `expires` are seconds since the epoch; `expires` is negative
    once the lineage was given back. `cancel` is 1 when the owner was asked to cancel.
    """

    __tablename__ = "ga_lineages"

    id: int | None = Field(default=None, sa_column=Column(KEY, primary_key=True))
    name: str = Field(unique=True)
    token: int = Field(sa_type=BigInteger)
    run_id: str
    owner: str | None
    since: float
    expires: float
    cancel: int


class FrameTable(Table, table=True):
    """A frame of a lineage: namespace `""` is the root graph."""

    __tablename__ = "ga_frames"
    __table_args__ = (UniqueConstraint("lineage", "namespace"),)

    id: int | None = Field(default=None, sa_column=Column(KEY, primary_key=True))
    lineage: int = Field(sa_type=BigInteger)
    namespace: str


class RunTable(Table, table=True):
    """A run of a graph with a certain fingerprint."""

    __tablename__ = "ga_runs"
    __table_args__ = (UniqueConstraint("lineage", "run_id", "fingerprint"),)

    id: int | None = Field(default=None, sa_column=Column(KEY, primary_key=True))
    lineage: int = Field(sa_type=BigInteger)
    run_id: str
    fingerprint: str


class GraphTable(Table, table=True):
    """The canonical document, as JSON, of a graph that wrote rows: what `ga_runs.fingerprint` stands for."""

    __tablename__ = "ga_graphs"
    __table_args__ = ({"sqlite_with_rowid": False},)

    fingerprint: str = Field(primary_key=True)
    document: bytes = Field(sa_type=LargeBinary)


class RowTable(Table, table=True):
    """A checkpoint; `id` is made of frame and seq, and `rows.py` says what the columns hold.

    Loading the lists of a long history must not read the rows without list changes: hence the index.
    """

    __tablename__ = "ga_rows"

    id: int = Field(sa_column=Column(KEY, primary_key=True, autoincrement=False))
    run: int = Field(sa_type=BigInteger)
    source: int
    step: int
    base: int | None
    snap: int
    root: int
    pointer: int | None
    parent: int | None
    created_at: float
    nodes: bytes = Field(sa_type=LargeBinary)
    marking: bytes = Field(sa_type=LargeBinary)
    delta: bytes | None = Field(sa_type=LargeBinary)
    lists: bytes | None = Field(sa_type=LargeBinary)
    extra: bytes | None = Field(sa_type=LargeBinary)


_LISTED = RowTable.__table__.c.lists.isnot(None)  # type: ignore[attr-defined]
Index("ga_rows_listed", RowTable.__table__.c.id, sqlite_where=_LISTED, postgresql_where=_LISTED)  # type: ignore[attr-defined]


class ActivationTable(Table, table=True):
    """A finished activation of an open step; `base` is the id of the row that the step started from."""

    __tablename__ = "ga_activations"
    __table_args__ = ({"sqlite_with_rowid": False},)

    base: int = Field(sa_column=Column(KEY, primary_key=True, autoincrement=False))
    position: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    body: bytes = Field(sa_type=LargeBinary)


class EffectTable(Table, table=True):
    """The ledger entry of a side effect; `committed` is 0 while its outcome is unknown."""

    __tablename__ = "ga_effects"
    __table_args__ = ({"sqlite_with_rowid": False},)

    base: int = Field(sa_column=Column(KEY, primary_key=True, autoincrement=False))
    position: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    name: str = Field(primary_key=True)
    ordinal: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    committed: int
    result: bytes | None = Field(sa_type=LargeBinary)


class PinTable(Table, table=True):
    """A row that `prune` must leave alone."""

    __tablename__ = "ga_pins"

    id: int = Field(sa_column=Column(KEY, primary_key=True, autoincrement=False))


METADATA = Table.metadata
