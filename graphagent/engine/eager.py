"""The eager engine: a node starts as soon as its trigger exists; its writes merge when it ends.

One activation per node is in flight, more queue. Every completion is a row of its own, so the order in which things
happened is recorded and a replay follows it. After a failure or a question nothing new starts; what runs ends first.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

import anyio
from anyio.abc import TaskGroup

from graphagent.engine.attempt import run_activation
from graphagent.engine.endings import end
from graphagent.engine.frame import RECENT, Frame, Origin, Step
from graphagent.engine.outcome import Outcome, failed
from graphagent.engine.persist import keep, named_encode_error, save_step
from graphagent.engine.plan import Stop, breaks_after, natural_end, plan
from graphagent.engine.questions import pending
from graphagent.engine.step import Result, settle_one
from graphagent.engine.stream import places_of
from graphagent.errors import CheckpointError, EncodeError, StepFailed, WriteConflict

NOTHING = -1
"""No row: kept activations stay where they are until the lineage is pruned; their origins have gone."""
Finished = tuple[Origin, Outcome, int]


async def run_eager(frame: Frame) -> Stop:
    """Run a frame until it ends; the counterpart of `run_supersteps`."""
    return await _Eager(frame).run()


class _Eager:
    """Responsibilities: start what may start, take completions in the order they come, stop in an orderly way."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.running: dict[Origin, anyio.CancelScope] = {}
        self.ended: dict[Origin, Outcome] = {}  # failed, or asked: they stay in the frontier
        self.written: dict[str, tuple[int, str]] = {}  # field with room for one writer -> (completion, writer)
        self.done = 0
        self.stop: Stop | None = None
        self.send, self.receive = anyio.create_memory_object_stream[Finished](float("inf"))

    async def run(self) -> Stop:
        """The loop: start, wait for one completion, take it."""
        with self.send, self.receive:
            try:
                async with anyio.create_task_group() as group:
                    await self._loop(group)
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    await self._keep_untaken()
                raise
        return await end(self.frame, self._final())

    async def _loop(self, group: TaskGroup) -> None:
        held = [(self.frame.origin(position), outcome) for position, outcome in sorted(self.frame.held.items())]
        self.frame.held = {}
        for origin, outcome in held:  # ended in an earlier run
            await self._take(origin, outcome, 0)
        while True:
            await self._start(group)
            if not self.running:
                return
            origin, outcome, began = await self.receive.receive()
            self.running.pop(origin, None)
            await self._take(origin, outcome, began)

    async def _keep_untaken(self) -> None:
        """Store what had ended when the run was cancelled but was not taken yet."""
        frame = self.frame
        places = {frame.origin(i): i for i in range(len(frame.marking.frontier))}
        frame.held = {}
        while self.receive.statistics().current_buffer_used:
            origin, outcome, began = self.receive.receive_nowait()
            if outcome.done and began >= 0 and origin in places:
                frame.held[places[origin]] = outcome
        await keep(frame, tuple(frame.held))

    async def _start(self, group: TaskGroup) -> None:
        if self.stop is not None:
            return
        frame = self.frame
        places = {frame.origin(i): i for i in range(len(frame.marking.frontier))}
        step = plan(frame, running=frozenset(places[origin] for origin in self.running if origin in places))
        if isinstance(step, Stop):
            self.stop = step if frame.marking.frontier else None
            return
        ready = self._ready(step)
        control = frame.tree.control
        if control is not None and ready:
            self.stop = await control.before(frame, Step(tuple(ready), step.nodes))
            if self.stop is not None:
                return
        for position in ready:
            origin = frame.origin(position)
            scope = self.running[origin] = anyio.CancelScope()
            emitter = frame.tree.emitter
            if emitter is not None and (
                waits := emitter.step_begins(frame, Step((position,), step.nodes), places_of(frame))
            ):
                await waits
            # the activation keeps the state and the frontier it started from, whatever completes meanwhile
            begun = copy.copy(frame)
            begun.values = frame.inputs.get(origin, frame.values)
            frame.started.setdefault(origin, frame.seq)
            group.start_soon(self._one, begun, position, origin, scope)

    def _ready(self, step: Step) -> list[int]:
        """The positions of a step that start now: one activation of a node at a time, within the bounds."""
        frame, bound = self.frame, self.frame.setup.limits.max_concurrency
        room = frame.step_bound - frame.steps - len(self.running)
        if bound is not None and bound > 0:
            room = min(room, bound - len(self.running))
        busy = {origin.node for origin in self.running}
        ready: list[int] = []
        for position in step.todo:
            origin = frame.origin(position)
            if len(ready) >= room:
                break
            if origin not in self.running and origin not in self.ended and origin.node not in busy:
                busy.add(origin.node)
                ready.append(position)
        return ready

    async def _one(self, frame: Frame, position: int, origin: Origin, scope: anyio.CancelScope) -> None:
        began = self.done
        outcome = None
        with scope:
            outcome = await run_activation(frame, position)
        if outcome is not None:
            self.send.send_nowait((origin, outcome, began))
        else:
            self.send.send_nowait((origin, Outcome(), -1))

    async def _take(self, origin: Origin, outcome: Outcome, began: int) -> None:
        """One completion: merge, route, fire, write, tell."""
        frame = self.frame
        if began < 0:  # cancelled because another one failed
            return
        if not outcome.done:
            self._keep_in_frontier(origin, outcome)
            return
        position = [frame.origin(i) for i in range(len(frame.marking.frontier))].index(origin)
        conflict = self._conflict(origin, outcome, began)
        if conflict is not None:
            self._keep_in_frontier(origin, failed(conflict))
            return
        frame.held = {position: outcome}
        result = await settle_one(frame, position, outcome)
        if isinstance(result, Stop):
            self._fail(origin, outcome, result)
            return
        await self._advance(position, origin, outcome, result)

    async def _advance(self, position: int, origin: Origin, outcome: Outcome, result: Result) -> None:
        frame = self.frame
        emitter = frame.tree.emitter
        places = places_of(frame) if emitter is not None else ()
        breaks = breaks_after(frame, result.merged.state, only=position) if frame.graph.after else None
        if breaks is not None and breaks.kind == "failed":
            self._fail(origin, outcome, breaks)
            return
        before = (frame.origins, frame.marking)
        places_now = {id(activation): i for i, activation in enumerate(result.marking.frontier)}
        moved = {i: places_now[id(a)] for i, a in enumerate(frame.marking.frontier) if i != position}
        frame.origins = self._origins(position, result)
        over = not result.marking.frontier and natural_end(frame.graph, result.marking).kind == "completed"
        try:
            await save_step(
                frame,
                result.merged,
                result.marking,
                (origin.node,),
                note=_note(result, position),
                end=over and breaks is None,
                closes=NOTHING,
            )
        except EncodeError as error:
            frame.origins, frame.marking = before
            self._keep_in_frontier(origin, failed(named_encode_error(error, origin.node)))
            return
        except CheckpointError as error:
            frame.origins, frame.marking = before
            self._fail(origin, outcome, Stop("failed", str(error), error=error))
            return
        frame.values, frame.marking = result.merged.state, result.marking
        frame.base = frame.seq
        frame.step += 1
        frame.steps += 1
        frame.tree.meter.usage.steps += 1
        frame.recent.append((origin.node,))
        if len(frame.recent) > 4 * RECENT:
            del frame.recent[:-RECENT]
        frame.questions = tuple(
            replace(q, position=moved[q.position]) for q in frame.questions if q.position != position
        )
        frame.held, frame.kept = {}, set()
        frame.started.pop(origin, None)
        frame.inputs.pop(origin, None)
        frame.passed = frozenset(moved[p] for p in frame.passed if p != position)
        if self.stop is not None:  # at a breakpoint before another node of this frontier
            self.stop = self.stop._replace(
                questions=tuple(replace(q, position=moved.get(q.position, q.position)) for q in self.stop.questions)
            )
        self._note_writes(origin, outcome)
        if frame.tree.control is not None:
            frame.tree.control.after(frame, (origin.node,), result.merged, {position: outcome})
        if emitter is not None and (waits := emitter.step_ended(frame, result.merged, {position: outcome}, places)):
            await waits
        if breaks is not None and (self.stop is None or self.stop.kind != "failed"):
            self.stop = breaks

    def _origins(self, position: int, result: Result) -> list[Origin]:
        """Activations that go on keep their origin; new ones start from the row that is about to be written."""
        frame = self.frame
        known = {id(a): frame.origin(i) for i, a in enumerate(frame.marking.frontier) if i != position}
        names = frame.graph.names
        return [
            known.get(id(a)) or Origin(frame.seq + 1, i, frame.step + 2, names[a.node])
            for i, a in enumerate(result.marking.frontier)
        ]

    def _fail(self, origin: Origin, outcome: Outcome, stop: Stop) -> None:
        """An activation ended well, but the run can't go on from it: its result is held for a resume."""
        self.ended[origin] = outcome
        self.stop = stop

    def _keep_in_frontier(self, origin: Origin, outcome: Outcome) -> None:
        self.ended[origin] = outcome
        if self.stop is None:
            self.stop = Stop("asked", "interrupt")
        if outcome.failure is not None and self.frame.setup.cancel_on_failure:
            for scope in self.running.values():
                scope.cancel()

    def _conflict(self, origin: Origin, outcome: Outcome, began: int) -> WriteConflict | None:
        schema = self.frame.graph.schema
        for name, value in outcome.update.items():
            at, who = self.written.get(name, (0, ""))
            field = schema.fields[name]
            if at > began and field.writers != "many":
                if field.writers == "agree" and self.frame.values.get(name) == value:
                    continue
                return WriteConflict(
                    f"'{who}' and '{origin.node}' overlap and both write field '{name}', which has room for one "
                    f"writer; give the field a merge rule, or let one node follow the other",
                    field=name,
                    node=origin.node,
                )
        return None

    def _note_writes(self, origin: Origin, outcome: Outcome) -> None:
        self.done += 1
        fields = self.frame.graph.schema.fields
        for name in outcome.update:
            if fields[name].writers != "many":
                self.written[name] = (self.done, origin.node)

    def _final(self) -> Stop:
        """Failures first, then a limit, then questions, then whatever the plan says."""
        frame = self.frame
        places = {frame.origin(i): i for i in range(len(frame.marking.frontier))}
        frame.held = {places[origin]: outcome for origin, outcome in self.ended.items()}
        ordered = [outcome for _, outcome in sorted(frame.held.items())]
        failures = [outcome.failure for outcome in ordered if outcome.failure is not None]
        if self.stop is not None and self.stop.kind == "failed":
            failures = failures or [self.stop.error] if self.stop.error is not None else failures
        if failures:
            error = failures[0] if len(failures) == 1 else StepFailed(f"{len(failures)} activations failed", failures)
            return Stop("failed", str(failures[0]), error=error)
        limits = [outcome.limit for outcome in ordered if outcome.limit is not None]
        if limits:
            return Stop("limit", limits[0])
        asked = tuple(replace(q, position=p) for p, outcome in sorted(frame.held.items()) for q in outcome.asked)
        if asked or (self.stop is not None and self.stop.kind == "asked" and self.stop.questions):
            extra = self.stop.questions if self.stop is not None else ()
            return Stop("asked", "interrupt", (*asked, *extra))
        if self.stop is not None:
            return self.stop
        if pending(frame.questions):
            return Stop("asked", "unanswered")
        ending = plan(frame)
        return ending if isinstance(ending, Stop) else Stop("stalled", "nothing could start")


def _note(result: Result, position: int) -> Mapping[str, object]:
    """Which activation ended: a replay follows the recorded order."""
    return {"done": position, **(result.note or {})}
