"""From an input or a stored row to a frame that can run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphagent.checkpoint.record import Loaded
from graphagent.checkpoint.store import CheckpointStore
from graphagent.engine.frame import Frame, Origin, Setup, Tree
from graphagent.engine.marking_codec import decode_marking, node_named
from graphagent.engine.merge import Merged, merge_writes
from graphagent.engine.outcome import from_row
from graphagent.engine.questions import carried
from graphagent.engine.state_codec import contained
from graphagent.errors import (
    DecodeError,
    IncompatibleCheckpoint,
    InvalidUpdate,
    LoadError,
    UndeclaredField,
    alternatives,
)
from graphagent.graph.marking import Marking
from graphagent.graph.schema import StateSchema
from graphagent.graph.transitions import start
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
        step_bound=limits.max_steps - (1 if limits.landing and not namespace else 0),
    )


def start_turn(frame: Frame, given: Any, who: str) -> Merged:
    """Put an input into a frame that stands at no step, and the frontier at the entry points.

    The input of a first turn takes the place of the defaults; that of a later one goes through the merge rules.
    Raises StateError naming `who`.
    """
    schema = frame.graph.schema
    update = checked_input(schema, given, frame.graph.definition.inputs, who)
    before = frame.values
    if frame.head is None:
        before = {name: value for name, value in before.items() if name not in update}
    merged = merge_writes(schema, before, ((who, update),)) if update else Merged(before)
    if frame.head is None:  # a first row holds everything anyway
        merged = Merged(merged.state)
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
    plain, origins = row.marking, None
    if isinstance(plain, dict) and "m" in plain:
        plain, origins = plain["m"], plain["o"]
    frame.marking = decode_marking(graph, plain, row.overlays)
    frame.seq, frame.head, frame.base, frame.step = row.seq, row.seq, row.base, row.step
    frame.snap, frame.root, frame.fresh = row.snap, row.root, row.fingerprint != graph.fingerprint
    frame.delta_rows, frame.delta_size, frame.snap_size = loaded.delta_rows, loaded.delta_size, loaded.snap_size
    frame.ended = row.source == "end"
    frame.saved = frame.values
    frame.resuming = True
    frame.questions = carried(row.questions)
    frame.passed = frozenset(question.position for question in frame.questions if question.kind == "before")
    if origins is not None:
        names = graph.names
        frame.origins = [
            Origin(base, position, visit, names[activation.node])
            for (base, position, visit, _), activation in zip(origins, frame.marking.frontier, strict=True)
        ]
        await _take_up_inputs(frame, {o: seq for o, (*_, seq) in zip(frame.origins, origins, strict=True)})
    elif setup.engine == "eager":
        frame.origins = fresh_origins(frame, row.base)
    if len(frame.marking.frontier) > 1 or row.source in ("interrupt", "error"):
        await _take_up_finished(frame)
    return frame


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
            earlier = await frame.store.load(frame.lineage, frame.namespace, seq, frame.setup.codec)
            if earlier is not None:
                frame.inputs[origin] = {**defaults, **contained(schema, earlier.values)}


async def _take_up_finished(frame: Frame) -> None:
    assert frame.store is not None
    places = {(origin.base, origin.position): i for i, origin in enumerate(map(frame.origin, _all(frame)))}
    for base in dict.fromkeys(base for base, _ in places):
        kept = await frame.store.activations(frame.lineage, frame.namespace, base, frame.setup.codec)
        for row in kept.values():
            place = places.get((base, row.position))
            if place is not None and frame.marking.frontier[place].node == node_named(frame.graph, row.node):
                frame.held[place] = from_row(frame.graph, row)
                frame.kept.add(place)


def _all(frame: Frame) -> range:
    return range(len(frame.marking.frontier))


async def load_row(
    store: CheckpointStore, setup: Setup, lineage: str, namespace: str = "", seq: int | None = None
) -> Loaded | None:
    """A stored row with its state in the types of this graph. Raises IncompatibleCheckpoint, LoadError."""
    try:
        return await store.load(lineage, namespace, seq, setup.codec)
    except DecodeError as error:
        raise IncompatibleCheckpoint(
            f"the stored state of lineage '{lineage}' doesn't fit this graph: {error}; resume it with the graph that "
            f"wrote it, or give the field a default or a migration",
            changes=(str(error),),
        ) from error
    except LoadError as error:
        raise IncompatibleCheckpoint(str(error), changes=(str(error),)) from error
