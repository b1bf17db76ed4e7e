"""From the events of a run to the events of the protocol. A state machine without any input or output: whatever comes,
in whatever order, what goes out is in an order that the protocol allows, with one event at the end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ag_ui.core import (
    PROTOCOL_VERSION,
    BaseEvent,
    CustomEvent,
    Interrupt,
    MessagesSnapshotEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from ag_ui.core import Message as Shown

from graphagent.ledger import Event
from graphagent.ledger import TokenUsage as Used
from graphagent.messages import Message, ToolCall
from runner.outcome import OUTCOME, REASON
from runner.servers.agui.activity import Activities
from runner.servers.agui.errors import problem, trouble
from runner.servers.agui.history import arguments_text, message_id, result_id
from runner.servers.agui.marks import ASKED, mark_of
from runner.servers.agui.order import Order
from runner.servers.agui.speech import Speeches
from runner.servers.agui.state import ShownState, plain_copy

RETRIED = "node.retried"
"""The name of the CUSTOM event for a node that failed and is tried again; the run goes on."""
PROBLEM = "run.problem"
"""The name of the CUSTOM event for an error that need not end the run."""


@dataclass(frozen=True, slots=True)
class RunNames:
    """What a stream calls its run."""

    thread_id: str
    run_id: str
    parent_run_id: str | None = None


class Translator:
    """Translates one run. `announced`: ids of tool calls that clients of the thread know already; `state`: what is
    shown of the state.

    `changed`: readers have been told something that the session doesn't say, so that a `snapshot` has to come before
    the end. `over`: the last event has gone out.
    """

    def __init__(self, names: RunNames, *, announced: Iterable[str] = (), state: ShownState | None = None) -> None:
        self._names = names
        self._state = state or ShownState((), {})
        self._order = Order()
        self._used: set[str] = set()
        self._told: set[str] = set()
        self._speeches = Speeches(self._fresh)
        self._activities = Activities(names.run_id)
        self._announced = set(announced)
        self._answered: set[str] = set()
        self._pending: dict[str, None] = {}
        self._steps: dict[str, str] = {}  # message or call that a step makes -> name of the step

    @property
    def over(self) -> bool:
        """Whether the last event has gone out."""
        return self._order.over

    @property
    def changed(self) -> bool:
        """Whether readers have something that the session doesn't say."""
        return self._speeches.changed

    # -- what comes ------------------------------------------------------------------------------

    def begin(self, results: Sequence[tuple[str, Message]] = ()) -> list[BaseEvent]:
        """The first events. `results`: of the client's tools, which this run was given, under the client's ids."""
        return self._out(self._begin(results))

    def take(self, event: Event) -> list[BaseEvent]:
        """What an event of the run says."""
        return self._out(self._end(event) if event.kind == "completion" else self._translated(event))

    def fail(self, code: str, message: str) -> list[BaseEvent]:
        """The end of a run that broke off without a completion; nothing if it has ended."""
        return self._out(self._closed(RunErrorEvent(message=message, code=code)))

    def snapshot(self, messages: Sequence[Shown]) -> list[BaseEvent]:
        """The whole conversation as it is, in place of what was told so far."""
        self._speeches.changed = False
        return self._out([*self._order.closing(), MessagesSnapshotEvent(messages=list(messages))])

    def custom(self, name: str, value: Any) -> list[BaseEvent]:
        """Something of one's own."""
        return self._out([CustomEvent(name=name, value=plain_copy(value))])

    def picture(self, messages: Sequence[Shown], *, first: bool) -> list[BaseEvent]:
        """Where the run is now, for a reader who has missed what led there. `first`: who has no run yet, so that it is
        begun. Nothing of it counts as said."""
        head = [self._started()] if first else []
        opened: list[BaseEvent] = [*self._activities.reopened()]
        if not self.over:
            opened += [StepStartedEvent(step_name=name) for name in self._order.open_of("step")]
            opened += self._speeches.reopened()
        return [*head, MessagesSnapshotEvent(messages=list(messages)), *self._state.snapshot(), *opened]

    # -- what goes out ---------------------------------------------------------------------------

    def _out(self, events: Iterable[BaseEvent]) -> list[BaseEvent]:
        return [event for event in events if self._order.take(event)]

    def _fresh(self, wanted: str) -> str:
        number, name = 1, wanted
        while name in self._used:
            number += 1
            name = f"{wanted}~{number}"
        self._used.add(name)
        return name

    def _started(self) -> RunStartedEvent:
        names = self._names
        return RunStartedEvent(
            thread_id=names.thread_id,
            run_id=names.run_id,
            parent_run_id=names.parent_run_id,
            protocol_version=PROTOCOL_VERSION,
        )

    def _begin(self, results: Sequence[tuple[str, Message]]) -> Iterator[BaseEvent]:
        yield self._started()
        yield from self._state.snapshot()
        for own, message in results:
            yield from self._result(self._fresh(own), message)

    def _closed(self, last: BaseEvent) -> Iterator[BaseEvent]:
        yield from self._order.closing()
        yield last

    def _translated(self, event: Event) -> Iterator[BaseEvent]:
        mark = mark_of(event)
        if mark is not None:
            yield from self._marked(event, *mark)
        elif event.partial and event.kind != "graph":
            yield from self._speeches.piece(event)
        elif event.partial:
            yield from self._activities.take(event)
        else:
            yield from self._complete(event)
        if event.state_delta:
            yield from self._state.change(event.state_delta)

    def _marked(self, event: Event, kind: str, mark: Mapping[str, Any]) -> Iterator[BaseEvent]:
        step, made = str(mark.get("step", "")), str(mark.get("message" if kind == ASKED else "call", ""))
        if isinstance(attempt := mark.get("attempt"), int) and attempt > 1:
            yield CustomEvent(name=RETRIED, value={"step": step, "node": str(mark.get("node", "")), "attempt": attempt})
        if step not in self._steps.values():
            yield StepStartedEvent(step_name=step)
        self._steps[made] = step
        if kind == ASKED:
            yield from self._speeches.asked(event, mark)

    def _complete(self, event: Event) -> Iterator[BaseEvent]:
        if event.id in self._told:
            return
        self._told.add(event.id)
        for place, message in enumerate(event.messages):
            own = message_id(event, place)
            if message.role == "tool":
                yield from self._result(self._fresh(result_id(event, place)), message)
            elif message.role == "user":
                yield from self._said(self._fresh(own), message)
            elif message.role == "assistant":
                yield from self._speeches.whole(event, message, own)
                for call in message.tool_calls:
                    yield from self._call(call, self._speeches.last, event)
            yield from self._made(str(message.tool_call_id) if message.role == "tool" else own)
        if event.error is not None:
            code, told = trouble(event.error)
            yield CustomEvent(name=PROBLEM, value={"code": code, "message": told})

    def _made(self, what: str) -> Iterator[BaseEvent]:
        """A message or a result is there: the step that makes it is over, once it has made all."""
        step = self._steps.pop(what, None)
        if step is not None and step not in self._steps.values():
            yield StepFinishedEvent(step_name=step)

    def _said(self, own: str, message: Message) -> Iterator[BaseEvent]:
        """What a user said while the run went on."""
        yield TextMessageStartEvent(message_id=own, role="user")
        yield TextMessageContentEvent(message_id=own, delta=message.text)
        yield TextMessageEndEvent(message_id=own)

    def _call(self, call: ToolCall, parent: str, event: Event) -> Iterator[BaseEvent]:
        if call.id in event.long_running_tool_ids:
            self._pending[call.id] = None
        if call.id in self._announced:
            return
        self._announced.add(call.id)
        yield ToolCallStartEvent(tool_call_id=call.id, tool_call_name=call.name, parent_message_id=parent)
        yield ToolCallArgsEvent(tool_call_id=call.id, delta=arguments_text(call))
        yield ToolCallEndEvent(tool_call_id=call.id)

    def _result(self, own: str, message: Message) -> Iterator[BaseEvent]:
        call = str(message.tool_call_id)
        if call not in self._answered:
            self._answered.add(call)
            self._pending.pop(call, None)
            yield ToolCallResultEvent(message_id=own, tool_call_id=call, content=message.text)

    # -- the end ---------------------------------------------------------------------------------

    def _end(self, event: Event) -> Iterator[BaseEvent]:
        if OUTCOME not in event.extensions:  # of an agent; the run goes on to its own
            return
        outcome, reason = str(event.extensions[OUTCOME]), str(event.extensions.get(REASON, ""))
        usage = _usage(event.usage)
        asks = outcome == "interrupted" and event.interrupts
        if outcome not in ("completed", "cancelled") and not asks:
            code, told = problem(outcome, reason, event.error)
            yield from self._closed(RunErrorEvent(message=told, code=code, usage=usage))
            return
        names = {"thread_id": self._names.thread_id, "run_id": self._names.run_id}
        yield from self._closed(RunFinishedEvent(**names, outcome=self._outcome(outcome, event), usage=usage))

    def _outcome(self, outcome: str, event: Event) -> Any:
        if outcome == "cancelled":
            return RunFinishedCancelledOutcome()
        if outcome == "interrupted":
            return RunFinishedInterruptOutcome(interrupts=[interrupt_of(one) for one in event.interrupts])
        return RunFinishedSuccessOutcome(pending_tool_call_ids=list(self._pending) or None)


