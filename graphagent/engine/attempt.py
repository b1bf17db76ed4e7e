"""One activation, from its state to its outcome: cache, callbacks, attempts, retries, timeouts.

Node code is awaited here and nowhere else.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from graphagent.engine.cache import NodeCache, cache_key, cache_namespace
from graphagent.engine.context import NodeContext, SyncContext
from graphagent.engine.control import timed
from graphagent.engine.hooks import NodeCallbacks, call_after, call_before, call_end, call_on_error
from graphagent.engine.outcome import Outcome, failed, outcome_of
from graphagent.engine.questions import InterruptSignal
from graphagent.engine.stray import stray
from graphagent.engine.watch import Watch
from graphagent.errors import (
    AnswerError,
    EffectUnknown,
    EncodeError,
    GraphAgentError,
    NodeError,
    NodeTimeout,
    RouteError,
    StateError,
    UsageError,
)
from graphagent.graph.marking import Activation
from graphagent.graph.policies import CachePolicy, RetryPolicy
from graphagent.patience import at_most
from graphagent.unset import UNSET

if TYPE_CHECKING:
    from graphagent.engine.frame import Frame

Body = Callable[["Frame", int, Activation, Any, NodeContext | None], Awaitable[Any]]
"""Runs a node of a kind: (frame, position, activation, state, context) -> its result, or an Outcome."""

NOT_RETRIED = (StateError, RouteError, EffectUnknown, EncodeError, UsageError, AnswerError)
"""Errors that another attempt can't mend."""


@dataclass(frozen=True, slots=True)
class NodeCall:
    """How to run a node, decided once when the executor is made.

    `plain`: an async function of the state with nothing around it; `fn` is then awaited directly.
    """

    node: int
    name: str
    fn: Callable[..., Any] | None
    plain: bool
    body: Body
    context: bool
    retry: tuple[RetryPolicy, ...] = ()
    timeout: float | None = None
    cache: NodeCache | None = None
    cache_policy: CachePolicy | None = None
    callbacks: tuple[NodeCallbacks, ...] = ()
    before: bool = False  # whether a callback has something to do at that moment
    after: bool = False
    end: bool = False


async def run_activation(frame: Frame, position: int) -> Outcome:
    """The outcome of one activation; every error of the node, its callbacks or its result becomes part of it."""
    activation = frame.marking.frontier[position]
    call = frame.setup.calls[activation.node]
    if call.plain:
        values = frame.values if activation.overlay is None else frame.given(activation)
        ran = frame.ran
        try:
            if ran is None:
                result = await call.fn(frame.graph.schema.view(values))  # type: ignore[misc]
            elif ran.error is not None:
                raise ran.error
            else:
                result = ran.result
            return outcome_of(frame.graph, activation.node, values, result)
        except Exception as error:
            return _handled(frame, activation, failed(_named(call, error, 1)))
        except asyncio.CancelledError as error:
            return _handled(frame, activation, failed(_named(call, stray(error), 1)))
    return await _Run(frame, position, activation, call).outcome()


def call_async(_: Frame, __: int, activation: Activation, state: Any, ctx: NodeContext | None, *, fn: Any) -> Any:
    """Body of an async function node: what it returns is awaited."""
    return fn(state) if ctx is None else fn(state, ctx)


async def call_inline(
    _: Frame, __: int, activation: Activation, state: Any, ctx: NodeContext | None, *, fn: Any
) -> Any:
    """Body of a sync function node that never blocks."""
    return fn(state) if ctx is None else fn(state, SyncContext(ctx, threaded=False))


async def call_thread(
    _: Frame, __: int, activation: Activation, state: Any, ctx: NodeContext | None, *, fn: Any
) -> Any:
    """Body of a sync function node: in a worker thread. A thread can't be stopped: leaving waits until it has ended."""
    args = (state,) if ctx is None else (state, SyncContext(ctx, threaded=True))
    return await anyio.to_thread.run_sync(functools.partial(fn, *args))


