"""The codec that the engine hands to a store: every field by its declared type."""

from __future__ import annotations

from typing import Any, get_args

from graphagent.checkpoint.plans import Cipher, Plan, plan_for
from graphagent.checkpoint.record import Row
from graphagent.errors import EncodeError, LoadError
from graphagent.graph.fields import Field
from graphagent.graph.schema import StateSchema


class StateCodec:
    """Codec of the fields of one schema (see `graphagent.checkpoint.store.PartCodec`). Plans are made at first use."""

    def __init__(self, schema: StateSchema, cipher: Cipher | None = None) -> None:
        self.schema = schema
        self.cipher = cipher
        self._parts: dict[str, Plan] = {}
        self._updates: dict[str, Plan] = {}

    def encode_part(self, field: str, part: Any) -> Any:
        """Plain data of a value, or of some items of a list-like field."""
        plan = self._parts.get(field) or self._part(field)
        try:
            return plan.encode(part, f"state.{field}")
        except EncodeError as error:
            error.field = field
            raise

    def decode_part(self, field: str, plain: Any) -> Any:
        """The value, or the list of items of a list-like field."""
        return (self._parts.get(field) or self._part(field)).decode(plain, f"state.{field}")

    def check(self, row: Row) -> None:
        """Raise EncodeError for a row that a store which encodes would refuse."""
        for name, part in [*row.values.items(), *row.patches.items()]:
            self.encode_part(name, part)
        for name, change in row.lists.items():
            self.encode_part(name, [*change.items, *(item for _, item in change.put)])
        for overlay in row.overlays.values():
            for name, value in overlay.items():
                self.encode_part(name, value)

    def encode_update(self, field: str, update: Any) -> Any:
        """Plain data of an update."""
        try:
            return self._update(field).encode(update, f"state.{field}")
        except EncodeError as error:
            error.field = field
            raise

    def decode_update(self, field: str, plain: Any) -> Any:
        """The update."""
        return self._update(field).decode(plain, f"state.{field}")

    def _field(self, name: str) -> Field:
        field = self.schema.fields.get(name)
        if field is None:
            raise LoadError(
                f"the checkpoint has a field '{name}' that '{self.schema.name}' doesn't declare any more; "
                f"declare it, or migrate the checkpoint"
            )
        return field

    def _part(self, name: str) -> Plan:
        field = self._field(name)
        declared = _items_type(field) if field.form == "list" else field.declared
        plan = plan_for(declared, cipher=self.cipher, partial=field.form == "patch")
        self._parts[name] = plan
        return plan

    def _update(self, name: str) -> Plan:
        plan = self._updates.get(name)
        if plan is None:
            field = self._field(name)
            plan = plan_for(field.update_type, cipher=self.cipher, partial=field.form == "patch")
            self._updates[name] = plan
        return plan


def _items_type(field: Field) -> Any:
    """History of a list-like field is kept as a list, whatever container holds it in the state."""
    arguments = [argument for argument in get_args(field.declared) if argument is not Ellipsis]
    return list[arguments[0]] if len(arguments) == 1 else list[Any]  # type: ignore[valid-type]


def contained(schema: StateSchema, values: dict[str, Any]) -> dict[str, Any]:
    """Loaded values with list-like fields in their own containers (stores keep lists)."""
    for name, value in values.items():
        field = schema.fields.get(name)
        if field is not None and field.form == "list" and type(value) is not field.container:
            values[name] = field.container(value)
    return values
