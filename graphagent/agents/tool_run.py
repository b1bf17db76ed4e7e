"""One tool call, from the model's request to its recorded outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import anyio

from graphagent.agents.failures import engine_failure
from graphagent.agents.invocation import Invocation
from graphagent.agents.tool import Decision, Tool, ToolContext, ToolResult
from graphagent.agents.tool_options import Approval, ToolOptions
from graphagent.agents.tool_outcome import ToolOutcome, failure, outcome_of, refusal
from graphagent.engine.effects import Claim, inside_step
from graphagent.engine.hooks import settled
from graphagent.engine.part import PartContext
from graphagent.engine.questions import InterruptSignal
from graphagent.engine.stray import stray
from graphagent.errors import CheckpointError, StopAgent, ToolError, UsageError
from graphagent.graph.policies import RetryPolicy
from graphagent.messages import ToolCall
from graphagent.unset import UNSET

DECISIONS: tuple[Decision, ...] = ("allow", "deny", "ask")
CANCELLED = ToolOutcome(
    "Error: the call was cancelled before it had ended; it may or may not have taken effect", error=True
)


def _record() -> dict[str, Any]:
    """What the ledger keeps of a call: its annotation says as what."""
    raise NotImplementedError


class ToolRun:
    """A call on its way. `prepare` decides whether it runs, `execute` runs it; `outcome` is there once it has one.

    `call`: as the model made it; `arguments`: as they are used, after callbacks and approval.
    """

    __slots__ = ("arguments", "call", "context", "given", "node", "options", "outcome", "reentrant", "tool")

    def __init__(
        self, call: ToolCall, tool: Tool, node: PartContext, invocation: Invocation | None, options: ToolOptions
    ) -> None:
        self.call = call
        self.tool = tool
        self.node = node
        self.options = options
        self.context = ToolContext(call.id, tool.spec.name, node, invocation)
        self.arguments: Mapping[str, Any] = call.arguments
        self.given: Any = UNSET
        self.outcome: ToolOutcome | None = None
        self.reentrant = bool(getattr(tool, "reentrant", False))

    @property
    def used(self) -> ToolCall:
        """The call with the arguments that are used."""
        return self.call.model_copy(update={"name": self.tool.spec.name, "arguments": dict(self.arguments)})

    # -- before anything is done -----------------------------------------------------------------

    async def prepare(self) -> None:
        """Callbacks, check of the arguments, permission, approval. Raises InterruptSignal while a person is asked."""
        try:
            if self.options.callbacks:
                await self._before()
        except StopAgent:
            raise
        except Exception as error:
            self._refuse_broken()
            self.outcome = failure(f"a callback before tool '{self.call.name}' failed: {_said(error)}")
            return
        guarded = self.options.permission is not None or self.tool.needs_approval
        if self.given is UNSET and not self._wrong() and guarded:
            await self._permit()

    async def _before(self) -> None:
        for callback in self.options.callbacks:
            if callback.before is not None:
                changed = await settled(callback.before(self.used, self.context))
                if isinstance(changed, ToolCall):
                    self.arguments = changed.arguments
                elif changed is not None:
                    self.given = changed
                    return

    def _wrong(self) -> bool:
        """True if the arguments can't be used; the outcome then says why."""
        check = getattr(self.tool, "check", None)
        problem = None if check is None else check(self.arguments)
        if problem is not None:
            self.outcome = failure(problem)
        return problem is not None

    async def _permit(self) -> None:
        decision: Decision = "allow"
        if self.options.permission is not None:
            decision = await settled(self.options.permission(self.used, self.tool))
        if decision not in DECISIONS:
            raise UsageError(f"permission for tool '{self.call.name}' is {decision!r}; it has to be one of {DECISIONS}")
        if decision == "deny":
            self.outcome = refusal("denied", self.call.name, "the permission policy denies this call")
        elif decision == "ask" and self.options.ask == "result":
            self.outcome = refusal("approval_required", self.call.name, "a person has to approve this call first")
        elif decision == "ask" or self.tool.needs_approval:
            self._approve()

    def _approve(self) -> None:
        prompt = {
            "tool": self.call.name,
            "call_id": self.call.id,
            "arguments": dict(self.arguments),
            "description": self.tool.spec.description,
        }
        answer = self.node.ask(f"approve:{self.call.name}", prompt, bool | Approval)
        said = answer if isinstance(answer, Approval) else Approval(approved=answer)
        if not said.approved:
            self.outcome = refusal("denied", self.call.name, said.reason or "a person declined this call")
        elif said.arguments is not None:
            self.arguments = said.arguments
            self._wrong()

    # -- doing it --------------------------------------------------------------------------------

    async def execute(self) -> None:
        """Run the tool, unless the ledger has its outcome already. Raises InterruptSignal, StopAgent, and what the
        engine raises."""
        claim = await self.node.claim("call", _record, False, self.reentrant)
        if claim.open:
            try:
                outcome = await self._finished()
            except anyio.get_cancelled_exc_class():
                if not self.reentrant:
                    await self._cancelled(claim)
                raise
            await self.node.commit(claim, outcome.record(), final=True)
        else:
            outcome = ToolOutcome.of(claim.result)
        self.outcome = outcome
        if outcome.stop is not None:
            raise StopAgent(outcome.stop)

    async def _cancelled(self, claim: Claim) -> None:
        """Record that the call was cut off, so that whoever goes on knows: it is never run again blindly."""
        self.outcome = CANCELLED
        try:
            await self.node.commit(claim, CANCELLED.record())
        except CheckpointError:  # the run has lost its store as well: the effect stays open, with an unknown outcome
            return

    async def _finished(self) -> ToolOutcome:
        """The outcome after all attempts and callbacks; every error of theirs becomes part of it."""
        try:
            result = await self._attempts() if self.given is UNSET else self.given
            if self.options.callbacks:
                result = await self._after(_told(result))
            return outcome_of(result, self.context.state_delta)
        except StopAgent as stop:
            return ToolOutcome(stop=str(stop) or "stopped", error=True)
        except ToolError as error:
            return failure(f"tool '{self.call.name}' failed: {error}")

    async def _attempts(self) -> Any:
        policy = getattr(self.tool, "retry", None) or self.options.retry
        began, attempt = 0.0 if policy is None else self.node.clock.monotonic(), 0
        while True:
            attempt += 1
            self.context.state_delta.clear()
            error: Exception
            try:
                return await self._once()
            except StopAgent:
                raise
            except asyncio.CancelledError as cancelled:
                error = stray(cancelled)
            except Exception as raised:
                if engine_failure(raised):
                    raise
                error = raised
            self._refuse_broken()
            delay = None if policy is None else self._delay(policy, error, attempt, began)
            if delay is None:
                self.context.state_delta.clear()
                after = f" after {attempt} attempts" if attempt > 1 else ""
                if (recovered := await self._recovered(error)) is not None:
                    return recovered
                return ToolResult(f"Error: tool '{self.call.name}' failed{after}: {_said(error)}", error=True)
            await self.node.clock.sleep(delay)

    def _delay(self, policy: RetryPolicy, error: Exception, attempt: int, began: float) -> float | None:
        """Seconds until the next attempt; None if there is none."""
        if not policy.matches(error) or attempt >= policy.max_attempts:
            return None
        delay = policy.delay(attempt, self.node.random.random)
        late = policy.max_elapsed is not None and self.node.clock.monotonic() - began + delay > policy.max_elapsed
        return None if late else delay

    async def _once(self) -> Any:
        """What one attempt returned. A question that the tool asked unwinds it, also if it swallowed the signal."""
        result: Any = None
        timeout: float | None = getattr(self.tool, "timeout", None)
        with nullcontext() if self.reentrant else inside_step(f"tool {self.call.name}"):
            try:
                if timeout is None:
                    result = await self.tool.call(self.arguments, self.context)
                else:
                    result = await self._in_time(timeout)
            except BaseExceptionGroup as group:  # it asked inside a task group
                if not self.node.asked or group.split((InterruptSignal, Exception))[1] is not None:
                    raise
        if self.node.asked:
            raise InterruptSignal(self.node.asked[0].key)
        self._refuse_broken()
        return result

    async def _in_time(self, timeout: float) -> Any:
        with anyio.move_on_after(timeout):
            return await self.tool.call(self.arguments, self.context)
        raise TimeoutError(f"it took longer than its {timeout} s")

    def _refuse_broken(self) -> None:
        """Raise what the engine raised inside the tool: that is a failure of the run, not a result of the tool."""
        broken = self.node.broken
        if broken is None:
            return
        if isinstance(broken, UsageError) and not self.reentrant:
            raise UsageError(
                f"tool '{self.call.name}' asks a question, or uses its context otherwise, as only one declared with "
                f"reentrant=True may: {broken}"
            ) from broken
        raise broken

    async def _recovered(self, error: Exception) -> ToolResult | None:
        for callback in self.options.callbacks:
            if callback.on_error is not None:
                given = await self._called(callback.on_error, error)
                if given is not None:
                    return _told(given)
        return None

    async def _after(self, result: ToolResult) -> ToolResult:
        for callback in self.options.callbacks:
            if callback.after is not None:
                changed = await self._called(callback.after, result)
                if changed is not None:
                    return _told(changed)
        return result

    async def _called(self, callback: Callable[[ToolCall, ToolContext, Any], Any], about: Any) -> Any:
        try:
            return await settled(callback(self.used, self.context, about))
        except StopAgent:
            raise
        except Exception as error:
            raise ToolError(f"a callback after it failed: {_said(error)}") from error


def _told(result: Any) -> ToolResult:
    return result if isinstance(result, ToolResult) else ToolResult(result)


def _said(error: Exception) -> str:
    """An error as the model is told it."""
    return str(error) if isinstance(error, ToolError) else f"{type(error).__name__}: {error}"
