"""A debugging session on one lineage: a cursor that goes along what is stored and, at its end, lets the run go on."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup

from graphagent.checkpoint.record import Header
from graphagent.debug.breakpoints import Breakpoints
from graphagent.debug.changes import changed_row
from graphagent.debug.driver import Driver
from graphagent.debug.live import Arrival, Gate, Going
from graphagent.debug.moment import Moment
from graphagent.debug.past import Past
from graphagent.debug.stopped import Stopped, Why, must_not_only_wait, why_ended, why_over
from graphagent.debug.stored import Stored
from graphagent.debug.walk import Place
from graphagent.engine.control import attached
from graphagent.engine.nested import graphs_within
from graphagent.engine.questions import take_answers
from graphagent.engine.result import RunResult
from graphagent.errors import GraphAgentError, UsageError, alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.ids import parse_checkpoint_id
from graphagent.unset import UNSET

__all__ = ["DebugSession", "Stopped", "Why"]


class DebugSession:
    """Debugs one lineage. An async context manager; leaving it pauses a run that it holds.

    In the past of what is stored `step`, `next`, `out`, `run`, `until` and `back` go along the rows, and nothing is
    executed. At the newest row the forward ones execute: the run goes on, and stands still again before a step. One
    command at a time. `read_only`: it looks, and refuses whatever would write.
    """

    def __init__(self, driver: Driver, *, read_only: bool = False) -> None:
        self.driver = driver
        self.read_only = read_only
        self.breakpoints = Breakpoints(driver.executor.graph)
        self._answers: dict[str, Any] = {}
        self._group: TaskGroup | None = None
        self._begin(driver)

    def _begin(self, driver: Driver) -> None:
        self.driver = driver
        self.stored = Stored(driver.executor, driver.lineage, driver.namespace)
        self._past = Past(self.stored, self.breakpoints)
        self._cursor: Moment | None = None
        self._at: Arrival | None = None  # the frame at the gate that the cursor is on
        self._gate: Gate | None = None  # of the run that goes on
        self._ended: RunResult | Exception | None = None

    async def __aenter__(self) -> Self:
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._group is not None
        held = self._gate is not None and (self._gate.shown is not None or bool(self._gate.waiting))
        with anyio.CancelScope(shield=held):
            if held or kind is None:
                await self.leave()
        if self._gate is not None:
            self._group.cancel_scope.cancel()
        if isinstance(error, Exception):  # the caller's own: raised as it is, not in the group's group
            await self._group.__aexit__(None, None, None)
            return None
        return await self._group.__aexit__(kind, error, trace)

    # -- where it stands -------------------------------------------------------------------------

    @property
    def graph(self) -> CompiledGraph:
        """The graph of the root frame."""
        return self.driver.executor.graph

    @property
    def lineage(self) -> str:
        """The lineage that is debugged."""
        return self.driver.lineage

    @property
    def moment(self) -> Moment:
        """Where the cursor stands. Raises UsageError before `open` and `start`."""
        if self._cursor is None:
            raise UsageError("the session stands nowhere yet; call start(input), or open() for what is stored")
        return self._cursor

    @property
    def live(self) -> bool:
        """True if a run of this session is held where the cursor stands."""
        return self._at is not None and self._gate is not None and self._gate.shown is self._at

    @property
    def running(self) -> bool:
        """True while a run of this session goes on or is held, wherever the cursor stands."""
        return self._gate is not None

    @property
    def at_newest(self) -> bool:
        """True if a forward command would execute: nothing that is stored comes behind the cursor."""
        return self.live or (self._gate is None and self._past.at_end)

    async def timeline(self, namespace: str | None = None) -> list[Header]:
        """Headers of a frame (None: of the root), oldest first, all branches."""
        await self.stored.refresh()
        rows = await self.stored.rows(self.stored.root if namespace is None else namespace)
        return list(rows.by_seq.values())

    async def state(self, moment: Moment | None = None) -> Any:
        """The state at a moment (None: the cursor's), as the class that its graph declares."""
        at = moment or self.moment
        graph = await self.graph_of(at)
        values = await self.values(at)
        return values if graph is None else graph.schema.view(values)

    async def values(self, moment: Moment | None = None) -> dict[str, Any]:
        """The same as a dictionary of fields; those without a value are missing."""
        at = moment or self.moment
        if self._at is not None and at is self._at.moment:
            return dict(self._at.frame.values)
        return await self.stored.values(at.namespace, at.seq)

    async def graph_of(self, moment: Moment | None = None) -> CompiledGraph | None:
        """The graph of a moment's frame; None if this version has none there."""
        return await self.stored.graph((moment or self.moment).namespace)

    # -- moving ----------------------------------------------------------------------------------

    async def open(self, checkpoint: str | None = None) -> Stopped:
        """Look at what is stored: the newest row, or a given one. Raises CheckpointNotFound."""
        await self.stored.refresh()
        if checkpoint is not None:
            return await self.goto(checkpoint)
        place = await self._past.newest()
        return await self._stand(place)

    async def start(self, input: Any = None) -> Stopped:
        """Begin a run, or a turn, and stop before its first step. Raises what `Executor.run` raises."""
        self._may_write("start")
        if self._gate is not None:
            raise UsageError(f"a run of lineage '{self.lineage}' is being debugged; leave() it first")
        stopped = await self._execute(Going("step"), lambda: self.driver.start(input))
        return stopped if stopped.why != "step" else Stopped(stopped.moment, "started", stopped.hit)

    async def step(self) -> Stopped:
        """One step, into child graphs and agents."""
        return await self._go(Going("step"))

    async def next(self) -> Stopped:
        """One step of this frame; what its children do is run through, up to a breakpoint."""
        return await self._go(Going("next", self.moment.namespace))

    async def out(self) -> Stopped:
        """To the end of this frame; stops in its parent, behind the step that ran it."""
        return await self._go(Going("out", self.moment.namespace))

    async def run(self) -> Stopped:
        """To a breakpoint or the end."""
        return await self._go(Going("run"))

    async def until(self, node: str) -> Stopped:
        """To where a node is about to run, or a breakpoint or the end. Raises UsageError for an unknown node."""
        known = [name for graph in graphs_within(self.graph) for name in graph.names]
        if node not in known:
            raise UsageError(f"'{node}' is not a node: {alternatives(node, known)}")
        return await self._go(Going("until", node=node))

    async def halt(self) -> None:
        """Let a run that goes on stand still before its next step; the command that let it go returns then."""
        if self._gate is not None:
            self._gate.going = Going("step")

    async def back(self) -> Stopped:
        """The row before, also one of a child frame."""
        return await self._backward(deep=True)

    async def back_next(self) -> Stopped:
        """The row before in this frame; what its children did is passed by."""
        return await self._backward(deep=False)

    async def goto(self, checkpoint: str) -> Stopped:
        """Stand on a stored row. Raises CheckpointNotFound."""
        found = parse_checkpoint_id(checkpoint, self.lineage)
        if found is None:
            raise await self.stored.not_found(checkpoint, None)
        namespace, seq = found
        if checkpoint.isdigit():
            namespace = self.stored.root
        await self._fresh()
        await self._past.go_to(Place(namespace, seq))
        return await self._stand(Place(namespace, seq), "moved")

    async def refresh(self) -> bool:
        """Look for rows that another process has written; True if there are any. The cursor stays."""
        news = await self.stored.refresh()
        if news and self._cursor is not None:
            await self._past.stand(Place(self.moment.namespace, self.moment.seq))
        return news

    # -- changing --------------------------------------------------------------------------------

    async def answer(self, key: str, value: Any) -> None:
        """Answer a question of the newest row, by its id or key; used when the run goes on. Raises AnswerError."""
        self._may_write("answer")
        loaded = await self.stored.load(self.stored.root, None)
        take_answers(loaded.row.questions, {**self._answers, key: value}, UNSET)
        self._answers[key] = value

    async def edit(self, patch: Mapping[str, Any], *, as_node: str | None = None) -> Stopped:
        """A new row on top of the cursor with changed state; see `Executor.edit`. The run goes on from there.

        Within a child frame the frames around it are taken back to the step that runs it.
        """
        return await self._changed("edited", self.driver, patch, as_node)

    async def fork(self, new_lineage: str | None = None) -> Stopped:
        """A new row that goes on from the cursor's. With `new_lineage` it begins that, and the session goes over to it.
        Raises UsageError if the driver can't."""
        driver = self.driver
        if new_lineage is not None and new_lineage != self.lineage:
            of = getattr(driver, "of", None)
            if of is None:
                raise UsageError(
                    f"a {type(driver).__name__} is for one lineage; fork in it, or debug with an ExecutorDriver"
                )
            driver = of(new_lineage)
        return await self._changed("forked", driver, None, None)

    async def leave(self) -> None:
        """Pause the run that is held, so that anybody can resume it; harmless if there is none."""
        gate = self._gate
        if gate is None:
            return
        gate.leave()
        while self._gate is gate and self._ended is None:
            await gate.wait()
        self._over()
        self._past.at_end = False

    # -- inside: along what is stored ------------------------------------------------------------

    async def _fresh(self) -> None:
        if self._gate is not None or self.stored.stale:
            await self.stored.refresh()

    async def _stand(self, place: Place | None, why: Why | None = None) -> Stopped:
        """Put the cursor on a row; on the gate, where the frame that is held stands there."""
        if place is None:
            raise await self.stored.not_found(self.stored.root, None)
        shown = self._gate.shown if self._gate is not None else None
        self._at = None
        if shown is not None and (shown.namespace, shown.moment.seq) == place:
            self._at, self._cursor = shown, shown.moment
            return Stopped(shown.moment, "step", shown.hit)
        moment = self._cursor = await self.stored.moment(*place)
        await self._past.stand(place)
        over, reason = why_over(moment) if self._past.at_end else ("moved", "")
        return Stopped(moment, why or over, (), reason)

    async def _backward(self, *, deep: bool) -> Stopped:
        moment = self.moment
        await self._fresh()
        place = Place(moment.namespace, moment.seq)
        before = await self._past.preceding(place, deep=deep)
        if before is None:
            raise UsageError(f"'{moment.id}' is the first row that is stored")
        return await self._stand(before, "moved")

    # -- inside: executing -----------------------------------------------------------------------

    async def _go(self, going: Going) -> Stopped:
        if not self.live and not (self._gate is not None and self._gate.shown is None):
            moment = self.moment
            await self._fresh()
            found = await self._past.forward(Place(moment.namespace, moment.seq), going, self._stop_at())
            if found is not None:
                place, hit = found
                stopped = await self._stand(place)
                why = "breakpoint" if hit and stopped.why == "moved" else stopped.why
                return Stopped(stopped.moment, why, hit or stopped.hit, stopped.reason)
        if self._gate is not None:
            return await self._let_go(going)
        self._may_write(going.pace)
        if not self._past.walk.on_newest(self.moment.namespace):
            raise UsageError(
                f"'{self.moment.id}' is not on the newest branch of lineage '{self.lineage}': the run goes on from its "
                f"newest row only; fork() or edit() here first"
            )
        if not self._answers:
            must_not_only_wait(self.moment)
        answers, self._answers = self._answers, {}
        try:
            return await self._execute(going, lambda: self.driver.resume(answers), leaving=self.moment.namespace)
        except GraphAgentError:  # it has not begun, so they are not taken
            self._answers = answers
            raise

    def _stop_at(self) -> Place | None:
        shown = self._gate.shown if self._gate is not None else None
        return None if shown is None else Place(shown.namespace, shown.moment.seq)

    async def _execute(self, going: Going, call: Any, leaving: str | None = None) -> Stopped:
        """Begin a run at the gate. `leaving`: the frame of the cursor, which is not shown where it stands already."""
        if self._group is None:
            raise UsageError("the session isn't open: use it in 'async with DebugSession(...) as session'")
        gate = self._gate = Gate(self.lineage, self.stored.root, self.breakpoints, self.stored)
        self._past.walk.to_newest()
        self._ended = None
        if leaving is not None:
            gate.passing = {leaving, *self.stored.around(leaving)}
        gate.going = going
        self.breakpoints.forget()
        self._group.start_soon(self._drive, gate, call)
        return await self._arrive(gate)

    async def _drive(self, gate: Gate, call: Any) -> None:
        try:
            with attached(gate):
                self._ended = await call()
        except Exception as error:
            self._ended = error
        except BaseException as error:
            self._ended = UsageError(f"the run was given up: {type(error).__name__}")
            raise
        finally:
            gate.finished()

    async def _let_go(self, going: Going) -> Stopped:
        gate = self._gate
        assert gate is not None
        if self._ended is not None:  # while nobody waited
            return await self._ending(gate)
        if self.breakpoints.counts and gate.counted is None:
            await self.stored.refresh()
            gate.counted = await self.stored.visits() - gate.visits
        gate.go(going)
        return await self._arrive(gate)

    async def _arrive(self, gate: Gate) -> Stopped:
        await gate.wait()
        if gate.shown is not None:
            shown = self._at = gate.shown
            self._cursor = shown.moment
            why: Why = "breakpoint" if shown.hit else "step"
            return Stopped(shown.moment, why, shown.hit, shown.stop.reason if shown.stop is not None else "")
        return await self._ending(gate)

    async def _ending(self, gate: Gate) -> Stopped:
        ended = self._ended
        last = self._cursor
        self._over()
        if isinstance(ended, Exception):
            raise ended
        assert ended is not None
        moment = await gate.moment_at_end(ended) or last
        if moment is None:
            raise ended.error or await self.stored.not_found(self.stored.root, None)
        self._cursor = moment
        self._past.at_end = True
        return Stopped(moment, why_ended(ended), gate.hits_at_end(moment), ended.reason, ended)

    def _over(self) -> None:
        self._gate = self._at = None
        self.stored.stale = True

    # -- inside: changing ------------------------------------------------------------------------

    async def _changed(self, why: Why, driver: Driver, patch: Mapping[str, Any] | None, as_node: str | None) -> Stopped:
        self._may_write("edit" if why == "edited" else "fork")
        moment = self.moment
        await self.leave()
        await self.stored.refresh()
        place = await changed_row(self.stored, Place(moment.namespace, moment.seq), driver.lineage, patch, as_node)
        self._answers = {}
        if driver is not self.driver:
            self._begin(driver)
        await self.stored.refresh()
        self._past.walk.to_newest()
        return await self._stand(place, why)

    def _may_write(self, what: str) -> None:
        if self.read_only:
            raise UsageError(
                f"the session is read-only: '{what}' would write to lineage '{self.lineage}'; "
                f"open one with read_only=False"
            )
