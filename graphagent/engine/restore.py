"""From an input or a stored row to a frame that can run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from graphagent.checkpoint.record import ActivationRow, Loaded
from graphagent.checkpoint.store import CheckpointStore, Read
from graphagent.engine.frame import Frame, Origin, Setup, Tree, is_root
from graphagent.engine.marking_codec import decode_marking, node_named
from graphagent.engine.merge import Merged, delta_between, merge_writes
from graphagent.engine.outcome import from_row
from graphagent.engine.questions import carried
from graphagent.engine.state_codec import StateCodec, contained
from graphagent.engine.translate import Translated, Translation, translated
from graphagent.errors import InvalidUpdate, LoadError, UndeclaredField, alternatives
from graphagent.graph.marking import Marking
from graphagent.graph.schema import StateSchema
from graphagent.graph.transitions import settle, start
from graphagent.graph.view import values_of


def new_frame(setup: Setup, tree: Tree, namespace: str, store: CheckpointStore | None) -> Frame:
    """A frame with default values, before its first input."""
    limits = setup.limits
    return Frame(
        setup=setup,
        graph=setup.graph,
        tree=tree,
        namespace=namespace,
        marking=Marking(()),
        values=setup.graph.schema.start_values(),
        store=store,
        context=tree.context,
        step_bound=limits.max_steps - (1 if limits.landing and is_root(namespace) else 0),
    )


def start_turn(frame: Frame, given: Any, who: str, carry: Collection[str] | None = None) -> Merged:
    """Put an input into a frame that stands at no step, and the frontier at the entry points.

    The input of a first turn takes the place of the defaults; that of a later one goes through the merge rules for
    the fields that go on, which are those in `carry`, or all. Raises StateError naming `who`.
    """
    schema = frame.graph.schema
    update = checked_input(schema, given, frame.graph.definition.inputs, who)
    before = frame.values
    if frame.head is None:
        before = {name: value for name, value in before.items() if name not in update}
    elif carry is not None:
        before = {**schema.start_values(), **{name: before[name] for name in carry if name in before}}
        before = {name: value for name, value in before.items() if name in carry or name not in update}
    merged = merge_writes(schema, before, ((who, update),)) if update else Merged(before)
    if frame.head is None:  # a first row holds everything anyway
        merged = Merged(merged.state)
    elif carry is not None:
        frame.fresh = frame.fresh or bool(frame.values.keys() - merged.state.keys())  # no delta can take a value away
        merged = delta_between(schema, frame.values, merged.state)
    frame.values = merged.state
    frame.marking = start(frame.graph)
    frame.held, frame.kept, frame.questions, frame.origins = {}, set(), (), None
    if frame.setup.engine == "eager":
        frame.origins = fresh_origins(frame, frame.seq + 1)
    return merged


def fresh_origins(frame: Frame, base: int) -> list[Origin]:
    """Origins of a frontier all of which starts from row `base`."""
    names = frame.graph.names
    return [Origin(base, i, frame.step + 1, names[a.node]) for i, a in enumerate(frame.marking.frontier)]


def checked_input(schema: StateSchema, given: Any, inputs: tuple[str, ...] | None, who: str) -> dict[str, Any]:
    """An input as a checked update. None is empty; an instance of the state class stands for the fields set in it."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        if not isinstance(given, schema.state):
            raise InvalidUpdate(
                f"{who} is {given!r:.80} ({type(given).__name__}); pass a mapping of fields or a '{schema.name}'"
            )
        wanted = getattr(given, "model_fields_set", None)
        given = {k: v for k, v in values_of(given).items() if wanted is None or k in wanted}
    for name in given:
        if inputs is not None and name not in inputs and name in schema.fields:
            raise UndeclaredField(
                f"{who} gives '{name}', which is not one of the graph's inputs: {alternatives(name, inputs)}",
                field=name,
            )
    return {name: schema.check(name, value, who) for name, value in given.items()}


async def load_frame(setup: Setup, tree: Tree, namespace: str, loaded: Loaded) -> Frame:
    """The frame that stands where a stored row says. Raises IncompatibleCheckpoint."""
    row = loaded.row
    graph = setup.graph
    frame = new_frame(setup, tree, namespace, tree.store)
    frame.values = {**frame.values, **contained(graph.schema, loaded.values)}
    frame.fresh = row.fingerprint != graph.fingerprint
    plain, origins = row.marking, None
    if isinstance(plain, dict) and "m" in plain:
        plain, origins = plain["m"], plain["o"]
    if frame.fresh and row.source == "end":  # nothing goes on: what joins have left over need not find its place
        plain, origins = {"f": [], "e": 1}, None
    marking = decode_marking(graph, plain, row.overlays)
    frame.marking = settle(graph, marking) if frame.fresh else marking
    frame.seq, frame.head, frame.base, frame.step = row.seq, row.seq, row.base, row.step
    frame.snap, frame.root = row.snap, row.root
    frame.delta_rows, frame.delta_size, frame.snap_size = loaded.delta_rows, loaded.delta_size, loaded.snap_size
    frame.ended = row.source == "end"
    frame.saved = frame.values
    frame.resuming = True
    frame.questions = carried(row.questions)
    frame.passed = frozenset(question.position for question in frame.questions if question.kind == "before")
    if isinstance(loaded, Translated):
        frame.migrated = loaded.changes
    if origins is not None or setup.engine == "eager" or frame.fresh:
        frame.origins = _stored_origins(frame, plain, origins)
    if origins is not None:
        await _take_up_inputs(frame, {o: at[3] for o, at in zip(frame.origins or (), origins, strict=False)})
    if len(frame.marking.frontier) > 1 or row.source in ("interrupt", "error"):
        await _take_up_finished(frame, loaded)
    return frame


