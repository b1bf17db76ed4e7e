"""Agents that run as a part of another one's node: in its lineage, under its budget, their questions its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast
from urllib.parse import quote

import anyio

from graphagent.agents.agent import Agent
from graphagent.agents.closing import closing
from graphagent.agents.failures import engine_failure, error_of, raised_by
from graphagent.agents.handover import Handed
from graphagent.agents.invocation import Invocation
from graphagent.agents.requests import field
from graphagent.agents.scope import LIVE, Log, Scope, event_by, scope_of, store
from graphagent.engine.child import ChildEnd, run_within, space_within
from graphagent.engine.context import NodeContext
from graphagent.engine.questions import InterruptSignal, type_of
from graphagent.errors import LimitReached, RunStalled
from graphagent.graph.compiled import CompiledGraph
from graphagent.ledger import ErrorInfo, Event
from graphagent.messages import Message

BUFFER = 64
"""Events of a nested agent that may wait for the node that runs it."""


class RunsGraph(Protocol):
    """An agent that is a graph, as a node that runs it needs it."""

    name: str
    graph: CompiledGraph

    def start(
        self, invocation: Invocation, log: Log, given: Mapping[str, Any] | None = None, *, isolated: bool = False
    ) -> Awaitable[Mapping[str, Any]]:
        """The state that a run begins with."""
        ...


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """What came of an agent that a node ran. `text`: its last answer; `state`: the state of its graph, None for an
    agent that is none; `error`: why it failed; `limit`: which limit cut it off; `handed`: to whom it hands over."""

    text: str = ""
    state: Any = None
    error: Exception | None = None
    limit: str | None = None
    handed: Handed | None = None


def graph_of(agent: Agent) -> RunsGraph | None:
    """The agent as one that is a graph, or None."""
    inner = getattr(agent, "graph", None)
    return cast(RunsGraph, agent) if isinstance(inner, CompiledGraph) and hasattr(agent, "start") else None


async def run_agent(
    ctx: NodeContext,
    agent: Agent,
    invocation: Invocation,
    *,
    given: Mapping[str, Any] | None = None,
    isolated: bool = False,
) -> AgentAnswer:
    """Run an agent to its end as the body of a node; whoever reads the run hears it.

    `given`: fields that its graph begins with; `isolated`: without the conversation so far. Questions of it unwind the
    node; when the node runs again, the agent goes on where it stopped.
    """
    graph = graph_of(agent)
    if graph is None:
        return await _Other(ctx, agent, invocation).run()
    scope = scope_of(ctx)
    log = Log() if scope is None else scope.log
    namespace = space_within(ctx)
    log.speakers[namespace] = invocation
    end = await run_within(
        ctx,
        graph.graph,
        namespace,
        lambda: graph.start(invocation, log, given, isolated=isolated),
        context=Scope(replace(invocation, node=None), log),
    )
    return _answer(agent.name, end)


def _answer(name: str, end: ChildEnd) -> AgentAnswer:
    stop, state = end
    if stop.kind == "completed":
        handed = Handed.of(field(state, "metadata", {}))
        return AgentAnswer(str(field(state, "last_response", "")), state, handed=handed)
    if stop.kind == "limit":
        return AgentAnswer(state=state, limit=stop.reason)
    stalled = RunStalled(f"agent '{name}' stalled: {stop.reason}")
    return AgentAnswer(state=state, error=stop.error or stalled)


async def run_nested(agent: RunsGraph, invocation: Invocation, node: NodeContext) -> AsyncIterator[Event]:
    """The events of an agent that a node runs for itself, such as one that is a tool: the node gets them as they come,
    whoever reads the run doesn't hear them. One that had ended before the node ran again tells its answer only.

    The agent runs in a task of its own, which has ended when the last event is there; its questions unwind the node.
    """
    send, receive = anyio.create_memory_object_stream[Event](BUFFER)
    nested = _Nested(agent, invocation, node, Log(send.send))
    left: GeneratorExit | None = None
    async with send, receive, anyio.create_task_group() as group:
        try:
            group.start_soon(nested.run, send)
            async for event in receive:
                yield event
        except GeneratorExit as error:  # it would come out of the group as a part of an exception group
            left = error
        finally:
            group.cancel_scope.cancel()
    if left is not None:
        raise left
    for event in nested.ended():
        yield event


class _Nested:
    """An agent on its way, and what came of it."""

    def __init__(self, agent: RunsGraph, invocation: Invocation, node: NodeContext, log: Log) -> None:
        outer = scope_of(node)
        below = "" if outer is None else f"{outer.invocation.branch}/"
        self.agent = agent
        self.invocation = replace(invocation, node=None)
        self.node = node
        self.log = log
        self.namespace = space_within(node, quote(invocation.branch.removeprefix(below), safe=""))
        self.answer: AgentAnswer | None = None
        self.problem: BaseException | None = None
        if outer is not None:
            outer.log.speakers[self.namespace] = None

    async def run(self, send: Any) -> None:
        """Run it to its end; what unwinds the node is kept for it."""
        async with send:
            try:
                end = await run_within(
                    self.node,
                    self.agent.graph,
                    self.namespace,
                    lambda: self.agent.start(self.invocation, self.log),
                    context=Scope(self.invocation, self.log),
                )
                self.answer = _answer(self.agent.name, end)
            except (InterruptSignal, Exception) as problem:
                self.problem = problem

    def ended(self) -> Iterator[Event]:
        """The event that ends the run, if what was said last doesn't. Raises what unwinds the node, and what the
        engine fails with (EffectUnknown, CheckpointError)."""
        if self.problem is not None:
            raise self.problem
        answer, told = self.answer or AgentAnswer(), self.log.told
        error = answer.error or (None if answer.limit is None else LimitReached(answer.limit))
        if error is not None:
            if engine_failure(error):
                raise error
            yield event_by(self.invocation, kind="error", error=error_of(error))
        elif not (told and told[-1].is_final and told[-1].error is None):
            said = (Message.assistant(answer.text),) if answer.text else ()
            key = field(answer.state, "last_response_id", "")
            key = key or self.node.idempotency_key(f"answer {self.namespace}")
            yield event_by(self.invocation, id=key, kind="message" if said else "completion", messages=said)


def _run_record() -> dict[str, Any]:
    """What the ledger keeps of one run of an agent that is no graph: its annotation says as what."""
    raise NotImplementedError


class _Other:
    """An agent that is no graph. Each of its runs is kept in the ledger, so that one that has ended is not run again;
    its questions are put as the node's, and it is run again with the answers."""

    def __init__(self, ctx: NodeContext, agent: Agent, invocation: Invocation) -> None:
        self.ctx = ctx
        self.agent = agent
        self.invocation = replace(invocation, node=ctx)

    async def run(self) -> AgentAnswer:
        """Run it until it has no more questions."""
        number = 0
        answers: Mapping[str, Any] | None = None
        while True:
            claim = await self.ctx.claim(f"agent run {number}", _run_record, False, True)
            if claim.open:
                await self.ctx.commit(claim, await self._once(answers))
            ended: dict[str, Any] = claim.result
            if "error" in ended:
                return AgentAnswer(error=raised_by(self.agent.name, ErrorInfo(**ended["error"])))
            if "questions" not in ended:
                return AgentAnswer(str(ended["text"]))
            answers = answered(self.ctx, ended["questions"])
            number += 1

    async def _once(self, answers: Mapping[str, Any] | None) -> dict[str, Any]:
        options = replace(self.invocation.options, answers=answers)
        said, last = "", None
        scope = scope_of(self.ctx)
        async with closing(self.agent.run(replace(self.invocation, options=options))) as events:
            async for event in events:
                if event.partial:
                    await self.ctx.emit(LIVE, event)
                    continue
                last = event
                said = event.text if event.is_final and event.text else said
                if scope is not None and event.error is None and not event.interrupts:
                    await store(scope, self.ctx, event)
        if last is not None and last.error is not None:
            return {"error": last.error.model_dump()}
        if last is not None and last.interrupts:
            return {"questions": [dict(question) for question in last.interrupts]}
        return {"text": said}


def answered(ctx: NodeContext, questions: Any) -> dict[str, Any]:
    """The answers to an agent's questions, by their ids, put as those of the node. Raises InterruptSignal when all have
    been put and some have no answer."""
    answers: dict[str, Any] = {}
    asked: InterruptSignal | None = None
    for question in questions:
        try:
            answers[question["id"]] = ctx.ask(question["key"], question.get("prompt"), type_of(question.get("schema")))
        except InterruptSignal as signal:
            asked = asked or signal
    if asked is not None:
        raise asked
    return answers
