"""One activation of a stored moment, run by itself: with other input or other code, and nothing of it stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

from graphagent.checkpoint.memory import MemoryCheckpoints
from graphagent.checkpoint.record import EffectRow, Row
from graphagent.checkpoint.store import Lease
from graphagent.debug.moment import Moment
from graphagent.debug.recorded import Recorded, Verdict, compared, recorded_end
from graphagent.debug.rows import Rows
from graphagent.engine.attempt import run_activation
from graphagent.engine.control import Control
from graphagent.engine.edit import patched
from graphagent.engine.executor import Executor
from graphagent.engine.frame import Frame, Setup, Step, child_namespace
from graphagent.engine.merge import Merged
from graphagent.engine.outcome import Outcome
from graphagent.engine.plan import Stop
from graphagent.engine.result import Interrupt, public
from graphagent.errors import UsageError, alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.ids import fresh_id

Effects = Literal["recorded", "missing", "run"]


class EffectNotRecorded(UsageError):
    """An activation that is run alone came to a side effect of which the ledger has no result; it was not carried
    out."""

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True)
class Alone:
    """What came of an activation that was run alone.

    It ended with an `update` and a jump (`goto`: ids; `sends`: pairs of id and overlay; None: its edges lead on), or
    with the `error` of its failure, with questions that it `asked`, or at a `limit` of a child graph. `handled`: text
    of a failure that an error edge took. `recorded`: what the run has of it, None if it had not ended there.
    `compared`: how each field that either wrote compares. `requests`: those that were put to models.
    """

    activation: str
    update: Mapping[str, Any]
    goto: tuple[str, ...] | None = None
    sends: tuple[tuple[str, Mapping[str, Any]], ...] | None = None
    error: Exception | None = None
    asked: tuple[Interrupt, ...] = ()
    limit: str | None = None
    handled: str | None = None
    recorded: Recorded | None = None
    compared: Mapping[str, Verdict] | None = None
    requests: tuple[Any, ...] = ()

    @property
    def differs(self) -> tuple[str, ...]:
        """The fields of which something else was written than in the run."""
        return tuple(name for name, verdict in (self.compared or {}).items() if verdict == "differs")


async def run_alone(
    executor: Executor,
    moment: Moment,
    activation: str,
    *,
    patch: Mapping[str, Any] | None = None,
    effects: Effects = "recorded",
    context: Any = None,
) -> Alone:
    """Run an activation that is due at a moment, or that ended with it, on the state that it had; nothing is written
    to the executor's store.

    The node's own function is called, with its retries, timeouts and callbacks, by an executor like the given one,
    whose graph may be newer than the run. That one's callbacks are left out, and caches of nodes; child graphs run
    in a store of their own. `patch`: values laid over the state, validated. `effects`: `recorded` takes the results of
    `ctx.step`, and of calls of models and tools, from the ledger, and fails with EffectNotRecorded where it has none;
    `missing` carries those out; `run` carries out all of them. Keys of effects are those of the run. `context`: what
    the node sees as `ctx.context`.

    Raises UsageError for an activation that isn't there or a word for `effects` that isn't known, StateError for a
    patch that doesn't fit, CheckpointNotFound.
    """
    if effects not in ("recorded", "missing", "run"):
        raise UsageError(f"effects='{effects}' is unknown: {alternatives(effects, ('recorded', 'missing', 'run'))}")
    rows = await Rows.of(executor, moment)
    frame, position = await _due(rows, moment, activation)
    assert frame.head is not None
    name, seq = frame.activation_id(position), frame.head
    store = _Apart(keep=effects == "recorded")
    if effects != "run":
        await _copy_ledger(rows, frame, position, store)
    control = _Listening()
    _cut_off(executor, rows, frame, position, store, patch or {})
    frame.tree.control, frame.tree.context, frame.context = control, context, context
    before = frame.values
    outcome = await run_activation(frame, position)
    recorded = await recorded_end(rows, seq, name)
    names = frame.graph.name_of
    return Alone(
        name,
        outcome.update,
        None if outcome.goto is None else tuple(names(target) for target in outcome.goto),
        None if outcome.sends is None else tuple((names(target), overlay) for target, overlay in outcome.sends),
        outcome.failure,
        tuple(public(question) for question in outcome.asked),
        outcome.limit,
        outcome.error,
        recorded,
        None if recorded is None else compared(frame.graph.schema, before, outcome.update, recorded),
        tuple(control.requests),
    )


async def _due(rows: Rows, moment: Moment, activation: str) -> tuple[Frame, int]:
    """The frame at the row where an activation is due, and its place. Raises UsageError."""
    known: list[str] = []
    seq: int | None = moment.seq
    steps = 0
    while seq is not None and steps < 2:
        frame = await rows.frame(seq)
        names = [frame.activation_id(position) for position in range(len(frame.marking.frontier))]
        if activation in names:
            return frame, names.index(activation)
        known += names
        row = (await rows.written(seq)).row
        seq, steps = row.parent, steps + (row.source == "step")
    raise UsageError(
        f"no activation '{activation}' is due at '{moment.id}', or ended there: "
        f"{alternatives(activation, dict.fromkeys(known))}"
    )


def _cut_off(
    executor: Executor, rows: Rows, frame: Frame, position: int, store: _Apart, patch: Mapping[str, Any]
) -> None:
    """Make a loaded frame one that has nothing to do with the store it came from, with the patch over its state."""
    apart = _Executor(
        executor.graph,
        store,
        executor.engine,
        limits=executor.limits,
        default_retry=executor.default_retry,
        clock=executor.clock,
    )
    frame.setup = apart._setup_of(rows.setup.graph)
    frame.tree = replace(frame.tree, run_id=fresh_id(), store=store, lease=None, durable=True, emitter=None)
    frame.store = store
    frame.resuming = False
    frame.values = frame.inputs.get(frame.origin(position), frame.values)
    if patch:
        frontier = list(frame.marking.frontier)
        one = frontier[position]
        checked = patched(rows.setup.graph, frame.given(one), patch)
        frontier[position] = one._replace(overlay={**(one.overlay or {}), **checked})
        if frame.origins is None:  # the origins of a frontier are told by its place, which stays
            frame.origins = [frame.origin(i) for i in range(len(frontier))]
        frame.marking = frame.marking._replace(frontier=tuple(frontier))


async def _copy_ledger(rows: Rows, frame: Frame, position: int, store: _Apart) -> None:
    """The effects of the activation, and of the child graphs that it ran."""
    origin = frame.origin(position)
    own = await rows.store.effects(rows.lineage, rows.namespace, origin.base)
    store.take(rows.lineage, rows.namespace, (row for row in own if row.position == origin.position))
    base = f"@{origin.base}.{origin.position}"
    inside = child_namespace(frame, position).removesuffix(base)
    for space in await rows.store.namespaces(rows.lineage):
        if space.startswith(inside) and base in space[len(inside) :]:
            for header in await rows.store.history(rows.lineage, space):
                store.take(rows.lineage, space, await rows.store.effects(rows.lineage, space, header.seq))


class _Apart(MemoryCheckpoints):
    """A store that is thrown away. `keep`: effects are those that it was given, no others are begun."""

    instant = True

    def __init__(self, *, keep: bool) -> None:
        super().__init__()
        self.life = ""
        self._keep = keep
        self._given: dict[tuple[str, str, int], list[EffectRow]] = {}

    def take(self, lineage: str, namespace: str, effects: Iterable[EffectRow]) -> None:
        """Have these effects in the ledger."""
        for row in effects:
            self._given.setdefault((lineage, namespace, row.base), []).append(row)

    async def effects(self, lineage: str, namespace: str, base: int) -> list[EffectRow]:
        """The effects that were given, and those that were written since."""
        given = {(row.position, row.name, row.ordinal): row for row in self._given.get((lineage, namespace, base), ())}
        own = await super().effects(lineage, namespace, base)
        return [*(given | {(row.position, row.name, row.ordinal): row for row in own}).values()]

    async def claim_effect(self, lease: Lease, namespace: str, effect: EffectRow) -> None:
        """Refuse to begin an effect. Raises EffectNotRecorded."""
        if self._keep:
            raise EffectNotRecorded(
                f"the ledger has no result of the effect '{effect.name}' (number {effect.ordinal}), so it was not "
                f"carried out; say effects='missing' to carry out what isn't recorded, or effects='run' to carry out "
                f"all of them again",
                name=effect.name,
            )
        await super().claim_effect(lease, namespace, effect)

    async def commit_effect(self, lease: Lease, namespace: str, effect: EffectRow) -> None:
        """Record the result of an effect."""
        await super().claim_effect(lease, namespace, effect)


class _Executor(Executor):
    """An executor whose nodes have no caches: what is tried out is neither taken from them nor put there."""

    def _setup_of(self, graph: CompiledGraph) -> Setup:
        setup = super()._setup_of(graph)
        if any(call.cache is not None for call in setup.calls):
            calls = tuple(replace(call, cache=None) for call in setup.calls)
            setup = self._children[id(graph)] = replace(setup, calls=calls)
        return setup


class _Listening(Control):
    """A control that holds nothing: it keeps the requests to models."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    async def before(self, frame: Frame, step: Step) -> None:
        """Goes on."""

    def wrote(self, frame: Frame, rows: Sequence[Row]) -> None:
        """Rows of child graphs are thrown away."""

    def after(self, frame: Frame, nodes: tuple[str, ...], merged: Merged, outcomes: Mapping[int, Outcome]) -> None:
        """Goes on."""

    async def ended(self, frame: Frame, stop: Stop) -> None:
        """Nothing to do."""

    def timing(self, scope: Any) -> AbstractContextManager[None]:
        """Nothing is held, so no deadline moves."""
        return nullcontext()

    def model_asked(self, frame: Frame, position: int, request: Any) -> None:
        """Keeps the request."""
        self.requests.append(request)
