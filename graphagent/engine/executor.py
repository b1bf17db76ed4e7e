"""The executor: runs, resumes, streams and pauses runs of one graph. Time travel is in `TimeTravel`, its base."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import anyio

from graphagent.checkpoint.memory import MemoryCheckpoints
from graphagent.checkpoint.record import Loaded
from graphagent.checkpoint.store import CheckpointStore, Read, is_instant
from graphagent.clock import Clock, SystemClock
from graphagent.engine.admit import admit
from graphagent.engine.channel import Channel
from graphagent.engine.conflict import ConflictPolicy, take_lineage
from graphagent.engine.control import current_control
from graphagent.engine.eager import run_eager
from graphagent.engine.frame import Frame, Mode, Setup, Step, Tree
from graphagent.engine.hooks import NodeCallbacks
from graphagent.engine.limits import Budget, Limits, Meter
from graphagent.engine.lone import lone_nodes
from graphagent.engine.loop import run_supersteps
from graphagent.engine.merge import Merged
from graphagent.engine.persist import migration_note, save_migrated, save_state, save_stop
from graphagent.engine.questions import carried, take_answers
from graphagent.engine.restore import load_frame, load_row, new_frame, start_turn
from graphagent.engine.result import RunResult
from graphagent.engine.run import Handle, drive_root, give_back, new_handle
from graphagent.engine.setup import node_calls
from graphagent.engine.state_codec import StateCodec
from graphagent.engine.stream import Emitter, EventStream, wanted_modes
from graphagent.engine.timetravel import TimeTravel, is_settled
from graphagent.engine.watch import debug_enabled
from graphagent.errors import AnswerError, CheckpointNotFound, InterruptedRunError, UsageError, alternatives
from graphagent.events import RunEvent
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.policies import RetryPolicy
from graphagent.ids import fresh_id
from graphagent.unset import UNSET

_ENGINES = {"superstep": run_supersteps, "eager": run_eager}


class _Turn(NamedTuple):
    """How a run on a lineage that has rows begins."""

    abandon: bool = False
    carry: Collection[str] | None = None


class Executor(TimeTravel):
    """Runs one compiled graph; one executor serves any number of concurrent runs.

    `checkpoints`: where rows go; without a store an interrupted run can be resumed from this executor only.
    `durability`: `step` writes a row a step, `exit` one at the end and at an interrupt. `on_failure`: the others of a
    step run to their end (`drain`) or are cancelled (`cancel`). `on_conflict`: what a run does that finds its
    lineage held by another: `reject` raises LineageBusy, `queue` waits, `cancel_previous` cancels the other and gives
    its turn up, `fork` goes on in a new lineage. `default_retry` is for nodes without a policy of their own.
    """

    def __init__(
        self,
        graph: CompiledGraph,
        checkpoints: CheckpointStore | None = None,
        engine: Mode = "superstep",
        *,
        limits: Limits | None = None,
        default_retry: RetryPolicy | Sequence[RetryPolicy] | None = None,
        durability: Literal["step", "exit"] = "step",
        on_failure: Literal["drain", "cancel"] = "drain",
        on_conflict: ConflictPolicy = "reject",
        clock: Clock | None = None,
        callbacks: Sequence[NodeCallbacks] = (),
    ) -> None:
        if not isinstance(graph, CompiledGraph):
            raise UsageError(f"an executor runs a compiled graph, not {graph!r:.80}; call compile() first")
        for name, value, known in (
            ("engine", engine, tuple(_ENGINES)),
            ("durability", durability, ("step", "exit")),
            ("on_failure", on_failure, ("drain", "cancel")),
            ("on_conflict", on_conflict, ("reject", "queue", "cancel_previous", "fork")),
        ):
            if value not in known:
                raise UsageError(f"{name}={value!r} is unknown: {alternatives(str(value), known)}")
        self.graph = graph
        self.checkpoints = checkpoints
        self.engine: Mode = engine
        self.limits = limits or Limits()
        if self.limits.landing is not None and self.limits.landing not in graph.index:
            raise UsageError(
                f"the landing node '{self.limits.landing}' is not a node: "
                f"{alternatives(self.limits.landing, graph.names)}"
            )
        self.on_conflict: ConflictPolicy = on_conflict
        self._store: CheckpointStore = checkpoints if checkpoints is not None else MemoryCheckpoints()
        self._durable = checkpoints is not None
        self._drive = _ENGINES[engine]
        self._running: dict[str, Handle] = {}
        retry = () if default_retry is None else default_retry
        self.default_retry = (retry,) if isinstance(retry, RetryPolicy) else tuple(retry)
        self._options = Setup(
            graph=graph,
            engine=engine,
            limits=self.limits,
            clock=clock or SystemClock(),
            codec=StateCodec(graph.schema),
            calls=(),
            callbacks=tuple(callbacks),
            default_retry=self.default_retry,
            cancel_on_failure=on_failure == "cancel",
            save_each_step=self._durable and durability == "step",
            debug=debug_enabled(),
            lone_steps=(),
            lone=(),
            drive=self._drive,
            setup_of=self._setup_of,
        )
        self._children: dict[int, Setup] = {}
        self._setup = self._setup_of(graph)

    def _setup_of(self, graph: CompiledGraph) -> Setup:
        """The setup of the graph or of a child graph; a child used twice has one."""
        known = self._children.get(id(graph))
        if known is None:
            codec = StateCodec(graph.schema, getattr(self._store, "cipher", None))
            lone = tuple(Step((0,), (name,)) for name in graph.names)
            options = replace(self._options, graph=graph, codec=codec, lone_steps=lone, fired={}, judges={})
            calls = node_calls(graph, options)
            ready = replace(options, calls=calls)
            known = self._children[id(graph)] = replace(ready, lone=lone_nodes(graph, ready))
        return known

    # -- running ---------------------------------------------------------------------------------

    async def run(
        self,
        input: Any = None,
        *,
        lineage: str | None = None,
        namespace: str = "",
        context: Any = None,
        budget: Budget | None = None,
        abandon: bool = False,
        carry: Collection[str] | None = None,
    ) -> RunResult:
        """Run the graph on `input` (a mapping of fields, or an instance of the state class) until it ends.

        `lineage`: the history this run belongs to (None: a fresh one). On a finished one this is a new turn: the
        state goes on and the input goes through the merge rules. `context`: anything nodes should reach as
        `ctx.context`; never stored. `budget` bounds this run and its child graphs. `abandon`: give up an unfinished
        run of the lineage. `carry`: the fields that go on in a new turn (None: all); the others begin anew. Raises
        InterruptedRunError for an unfinished one, LineageBusy for one that is held, StateError for an input that
        doesn't fit; every other outcome is in the result.
        """
        return await self._run(input, lineage, namespace, context, budget, _Turn(abandon, carry), None)

    async def resume(
        self,
        lineage: str,
        answers: Mapping[str, Any] | None = None,
        *,
        answer: Any = UNSET,
        checkpoint: str | int | None = None,
        namespace: str = "",
        context: Any = None,
        budget: Budget | None = None,
    ) -> RunResult:
        """Go on from the newest checkpoint of a lineage, or from the given one.

        `answers`: by interrupt id or key; `answer`: for the only pending interrupt. They are checked as a whole
        before any is stored. Going on from an older checkpoint first writes a fork row, so that nothing of what
        came later is met again. Raises CheckpointNotFound, AnswerError, IncompatibleCheckpoint, LineageBusy.
        """
        return await self._resume(lineage, answers or {}, answer, checkpoint, namespace, context, budget, None)

    @asynccontextmanager
    async def stream(
        self,
        input: Any = None,
        *,
        lineage: str | None = None,
        modes: Iterable[str] = ("updates",),
        answers: Mapping[str, Any] | None = None,
        answer: Any = UNSET,
        resume: bool = False,
        checkpoint: str | int | None = None,
        namespace: str = "",
        context: Any = None,
        budget: Budget | None = None,
        abandon: bool = False,
        carry: Collection[str] | None = None,
        buffer: int = 64,
    ) -> AsyncIterator[EventStream]:
        """A run, or with `resume`, answers or a checkpoint a resume, whose events are read as they come.

        `modes`: `updates`, `messages`, `tasks`, `checkpoints`, `custom`, `debug`; failures come in every mode. After
        the last event the stream's `result` is there. At most `buffer` events are ahead of the reader. Leaving the
        block early cancels the run, and ends when nothing of it runs any more.
        """
        wanted = wanted_modes(modes)
        channel = Channel[RunEvent](buffer)
        emitter = Emitter(wanted, channel)
        events = EventStream(channel)

        async def work() -> None:
            try:
                if resume or answers is not None or answer is not UNSET or checkpoint is not None:
                    if lineage is None:
                        raise UsageError("a resume needs its lineage")
                    events.result = await self._resume(
                        lineage, answers or {}, answer, checkpoint, namespace, context, budget, emitter
                    )
                else:
                    turn = _Turn(abandon, carry)
                    events.result = await self._run(input, lineage, namespace, context, budget, turn, emitter)
            except Exception as error:
                events.error = error
            finally:
                channel.end()

        problem: Exception | GeneratorExit | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            try:
                yield events
            except (Exception, GeneratorExit) as error:  # the reader's own: raised as it is, not in the group's group
                problem = error
            finally:
                emitter.leave()
        if problem is not None:
            raise problem

    # -- reaching a run --------------------------------------------------------------------------

    async def pause(self, lineage: str, *, timeout: float | None = None) -> bool:
        """Stop a run of this executor before its next step; returns when it has stopped, False if none was running.

        After `timeout` seconds the pause is forced: activations that have not finished are cancelled and run again
        on resume, on the state they had.
        """
        handle = self._running.get(lineage)
        if handle is None:
            return False
        over = anyio.Event()
        handle.waiters.append(over)
        handle.pause(forced=timeout is not None and timeout <= 0)
        if timeout is not None and timeout > 0:
            with anyio.move_on_after(timeout):
                await over.wait()
                return True
            handle.pause(forced=True)
        await over.wait()
        return True

    async def cancel(self, lineage: str) -> bool:
        """Cancel the run of a lineage, in this or another process; returns when it has ended here (or was asked to
        elsewhere), False if none is running."""
        handle = self._running.get(lineage)
        if handle is None:
            return self._durable and await self._store.request_cancel(lineage)
        over = anyio.Event()
        handle.waiters.append(over)
        handle.cancel()
        await over.wait()
        return True

    async def ask_to_cancel(self, lineage: str) -> None:
        """Ask whoever runs a lineage, here or in another process, to cancel; doesn't wait."""
        handle = self._running.get(lineage)
        if handle is not None:
            handle.cancel()
        else:
            await self._store.request_cancel(lineage)

    # -- inside ----------------------------------------------------------------------------------

    def _tree(self, lineage: str, context: Any, budget: Budget | None, emitter: Emitter | None) -> Tree:
        tree = Tree(lineage, fresh_id(), Meter(self._options.clock, budget), context, self._store)
        tree.emitter, tree.durable, tree.control = emitter, self._durable, current_control()
        tree.waits = getattr(self._store, "remote", False)
        tree.life = getattr(self._store, "life", "")
        tree.instant = emitter is None and is_instant(self._store)
        return tree

    async def _run(
        self,
        input: Any,
        lineage: str | None,
        namespace: str,
        context: Any,
        budget: Budget | None,
        turn: _Turn,
        emitter: Emitter | None,
    ) -> RunResult:
        tree = self._tree(lineage or fresh_id(), context, budget, emitter)
        if lineage is not None or self._durable:
            return await self._run_turn(tree, namespace, input, turn, fresh=lineage is None)
        frame = new_frame(self._setup, tree, namespace, self._store)
        start_turn(frame, input, "the input")
        frame.base = frame.seq = 0
        frame.unmet = True
        return await drive_root(frame, None if emitter is None else new_handle(tree), self._drive)

    async def _run_turn(self, tree: Tree, namespace: str, input: Any, turn: _Turn, *, fresh: bool) -> RunResult:
        """A turn of a lineage that others can reach; `fresh`: its name is new."""
        async with self._opened(tree, namespace) as (handle, known):
            frame, merged = await self._turn(tree, namespace, input, turn, known)
            frame.unmet = fresh
            note = migration_note(frame)
            return await drive_root(frame, handle, self._drive, lambda: save_state(frame, "input", merged, note=note))

    async def _turn(
        self, tree: Tree, namespace: str, input: Any, turn: _Turn, known: Read | None
    ) -> tuple[Frame, Merged]:
        """A frame at the beginning of a turn, and what its input row has to say."""
        loaded = await load_row(self._store, self._setup, tree.lineage, namespace, known=known)
        if loaded is None:
            frame = new_frame(self._setup, tree, namespace, self._store)
        else:
            frame = await self._next_turn(tree, namespace, loaded, turn.abandon or tree.supersedes)
        return frame, start_turn(frame, input, "the input", turn.carry)

    async def _next_turn(self, tree: Tree, namespace: str, loaded: Loaded, abandon: bool) -> Frame:
        if not is_settled(self.graph, loaded.row) and not abandon:
            keys = ", ".join(f"'{q.key}' ({q.id})" for q in loaded.row.questions if not q.answered)
            waits = f"it waits for {keys}" if keys else f"its newest row is '{loaded.row.source}'"
            raise InterruptedRunError(
                f"lineage '{tree.lineage}' has an unfinished run: {waits}; call resume('{tree.lineage}', ...), or say "
                f"abandon=True to give it up and start a new turn from its state"
            )
        if abandon or loaded.row.fingerprint != self.graph.fingerprint:  # where it stood need not be in this graph
            loaded.row.marking, loaded.row.questions = {"f": []}, ()
        frame = await load_frame(self._setup, tree, namespace, loaded)
        frame.resuming = False
        return frame

    async def _resume(
        self,
        lineage: str,
        answers: Mapping[str, Any],
        answer: Any,
        checkpoint: str | int | None,
        namespace: str,
        context: Any,
        budget: Budget | None,
        emitter: Emitter | None,
    ) -> RunResult:
        tree = self._tree(lineage, context, budget, emitter)
        seq = self._seq_of(lineage, namespace, checkpoint)
        async with self._opened(tree, namespace, seq, resume=True) as (handle, known):
            loaded = await load_row(self._store, self._setup, lineage, namespace, seq, known=known)
            if loaded is None:
                raise await self._not_found(lineage, namespace, checkpoint)
            tree.warnings += await admit(self._setup, self._setup_of, self._store, loaded)
            if not loaded.newest:
                loaded = await self._fork_here(tree, namespace, loaded)
            questions = loaded.row.questions
            if answers or answer is not UNSET:
                if is_settled(self.graph, loaded.row):
                    raise AnswerError(f"lineage '{lineage}' has ended: nothing is pending in it")
                questions = tuple(take_answers(questions, answers, answer))
            frame = await load_frame(self._setup, tree, namespace, loaded)
            if frame.ended:
                tree.warnings.append("nothing was left to run")
            if questions == loaded.row.questions:
                return await drive_root(frame, handle, self._drive, lambda: save_migrated(frame, loaded.row.source))
            frame.questions = carried(questions)
            note = migration_note(frame)
            return await drive_root(frame, handle, self._drive, lambda: save_stop(frame, "interrupt", note=note))

    @asynccontextmanager
    async def _opened(
        self, tree: Tree, namespace: str, seq: int | None = None, *, resume: bool = False
    ) -> AsyncIterator[tuple[Handle, Read | None]]:
        """The lineage held for one run, the row that it begins at if that is known, and the run known to `pause` and
        `cancel`."""
        handle = new_handle(tree)
        tree.lease, known = await take_lineage(self, tree, handle, namespace, seq, may_fork=not resume)
        self._running[tree.lineage] = handle
        try:
            yield handle, known
        except BaseException:
            await give_back(tree)
            raise
        finally:
            if self._running.get(tree.lineage) is handle:
                del self._running[tree.lineage]
            handle.over()

    async def _not_found(self, lineage: str, namespace: str, checkpoint: str | int | None) -> CheckpointNotFound:
        if checkpoint is None:
            hint = "" if self._durable else " (this executor has no store)"
            return CheckpointNotFound(f"no lineage '{lineage}' in this store{hint}; nothing was run")
        heads = await self._store.history(lineage, namespace, limit=5)
        known = alternatives(str(checkpoint), [header.id for header in heads])
        return CheckpointNotFound(f"no checkpoint '{checkpoint}' in lineage '{lineage}': {known}")