def ended(names: RunNames, questions: Sequence[Mapping[str, Any]], pending: Sequence[str]) -> RunFinishedEvent:
    """The end of a stream that shows a thread as it is: what it waits for."""
    outcome: Any = RunFinishedSuccessOutcome(pending_tool_call_ids=list(pending) or None)
    if questions:
        outcome = RunFinishedInterruptOutcome(interrupts=[interrupt_of(one) for one in questions])
    return RunFinishedEvent(thread_id=names.thread_id, run_id=names.run_id, outcome=outcome)


def interrupt_of(question: Mapping[str, Any]) -> Interrupt:
    """A question of an agent as the protocol asks it. Its `metadata` has the key, the node, and the whole prompt."""
    prompt, schema = plain_copy(question.get("prompt")), plain_copy(question.get("schema"))
    call = prompt.get("call_id") if isinstance(prompt, dict) else None
    message = prompt if isinstance(prompt, str) else None if prompt is None else json.dumps(prompt, ensure_ascii=False)
    return Interrupt(
        id=str(question.get("id", "")),
        reason="input_required" if call is None else "tool_approval",
        message=message,
        tool_call_id=None if call is None else str(call),
        response_schema=schema if isinstance(schema, dict) else None,
        metadata={"key": str(question.get("key", "")), "node": str(question.get("node", "")), "prompt": prompt},
    )


def _usage(used: Used | None) -> list[TokenUsage] | None:
    """The tokens of all models of a run together."""
    if used is None:
        return None
    return [
        TokenUsage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            total_tokens=used.input_tokens + used.output_tokens,
            cached_input_tokens=used.cached_tokens,
        )
    ]