class _Run:
    """One activation with anything around its function."""

    __slots__ = ("activation", "attempts", "call", "ctx", "frame", "position", "state", "values")

    def __init__(self, frame: Frame, position: int, activation: Activation, call: NodeCall) -> None:
        self.frame = frame
        self.position = position
        self.activation = activation
        self.call = call
        self.values = frame.values if activation.overlay is None else frame.given(activation)
        self.state = frame.graph.schema.view(self.values)
        self.ctx = NodeContext(frame, position, activation)
        self.attempts = 0

    async def outcome(self) -> Outcome:
        """Before-callbacks, cache, attempts, after-callbacks, and the check of the result.

        What a callback, a retry predicate or a cache raises fails the activation like an error of the node.
        """
        schema = self.frame.graph.schema
        watch = Watch(self.values, schema.persistent) if self.frame.setup.debug else None
        around = self.call.before or self.call.cache is not None
        try:
            outcome = await (self._called() if around else self._attempted())
        except InterruptSignal:  # a callback asked
            outcome = self._asked()
        except Exception as error:
            outcome = self._failed(_named(self.call, error, self.attempts))
        if self.ctx.asked:  # something asked, and the signal was swallowed
            outcome = self._asked()
        if watch is not None:
            outcome = self._watched(watch, outcome)
        outcome.attempts = max(self.attempts, 1)
        if not (self.call.end and outcome.done):
            return outcome
        try:
            waits = call_end(self.call.callbacks, self.ctx, outcome)
            return outcome if waits is None else await self._ended(outcome, waits)
        except Exception as error:
            return failed(_named(self.call, error, self.attempts))

    async def _called(self) -> Outcome:
        call = self.call
        if not call.before:
            return await self._through_cache()
        try:
            result = await call_before(call.callbacks, self.ctx, self.state)
        except Exception as error:
            await self._tell(error, None)
            raise
        return await self._through_cache() if result is UNSET else self._checked(result)

    async def _ended(self, outcome: Outcome, waits: Awaitable[None]) -> Outcome:
        """The outcome once all callbacks have finished their work with it; a failure if that takes too long."""
        timeout = self.frame.setup.limits.save_timeout
        with at_most(timeout) as scope:
            await waits
        if scope.cancelled_caught:
            text = f"node '{self.call.name}' ended, but its on_activation_end callbacks took longer than {timeout} s"
            return failed(NodeTimeout(f"{text} (limits.save_timeout)", node=self.call.name, attempts=self.attempts))
        return outcome

    async def _through_cache(self) -> Outcome:
        call = self.call
        key = None
        if call.cache is not None and call.cache_policy is not None:
            key = cache_key(call.cache_policy, self.state, self.values)
        if key is None or call.cache is None or call.cache_policy is None:
            return await self._attempted()
        namespace = cache_namespace(self.frame.graph, call.name)
        kept = call.cache.get(namespace, key)
        if kept is not UNSET:
            outcome = await self._after(kept, None)
            outcome.cached = True
            return outcome
        return await self._attempted(
            lambda result: call.cache.set(namespace, key, result, call.cache_policy.ttl)  # type: ignore[union-attr]
        )

    async def _attempted(self, keep: Callable[[Any], None] | None = None) -> Outcome:
        began = self.frame.setup.clock.monotonic() if self.call.retry else 0.0
        while True:
            self.attempts += 1
            if self.attempts > 1 or self.call.before:  # else the context is as it was made
                self.ctx.restart(self.attempts)
            try:
                result = await (self._body() if self.call.timeout is None else self._in_time())
            except InterruptSignal:
                return self._asked()
            except (Exception, asyncio.CancelledError) as raised:
                error = stray(raised) if isinstance(raised, asyncio.CancelledError) else raised
                if self.ctx.asked:
                    return self._asked()
                delay = await self._delay(error, began)
                if delay is None:
                    return await self._after(UNSET, error)
                await self.frame.setup.clock.sleep(delay)
                continue
            except BaseExceptionGroup as group:  # it asked inside a task group
                if not self.ctx.asked or group.split((InterruptSignal, Exception))[1] is not None:
                    raise
                return self._asked()
            if self.ctx.asked:  # it asked, and swallowed the signal
                return self._asked()
            outcome = await self._after(result, None) if self.call.after else self._checked(result)
            if keep is not None and outcome.done:
                keep(result)
            return outcome

    def _body(self) -> Awaitable[Any]:
        call = self.call
        return call.body(self.frame, self.position, self.activation, self.state, self.ctx if call.context else None)

    async def _in_time(self) -> Any:
        timeout = self.call.timeout
        with anyio.move_on_after(timeout) as scope, timed(self.frame.tree, scope):
            return await self._body()
        assert scope.cancelled_caught
        raise NodeTimeout(
            f"node '{self.call.name}' took longer than its {timeout} s", node=self.call.name, attempts=self.attempts
        )

    async def _delay(self, error: Exception, began: float) -> float | None:
        """Seconds until the next attempt, or None if this was the last; tells callbacks and listeners."""
        policy = next((p for p in self.call.retry if p.matches(error)), None)
        delay = None
        if policy is not None and not isinstance(error, NOT_RETRIED) and self.attempts < max(policy.max_attempts, 1):
            delay = policy.delay(self.attempts, self.ctx.random.random)
            elapsed = self.frame.setup.clock.monotonic() - began
            if policy.max_elapsed is not None and elapsed + delay > policy.max_elapsed:
                delay = None
                error.add_note(f"retry budget of {policy.max_elapsed} s exhausted after {elapsed:.2f} s")
        await self._tell(error, delay)
        return delay

    async def _tell(self, error: Exception, delay: float | None) -> None:
        """Callbacks and listeners hear of a failed attempt, and of the time until the next one."""
        await call_on_error(self.call.callbacks, self.ctx, self.state, error)
        emitter = self.frame.tree.emitter
        if emitter is not None:
            await emitter.attempt_failed(self.frame, self.position, error, self.attempts, delay)

    async def _after(self, result: Any, error: Exception | None) -> Outcome:
        if self.call.callbacks and not isinstance(result, Outcome):
            result = await call_after(self.call.callbacks, self.ctx, self.state, result, error)
            if result is not UNSET:
                error = None
        if error is not None:
            return self._failed(_named(self.call, error, self.attempts))
        return self._checked(result)

    def _checked(self, result: Any) -> Outcome:
        if isinstance(result, Outcome):
            return result if result.failure is None else self._failed(result.failure)
        try:
            return outcome_of(self.frame.graph, self.activation.node, self.values, result)
        except Exception as error:
            return self._failed(_named(self.call, error, self.attempts))

    def _failed(self, error: Exception) -> Outcome:
        return _handled(self.frame, self.activation, failed(error))

    def _asked(self) -> Outcome:
        outcome = Outcome()
        outcome.asked = self.ctx.asked
        return outcome

    def _watched(self, watch: Watch, outcome: Outcome) -> Outcome:
        changed = watch.undo(self.values)
        return outcome if changed is None or not outcome.done else self._failed(watch.error(self.call.name, changed))


def _handled(frame: Frame, activation: Activation, outcome: Outcome) -> Outcome:
    """A failure that an error edge takes becomes a jump along it."""
    error = outcome.failure
    cause = error.__cause__ if isinstance(error, NodeError) and error.__cause__ is not None else error
    for kinds, target in frame.graph.failures[activation.node]:
        if isinstance(cause, kinds) or isinstance(error, kinds):
            handled = Outcome(goto=(target,))
            handled.error = f"{type(cause).__name__}: {cause}"
            return handled
    return outcome


def _named(call: NodeCall, error: Exception, attempts: int) -> Exception:
    """The error with the node's name on it; errors of this library carry it already."""
    if isinstance(error, GraphAgentError):
        if isinstance(error, StateError) and error.node is None:
            error.node = call.name
        return error
    after = f" after {attempts} attempts" if attempts > 1 else ""
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    named = NodeError(
        f"node '{call.name}' failed{after}: {type(error).__name__}: {error}{notes}", node=call.name, attempts=attempts
    )
    named.__cause__ = error
    return named


def bound(body: Callable[..., Any], fn: Any) -> Body:
    """A body with its function."""
    return functools.partial(body, fn=fn)
