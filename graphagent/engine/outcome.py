"""What came of one activation, checked and in the engine's terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from graphagent.checkpoint.record import ActivationRow, Question
from graphagent.engine.marking_codec import node_named
from graphagent.errors import InvalidUpdate
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.results import Command, Send
from graphagent.graph.routes import resolve_jump
from graphagent.graph.schema import StateSchema
from graphagent.graph.view import values_of

Sends = tuple[tuple[int, Mapping[str, Any]], ...]
_NOTHING: Mapping[str, Any] = {}


class Outcome:
    """The checked result of an activation: an update and a jump, or why there is none.

    Exactly one of these holds: it is done (`failure`, `asked` and `limit` are empty), it `failure`d for good, it
    `asked` questions, or a `limit` cut it off.
    """

    failure: Exception | None = None
    asked: tuple[Question, ...] = ()
    limit: str | None = None
    error: str | None = None  # text of the failure that an error edge handles
    cached = False
    attempts = 1

    def __init__(
        self,
        update: Mapping[str, Any] | None = None,
        goto: tuple[int, ...] | None = None,
        sends: Sends | None = None,
    ) -> None:
        self.update = _NOTHING if update is None else update
        self.goto = goto
        self.sends = sends

    @property
    def done(self) -> bool:
        """True if there is a result to merge."""
        return self.failure is None and not self.asked and self.limit is None

    @property
    def fields(self) -> set[str]:
        """The fields that the update writes and that overlays of its Sends lay over."""
        return {*self.update, *(name for _, overlay in self.sends or () for name in overlay)}


def failed(error: Exception) -> Outcome:
    """An outcome for a failure that nothing handled."""
    outcome = Outcome()
    outcome.failure = error
    return outcome


def outcome_of(graph: CompiledGraph, node: int, given: Mapping[str, Any], result: Any) -> Outcome:
    """The outcome of what a node returned. Raises StateError or RouteError for a result that isn't one.

    `given`: the values that the node saw; returning one of these very objects is not a write.
    """
    if result is None:
        return Outcome()
    who = graph.names[node]
    if type(result) is dict:
        return Outcome(checked_update(graph.schema, who, given, result))
    if isinstance(result, Command):
        update = None if result.update is None else checked_update(graph.schema, who, given, result.update)
        goto, sends = _jump(graph, node, result.goto)
        return Outcome(update, goto, sends)
    if isinstance(result, Mapping):
        return Outcome(checked_update(graph.schema, who, given, result))
    if isinstance(result, Send):
        return Outcome(None, None, _sends(graph, node, [result]))
    if isinstance(result, list | tuple) and all(isinstance(item, Send) for item in result):
        return Outcome(None, None, _sends(graph, node, result))
    raise InvalidUpdate(
        f"node '{who}' returned {result!r:.80} ({type(result).__name__}); a node returns None, a mapping of changed "
        f"fields, Send, a list of Sends, or Command",
        node=who,
    )


def checked_update(
    schema: StateSchema, who: str, given: Mapping[str, Any], update: Mapping[str, Any]
) -> dict[str, Any]:
    """The update with every value validated, without values that are no writes. Raises StateError."""
    fields = schema.fields
    checked: dict[str, Any] = {}
    for name, value in update.items():
        field = fields.get(name)
        if field is None:
            schema.check(name, value, f"node '{who}'")  # raises
            continue
        if name in given and value is given[name]:
            if field.form == "list" and value:
                raise InvalidUpdate(
                    f"node '{who}' hands back the very '{name}' it was given; '{field.reducer.name}' adds to what is "
                    f"there, so return the new items only",
                    field=name,
                    node=who,
                )
            if field.form != "value" or field.writers != "many":
                continue
        try:
            checked[name] = field.validate(value)
        except ValidationError as error:
            refused = schema.invalid(field, error, f"node '{who}'")
            refused.node = who
            raise refused from error
    return checked


def _jump(graph: CompiledGraph, node: int, goto: Any) -> tuple[tuple[int, ...] | None, Sends | None]:
    if goto is None:
        return None, None
    targets: Sequence[Any] = [goto] if isinstance(goto, str | Send) or not isinstance(goto, Sequence) else goto
    if any(isinstance(target, Send) for target in targets):
        if not all(isinstance(target, Send) for target in targets):
            raise InvalidUpdate(
                f"node '{graph.names[node]}' mixes ids and Sends in one goto; write the ids as Send(id)",
                node=graph.names[node],
            )
        return None, _sends(graph, node, targets)
    return tuple(dict.fromkeys(resolve_jump(graph, node, target, "goto") for target in targets)), None


def _sends(graph: CompiledGraph, node: int, sends: Sequence[Send]) -> Sends:
    who = f"node '{graph.names[node]}' sends to '{{}}', whose overlay"
    found = []
    for send in sends:
        target = resolve_jump(graph, node, send.node, "Send")
        overlay = {
            name: checked_overlay(graph.schema, who.format(send.node), name, value)
            for name, value in values_of_overlay(send.overlay).items()
        }
        found.append((target, overlay))
    return tuple(found)


def values_of_overlay(overlay: Any) -> Mapping[str, Any]:
    """An overlay as a mapping; a state instance counts as one."""
    return overlay if isinstance(overlay, Mapping) else values_of(overlay)


def checked_overlay(schema: StateSchema, who: str, name: str, value: Any) -> Any:
    """A value of an overlay: assigned, not reduced, so validated as the field's own type."""
    field = schema.fields.get(name)
    if field is None:
        return schema.check(name, value, who)  # raises
    try:
        return field.validate_value(value)
    except ValidationError as error:
        raise schema.invalid(field, error, who, update=False) from error


def to_row(graph: CompiledGraph, position: int, node: int, outcome: Outcome) -> ActivationRow:
    """A finished outcome as it is kept while its step is open."""
    sends = None
    if outcome.sends is not None:
        sends = tuple((graph.names[target], overlay) for target, overlay in outcome.sends)
    goto = None if outcome.goto is None else tuple(graph.name_of(target) for target in outcome.goto)
    note = None if outcome.error is None else {"error": outcome.error}
    return ActivationRow(position, graph.names[node], outcome.update, goto, sends, note)


def from_row(graph: CompiledGraph, row: ActivationRow) -> Outcome:
    """The outcome that a kept row stands for. Raises IncompatibleCheckpoint if it leads to a node that is gone."""
    sends = None if row.sends is None else tuple((node_named(graph, name), overlay) for name, overlay in row.sends)
    goto = None if row.goto is None else tuple(node_named(graph, name) for name in row.goto)
    outcome = Outcome(row.update, goto, sends)
    outcome.error = (row.note or {}).get("error")
    return outcome
