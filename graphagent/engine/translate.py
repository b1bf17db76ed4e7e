"""Stored state of another version of a graph in the types of this one: renames, drops and migrations that it declares.

A migration is called for what was stored under a former name and for what doesn't fit the declared type, never for what
fits: so nothing is migrated twice, and no note of what has been is needed to read a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphagent.checkpoint.plans import plan_for
from graphagent.checkpoint.record import ActivationRow, Loaded
from graphagent.engine.frame import Setup
from graphagent.errors import DecodeError, EncodeError, IncompatibleCheckpoint, alternatives
from graphagent.graph.definition import Migration
from graphagent.unset import UNSET


@dataclass(slots=True)
class Translated(Loaded):
    """A loaded row that another version wrote; `changes` says what was migrated."""

    changes: tuple[str, ...] = ()


class Translation:
    """Reads values of one lineage; gathers what doesn't fit until `refuse` is called, and what was migrated.

    `plain`: the values are as they are stored; else (a store in memory) they are what the nodes wrote.
    """

    def __init__(self, setup: Setup, lineage: str, *, plain: bool) -> None:
        self.schema = setup.graph.schema
        self.codec = setup.codec
        self.lineage = lineage
        self.plain = plain
        self.migration = _joined(setup.graph.definition.migrations)
        self.problems: list[str] = []
        self.changes: list[str] = []

    def state(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """The state, with the fields that migrations fill."""
        values = self.fields(stored)
        for name, given in self.migration.new.items():
            if name not in values:
                made = self._called(given, name, stored) if callable(given) else given
                if (value := self._decoded(name, made, self.codec.decode_part)) is not UNSET:
                    values[name] = value
                    self.changes.append(f"field '{name}' was filled")
        return values

    def fields(self, stored: Mapping[str, Any], *, updates: bool = False) -> dict[str, Any]:
        """Some fields under their present names, in their present types."""
        values = {}
        for former, value in stored.items():
            name = former if former in self.schema.fields else self.migration.fields.get(former)
            if name is None:
                self._undeclared(former)
            elif not self.schema.fields[name].transient:
                read = self._read(former, name, value, updates)
                if read is not UNSET:
                    values[name] = read
        return values

    def activation(self, row: ActivationRow) -> ActivationRow:
        """A finished activation of an open step."""
        sends = None if row.sends is None else tuple((node, self.fields(overlay)) for node, overlay in row.sends)
        return replace(row, update=self.fields(row.update, updates=True), sends=sends)

    def refuse(self) -> None:
        """Raise IncompatibleCheckpoint with everything that doesn't fit."""
        if self.problems:
            raise IncompatibleCheckpoint(
                f"the stored state of lineage '{self.lineage}' doesn't fit this graph: {'; '.join(self.problems)}; "
                f"resume it with the graph that wrote it, or say migrates(...) on the builder",
                changes=tuple(self.problems),
            )

    def _undeclared(self, name: str) -> None:
        if name in self.migration.drop:
            self.changes.append(f"field '{name}' was dropped")
            return
        self.problems.append(
            f"field '{name}' is stored and '{self.schema.name}' doesn't declare it any more "
            f"({alternatives(name, self.schema.names)})"
        )

    def _read(self, former: str, name: str, value: Any, updates: bool) -> Any:
        migrate = self.migration.values.get(name)
        decode = self.codec.decode_update if updates else self.codec.decode_part
        renamed = f"field '{former}' became '{name}'"
        if former != name:
            self.changes.append(renamed)
        if migrate is None or former == name:
            read, problem = self._fitting(name, value, decode, updates)
            if problem is None or migrate is None:
                if problem is not None:
                    self.problems.append(problem)
                return read
        made = self._called(migrate, name, value if self.plain else _plain(value))
        if made is UNSET:
            return UNSET
        if (changed := f"field '{name}' was migrated") not in self.changes:
            self.changes.append(changed)
        return self._decoded(name, made, decode)

    def _fitting(
        self, name: str, value: Any, decode: Callable[[str, Any], Any], updates: bool
    ) -> tuple[Any, str | None]:
        """The value if it fits as it is, else why not."""
        try:
            if self.plain:
                return decode(name, value), None
            encode = self.codec.encode_update if updates else self.codec.encode_part
            encode(name, value)
        except (DecodeError, EncodeError) as error:
            return UNSET, str(error)
        return value, None

    def _decoded(self, name: str, plain: Any, decode: Callable[[str, Any], Any]) -> Any:
        if plain is UNSET:
            return UNSET
        try:
            return decode(name, plain)
        except DecodeError as error:
            self.problems.append(f"what the migration of '{name}' makes doesn't fit: {error}")
            return UNSET

    def _called(self, migrate: Callable[[Any], Any], name: str, value: Any) -> Any:
        try:
            return migrate(value)
        except Exception as error:  # a migration is the user's own code
            self.problems.append(f"the migration of '{name}' failed: {type(error).__name__}: {error}")
            return UNSET


def translated(setup: Setup, loaded: Loaded, *, plain: bool) -> Translated:
    """A row of another version. Raises IncompatibleCheckpoint with everything that doesn't fit."""
    reader = Translation(setup, loaded.lineage, plain=plain)
    row = replace(loaded.row, overlays={place: reader.fields(fields) for place, fields in loaded.row.overlays.items()})
    values = reader.state(loaded.values)
    reader.refuse()
    return Translated(
        loaded.lineage,
        loaded.namespace,
        row,
        values,
        loaded.newest,
        loaded.delta_rows,
        loaded.delta_size,
        loaded.snap_size,
        loaded.finished,
        tuple(dict.fromkeys(reader.changes)),
    )


def _joined(migrations: Sequence[Migration]) -> Migration:
    """All migrations of a graph as one; a chain of former names leads to the present one."""
    fields: dict[str, str] = {}
    values: dict[str, Callable[[Any], Any]] = {}
    new: dict[str, Any] = {}
    drop: tuple[str, ...] = ()
    for one in migrations:
        fields |= one.fields
        values |= one.values
        new |= one.new
        drop += one.drop
    return Migration(fields, values, new, drop)


def _plain(value: Any) -> Any:
    """A value of a store in memory as it would be stored; one that can't be is handed over as it is."""
    try:
        return plan_for(type(value)).encode(value, "state")
    except EncodeError:
        return value
