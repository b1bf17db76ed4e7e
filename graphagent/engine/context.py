"""What a node function may do besides returning an update: ask, record effects, stream, look at its own run."""

from __future__ import annotations

import functools
import hashlib
import inspect
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.from_thread

from graphagent.checkpoint.record import Question
from graphagent.clock import Clock
from graphagent.engine.effects import Claim, Ledger, inside_step, refuse_inside_step
from graphagent.engine.hooks import settled
from graphagent.engine.questions import (
    InterruptSignal,
    answer_schema,
    asks_for_secret,
    checked_answer,
    plain_prompt,
    question_id,
)
from graphagent.errors import AnswerError, UsageError
from graphagent.graph.marking import Activation, text_of

if TYPE_CHECKING:
    from graphagent.engine.frame import Frame

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ActivationInfo:
    """Which run of a node this is.

    `visit`: the step of the lineage at which it started. `branch`: path of the splits it is under. `attempt`: from 1.
    `trigger`: ids of the activations that triggered it (empty: whatever ran in the step before). `error`: text of
    the failure it was started to handle. `index`: its place in a fan-out.
    """

    id: str
    node: str
    visit: int
    branch: str
    attempt: int = 1
    trigger: tuple[str, ...] = ()
    error: str | None = None
    index: int = 0