def _stored_origins(frame: Frame, plain: Any, origins: list[list[Any]] | None) -> list[Origin] | None:
    """Where the activations of a stored frontier started from, under the ids that their nodes had then.

    None where that is what a frame takes for granted: all started from its base, and no node has another id now.
    """
    stored = [plain] if isinstance(plain, str) else [item[0] for item in plain["f"]]
    if origins is None and frame.setup.engine != "eager" and all(name in frame.graph.index for name in stored):
        return None
    now = [frame.graph.names[activation.node] for activation in frame.marking.frontier]
    names = [*stored, *now[len(stored) :]]  # behind them: what fired when joins were judged anew
    places = origins or [[frame.base, position, frame.step + 1] for position in range(len(stored))]
    named = [[*place[:3], place[4] if len(place) > 4 else name] for place, name in zip(places, stored, strict=True)]
    named += [[frame.base, position, frame.step + 1, names[position]] for position in range(len(stored), len(now))]
    return [Origin(*place) for place in named]


async def _take_up_inputs(frame: Frame, started: dict[Origin, int]) -> None:
    """Eager: an activation that had started runs again on the state it started from, whatever completed meanwhile.

    Where that row has been pruned, it is the newest state.
    """
    assert frame.store is not None
    schema, defaults = frame.graph.schema, frame.graph.schema.start_values()
    for origin, seq in started.items():
        if seq < 0:
            continue
        frame.started[origin] = seq
        if seq != frame.head:
            earlier = await load_row(frame.store, frame.setup, frame.lineage, frame.namespace, seq)
            if earlier is not None:
                frame.inputs[origin] = {**defaults, **contained(schema, earlier.values)}


async def _take_up_finished(frame: Frame, loaded: Loaded) -> None:
    assert frame.store is not None
    places = {(origin.base, origin.position): i for i, origin in enumerate(map(frame.origin, _all(frame)))}
    for base in dict.fromkeys(base for base, _ in places):
        known = loaded.finished if base == frame.base else None
        for row, changed in await _finished(frame, base, known):
            place = places.get((base, row.position))
            if place is not None and frame.marking.frontier[place].node == node_named(frame.graph, row.node):
                frame.held[place] = from_row(frame.graph, row)
                if not changed:  # else it is kept anew, in the types that it has now
                    frame.kept.add(place)


async def _finished(
    frame: Frame, base: int, known: Callable[[Any], dict[int, ActivationRow]] | None
) -> list[tuple[ActivationRow, bool]]:
    """The finished activations that started from a row, and whether each has been migrated. `known`: `Loaded.finished`
    of the row."""
    store = frame.store
    assert store is not None

    async def read(codec: StateCodec | None) -> Iterable[ActivationRow]:
        if known is not None:
            return known(codec).values()
        return (await store.activations(frame.lineage, frame.namespace, base, codec)).values()

    if not frame.fresh:
        with suppress(LoadError):
            return [(row, False) for row in await read(frame.setup.codec)]
    found = []
    for row in await read(None):
        reader = Translation(frame.setup, frame.lineage, plain=store.persistent)
        found.append((reader.activation(row), bool(reader.changes)))
        reader.refuse()
        frame.migrated = tuple(dict.fromkeys([*frame.migrated, *reader.changes]))
    return found


def _all(frame: Frame) -> range:
    return range(len(frame.marking.frontier))


async def load_row(
    store: CheckpointStore,
    setup: Setup,
    lineage: str,
    namespace: str = "",
    seq: int | None = None,
    *,
    known: Read | None = None,
) -> Loaded | None:
    """A stored row with its state in the types of this graph, migrated where that is declared.

    `known`: what a store said of the row when the lineage was taken. Raises IncompatibleCheckpoint with everything
    that doesn't fit, LoadError for a row that can't be read at all.
    """
    with suppress(LoadError):
        codec = setup.codec
        loaded = await store.load(lineage, namespace, seq, codec) if known is None else known(codec)
        if loaded is None or loaded.row.fingerprint == setup.graph.fingerprint:
            return loaded
    loaded = await store.load(lineage, namespace, seq, None) if known is None else known(None)
    return None if loaded is None else translated(setup, loaded, plain=store.persistent)
