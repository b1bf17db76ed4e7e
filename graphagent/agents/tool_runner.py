"""Runs the tool calls of one model answer: what the body of a tools node does.

First everything that decides whether a call runs, for all calls in call order, so that all questions to a person are
put together and nothing is done while one is open; then the calls, in turn or side by side. Each runs through the
effect ledger of the node: a resume finds the calls that had ended, and never runs one twice.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import anyio

from graphagent.agents.handover import Handed
from graphagent.agents.invocation import Invocation
from graphagent.agents.tool import Tool
from graphagent.agents.tool_options import DEFAULT_OPTIONS, ToolOptions
from graphagent.agents.tool_outcome import ToolOutcome, failure
from graphagent.agents.tool_run import CANCELLED, ToolRun
from graphagent.agents.transfer import TRANSFER, TransferTool
from graphagent.engine.context import NodeContext
from graphagent.engine.part import PartContext, put_in_order
from graphagent.engine.questions import InterruptSignal
from graphagent.messages import Message, ToolCall

SHOWN_NAME = 160
"""Characters of an unknown tool's name that the model is shown."""
GRACE = 5.0
"""Seconds that `on_cancelled` may take."""

Slot = ToolRun | ToolOutcome | None
"""A call's place in the round: on its way, finished without running, or not run here."""


class ToolRound(NamedTuple):
    """What came of a round of calls. `messages`: results in call order; `deferred`: calls that somebody else answers,
    so that the run ends here; `handed`: the agent that takes over, and what it is to do; `ends_turn`: a tool wants no
    further model call.
    `state_delta`: for the session's state, later calls over earlier ones."""

    messages: tuple[Message, ...] = ()
    state_delta: Mapping[str, Any] = {}
    deferred: tuple[ToolCall, ...] = ()
    handed: Handed | None = None
    ends_turn: bool = False


async def run_calls(
    calls: Sequence[ToolCall],
    tools: Iterable[Tool],
    ctx: NodeContext,
    invocation: Invocation | None = None,
    *,
    options: ToolOptions = DEFAULT_OPTIONS,
) -> ToolRound:
    """The results of the calls, in call order, whatever finished first.

    An unknown tool, wrong arguments, and whatever a tool raises are results that the model sees; they don't touch the
    other calls. Raises StopAgent if a tool ends the run, and what the engine raises (EffectUnknown, LeaseLost, ...);
    the calls that had begun are finished first. A question unwinds the node with the engine's signal.
    """
    if invocation is not None and invocation.hooks.tool:
        options = replace(options, callbacks=(*invocation.hooks.tool, *options.callbacks))
    known = {tool.spec.name: tool for tool in tools}
    slots = [_slot(call, number, known, ctx, invocation, options) for number, call in enumerate(calls)]
    try:
        await _prepared(slots)
        todo = [slot for slot in slots if isinstance(slot, ToolRun) and slot.outcome is None]
        if options.parallel and len(todo) > 1:
            await _side_by_side(todo, ctx, options)
        else:
            for run in todo:
                await run.execute()
    except anyio.get_cancelled_exc_class():
        if options.on_cancelled is not None:
            with anyio.move_on_after(GRACE, shield=True):
                await options.on_cancelled(_round(calls, known, slots))
        raise
    return _round(calls, known, slots)


def _slot(
    call: ToolCall,
    number: int,
    known: Mapping[str, Tool],
    ctx: NodeContext,
    invocation: Invocation | None,
    options: ToolOptions,
) -> Slot:
    tool = known.get(call.name)
    if tool is None:
        call, tool = _handover(call, known.get(TRANSFER))
    if tool is None:
        return failure(_unknown(call.name, known))
    if tool.external or (options.deferred is not None and options.deferred(call)):
        return None
    return ToolRun(call, tool, PartContext(ctx, number, f"{number}:{call.name}:{call.id}"), invocation, options)


def _handover(call: ToolCall, tool: Tool | None) -> tuple[ToolCall, Tool | None]:
    """A call of an agent by its name, meant as a handover to it: as a call of the tool that hands over. No tool if it
    isn't one."""
    if isinstance(tool, TransferTool) and tool.knows(call.name):
        return tool.rewritten(call), tool
    return call, None


def _unknown(name: str, known: Mapping[str, Tool]) -> str:
    close = difflib.get_close_matches(name, known, n=3)
    names = ", ".join(f"'{one}'" for one in close or sorted(known)[:12])
    hint = f"did you mean {names}?" if close else f"the tools are {names}" if names else "there are no tools"
    return f"tool not found: '{name[:SHOWN_NAME]}'; {hint}"


async def _prepared(slots: Sequence[Slot]) -> None:
    """Prepare every call; raise a question only when all have been put."""
    asked: InterruptSignal | None = None
    for slot in slots:
        if isinstance(slot, ToolRun):
            try:
                await slot.prepare()
            except InterruptSignal as signal:
                asked = asked or signal
    if asked is not None:
        raise asked


async def _side_by_side(runs: Sequence[ToolRun], ctx: NodeContext, options: ToolOptions) -> None:
    """Run them all; what ends the round is raised when nothing of it runs any more."""
    stops: list[BaseException | None] = [None] * len(runs)
    limits = _limits(options, len(runs))

    async def run_one(place: int) -> None:
        try:
            async with AsyncExitStack() as stack:
                for limit in limits(runs[place].tool.spec.name):
                    await stack.enter_async_context(limit)
                await runs[place].execute()
        except (InterruptSignal, Exception) as stop:
            stops[place] = stop

    async with anyio.create_task_group() as group:
        for place in range(len(runs)):
            group.start_soon(run_one, place)
    put_in_order(ctx, (run.node for run in runs))
    found = [stop for stop in stops if stop is not None]
    for stop in sorted(found, key=lambda stop: isinstance(stop, InterruptSignal)):
        raise stop


def _limits(options: ToolOptions, count: int) -> Callable[[str], Iterator[anyio.Semaphore]]:
    """For a tool's name the limits that its call waits for: its group's first, then that of all."""
    total = anyio.Semaphore(options.max_concurrency or count)
    own = {name: limit for group in options.groups for limit in [anyio.Semaphore(group.limit)] for name in group.names}

    def of(name: str) -> Iterator[anyio.Semaphore]:
        if name in own:
            yield own[name]
        yield total

    return of


def _round(calls: Sequence[ToolCall], known: Mapping[str, Tool], slots: Sequence[Slot]) -> ToolRound:
    """The round as it stands: a call without an outcome was cancelled."""
    state_delta: dict[str, Any] = {}
    messages: list[Message] = []
    deferred: list[ToolCall] = []
    handed: Handed | None = None
    ends_turn = False
    for call, slot in zip(calls, slots, strict=True):
        if slot is None:
            deferred.append(call)
            continue
        outcome = slot if isinstance(slot, ToolOutcome) else slot.outcome or CANCELLED
        if (agent := outcome.transfer) is not None:
            if any(place is None for place in slots):
                outcome = failure("a call of this answer waits for its result from elsewhere: hand over after that")
            elif handed is None:
                handed = Handed(agent, outcome.asked)
            else:
                outcome = failure(f"the conversation goes to '{handed.agent}' already")
        state_delta.update(outcome.state_delta)
        messages.append(outcome.message(call))
        tool = known.get(call.name)
        ends_turn |= not outcome.error and (outcome.ends_turn or (tool is not None and tool.ends_turn))
    return ToolRound(tuple(messages), state_delta, tuple(deferred), handed, ends_turn)