class NodeContext:
    """The second argument of a node function. Valid until the node returns."""

    __slots__ = (
        "_activation",
        "_attempt",
        "_before",
        "_frame",
        "_ledger",
        "_nested",
        "_ordinal",
        "_position",
        "_random",
        "asked",
    )

    def __init__(self, frame: Frame, position: int, activation: Activation) -> None:
        self._frame = frame
        self._position = position
        self._activation = activation
        self._attempt = 1
        self._ordinal = 0
        self._before = 0  # questions of callbacks before the first attempt
        self.asked: tuple[Question, ...] = ()  # of this attempt, without an answer yet
        self._nested: dict[str, int] = {}
        self._ledger: Ledger | None = None
        self._random: random.Random | None = None

    # -- who am I --------------------------------------------------------------------------------

    @property
    def activation(self) -> ActivationInfo:
        """Identity of this run of the node."""
        origin = self._frame.origin(self._position)
        activation = self._activation
        return ActivationInfo(
            self._frame.activation_id(self._position),
            origin.node,
            origin.visit,
            text_of(activation.branch),
            self._attempt,
            activation.trigger or (),
            activation.error,
            activation.place,
        )

    @property
    def lineage(self) -> str:
        """The lineage of the run."""
        return self._frame.lineage

    @property
    def namespace(self) -> str:
        """The path of child graphs this node is in; empty in the root graph."""
        return self._frame.namespace

    @property
    def run_id(self) -> str:
        """The id of this run; a resume has another."""
        return self._frame.tree.run_id

    @property
    def context(self) -> Any:
        """What the caller gave as `context=`; in a child graph, what the node that runs it gave. It is never stored."""
        return self._frame.context

    @property
    def invocation(self) -> Any:
        """The invocation of the agent around this run: the caller's context, or its `invocation`."""
        context = self._frame.context
        return getattr(context, "invocation", context)

    @property
    def services(self) -> Any:
        """The `services` of the caller's context (attribute or mapping entry), or None."""
        context = self.context
        return context.get("services") if isinstance(context, Mapping) else getattr(context, "services", None)

    @property
    def cancelled(self) -> bool:
        """True once the run is being cancelled; blocking code should look at it and return."""
        return self._frame.tree.cancelled

    @property
    def max_steps(self) -> int:
        """The step limit of this run: the same in every node."""
        return self._frame.setup.limits.max_steps

    @property
    def remaining_steps(self) -> int:
        """Steps that may follow the one this node is in."""
        return self.max_steps - self._frame.steps - 1

    @property
    def clock(self) -> Clock:
        """The executor's clock."""
        return self._frame.setup.clock

    @property
    def random(self) -> random.Random:
        """A generator seeded from the activation: a re-run draws the same numbers."""
        if self._random is None:
            self._random = random.Random(self._digest("random"))
        return self._random

    def idempotency_key(self, name: str) -> str:
        """A key for another system: the same at every attempt and re-run of this activation, and nowhere else.

        A store that ends with the process counts lineages of one name in two processes as two. A lineage that was
        deleted and begun again under its name in a database has the keys that it had.
        """
        return self._digest(f"{name}\n{self._frame.tree.life}" if self._frame.tree.life else name)[:32]

    def _digest(self, name: str) -> str:
        origin = self._frame.origin(self._position)
        text = f"{self.lineage}\n{self.namespace}\n{origin.base}.{origin.position}\n{origin.node}\n{name}"
        return hashlib.sha256(text.encode()).hexdigest()

    # -- what can I do ---------------------------------------------------------------------------

    async def interrupt(self, key: str, prompt: Any = None, answer_type: Any = Any) -> Any:
        """Ask a person or another system, and get the answer.

        The first time this unwinds the node; when the answer is there the node runs again from its first line and
        the call returns the answer, validated as `answer_type`. The n-th call of a body is the n-th question, so
        the calls must come in the same order. Results of `ctx.step` are replayed.
        """
        return self.ask(key, prompt, answer_type)

    def ask(self, key: str, prompt: Any, answer_type: Any) -> Any:
        """The answer, or the question noted and InterruptSignal raised."""
        refuse_inside_step(key)
        if any(question.key == key for question in self.asked):  # a wrapper swallowed the signal and tries again
            raise InterruptSignal(key)
        ordinal, self._ordinal = self._ordinal, self._ordinal + 1
        frame = self._frame
        known = next(
            (
                q
                for q in frame.questions
                if q.position == self._position and q.ordinal == ordinal and q.kind == "ask" and q.frame is None
            ),
            None,
        )
        if known is not None and known.key != key:
            raise UsageError(
                f"node '{known.node}' asked '{known.key}' before and now asks '{key}' at the same place; "
                f"a node must ask in the same order every time it runs"
            )
        if known is not None and known.answered:
            try:
                return checked_answer(answer_type, known.answer, known)
            except AnswerError as error:  # the stored schema says less than the type
                frame.tree.warnings.append(str(error))
                known = replace(known, answered=False, answer=None)
        if known is None:
            known = Question(
                id=question_id(frame.namespace, frame.activation_id(self._position), ordinal),
                key=key,
                node=frame.origin(self._position).node,
                position=self._position,
                ordinal=ordinal,
                prompt=plain_prompt(prompt),
                schema=answer_schema(answer_type),
            )
            if asks_for_secret(known.schema):
                raise UsageError(
                    f"interrupt '{key}' of node '{known.node}' asks for a secret, and answers are stored in clear; ask "
                    f"for the name of an entry in a vault, or have the caller hand the secret over as context=..."
                )
        self.asked += (known,)
        raise InterruptSignal(key)

    async def step(
        self,
        name: str,
        fn: Callable[..., Any],
        *args: Any,
        reconcile: Callable[[], Any] | None = None,
        idempotent: bool = False,
    ) -> Any:
        """Run a side effect through the ledger: once it is committed, a re-run gets its recorded result.

        `fn(*args)`, sync or async, is called after the effect has been claimed durably. If the process dies, or `fn`
        raises, in between, the outcome is unknown: then `reconcile()` settles it (it returns the result), or
        `idempotent=True` allows another call, else EffectUnknown is raised. Calls under one name are told apart by
        their order. The result must be storable; a return annotation on `fn` says as what.
        """
        claim = await self.claim(name, fn, reconcile is not None, idempotent)
        if claim.open:
            with inside_step(name):
                result = await settled(reconcile() if claim.unknown and reconcile is not None else fn(*args))
            await self.commit(claim, result)
        return claim.result

    async def emit(self, kind: str, payload: Any = None) -> None:
        """Send an event of your own to whoever listens to mode `custom`."""
        await self._send("custom", kind, payload)

    async def progress(self, fraction: float, message: str = "") -> None:
        """Report progress, from 0 to 1 (values outside are clamped)."""
        await self._send("custom", "progress", {"fraction": min(max(fraction, 0.0), 1.0), "message": message})

    async def stream_text(self, text: str) -> None:
        """Send a piece of text as it comes, to whoever listens to mode `messages`."""
        await self._send("messages", "text", text)

    async def stream_reasoning(self, text: str) -> None:
        """Send a piece of a model's own thinking as it comes, to whoever listens to mode `messages`."""
        await self._send("messages", "reasoning", text)

    def usage(
        self, *, input_tokens: int = 0, output_tokens: int = 0, cost: float | None = None, calls: int = 0
    ) -> None:
        """Count what this node has used, against the budget of the run. `cost`: None if it is not known."""
        self._frame.tree.meter.add(input_tokens=input_tokens, output_tokens=output_tokens, cost=cost, calls=calls)

    async def _send(self, mode: str, kind: str, payload: Any) -> None:
        emitter = self._frame.tree.emitter
        if emitter is not None and emitter.wants(mode):
            await emitter.node_event(mode, kind, self._frame, self._position, payload)

    # -- the engine's side -------------------------------------------------------------------------

    async def claim(self, name: str, fn: Callable[..., Any], reconciles: bool, idempotent: bool) -> Claim:
        """Begin an effect in the ledger (see `Ledger.claim`)."""
        if self.asked:  # nothing is done behind a question that has no answer yet
            raise InterruptSignal(self.asked[0].key)
        if self._ledger is None:
            self._ledger = Ledger(self._frame, self._frame.origin(self._position))
        may_repeat = reconciles or idempotent
        return await self._ledger.claim(name, lambda: self.idempotency_key(name), fn, may_repeat=may_repeat)

    async def commit(self, claim: Claim, result: Any, *, final: bool = False) -> None:
        """Record the result of an effect (see `Ledger.commit`)."""
        assert self._ledger is not None
        await self._ledger.commit(claim, result, final=final)

    @property
    def place(self) -> tuple[Frame, int]:
        """Where the node runs: the frame of its graph, and its position in the frontier."""
        return self._frame, self._position

    @property
    def kind(self) -> str:
        """What kind of node it is."""
        return self._frame.graph.defs[self._activation.node].kind

    def nested(self, scope: str) -> str:
        """A name for the next child that this attempt runs under a scope: the scope, and from the second on its
        number."""
        count = self._nested[scope] = self._nested.get(scope, 0) + 1
        return scope if count == 1 else f"{scope}~{count - 1}"

    def take(self, questions: tuple[Question, ...]) -> None:
        """Take over the questions of a child, and unwind."""
        self.asked += questions
        raise InterruptSignal(questions[0].key if questions else "pause")

    def restart(self, attempt: int) -> None:
        """Begin another attempt. What callbacks before the first one asked and did is not counted again."""
        if attempt == 1:
            self._before = self._ordinal
        self._attempt = attempt
        self._ordinal = self._before
        self.asked = ()
        self._nested = {}
        self._random = None
        if self._ledger is not None:
            self._ledger.restart(first=attempt == 1)


class SyncContext:
    """A NodeContext for a sync node: `interrupt`, `step`, `emit`, `progress` and `stream_text` are plain calls."""

    __slots__ = ("_ctx", "_threaded")

    def __init__(self, ctx: NodeContext, threaded: bool) -> None:
        self._ctx = ctx
        self._threaded = threaded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    @property
    def cancelled(self) -> bool:
        """See `NodeContext.cancelled`; a thread also sees a cancellation of whatever is around the run."""
        if not self._threaded or self._ctx.cancelled:
            return self._ctx.cancelled
        try:
            anyio.from_thread.check_cancelled()
        except BaseException:  # of the event loop's own class, which has no name outside of it
            return True
        return False

    def _call(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self._threaded:
            return anyio.from_thread.run(functools.partial(fn, *args, **kwargs))
        coroutine = fn(*args, **kwargs)
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value
        coroutine.close()
        raise UsageError(
            f"node '{self._ctx.activation.node}' is inline=True and calls ctx.{fn.__name__}, which has to wait; "
            f"make the node async, or leave out inline"
        )

    def interrupt(self, key: str, prompt: Any = None, answer_type: Any = Any) -> Any:
        """See `NodeContext.interrupt`."""
        return self._ctx.ask(key, prompt, answer_type)

    def step(
        self,
        name: str,
        fn: Callable[..., Any],
        *args: Any,
        reconcile: Callable[[], Any] | None = None,
        idempotent: bool = False,
    ) -> Any:
        """See `NodeContext.step`; a sync `fn` runs in this thread."""
        claim = self._call(self._ctx.claim, name, fn, reconcile is not None, idempotent)
        if claim.open:
            call = reconcile if claim.unknown and reconcile is not None else functools.partial(fn, *args)
            with inside_step(name):
                result = call()
                if inspect.isawaitable(result):
                    result = self._call(settled, result)
            self._call(self._ctx.commit, claim, result)
        return claim.result

    def emit(self, kind: str, payload: Any = None) -> None:
        """See `NodeContext.emit`."""
        self._call(self._ctx.emit, kind, payload)

    def progress(self, fraction: float, message: str = "") -> None:
        """See `NodeContext.progress`."""
        self._call(self._ctx.progress, fraction, message)

    def stream_text(self, text: str) -> None:
        """See `NodeContext.stream_text`."""
        self._call(self._ctx.stream_text, text)
