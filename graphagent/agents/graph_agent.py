"""An agent that is a graph: from an invocation to a run of the executor, from its end to the last event."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import quote

from graphagent.agents.agent import Agent
from graphagent.agents.failures import error_info
from graphagent.agents.history import plain_history
from graphagent.agents.invocation import Invocation
from graphagent.agents.nested import run_nested
from graphagent.agents.projector import Projector
from graphagent.agents.scope import RECORDING, Log, Scope, event_by, live_event
from graphagent.agents.subagents import bound
from graphagent.agents.views import messages_of
from graphagent.checkpoint.store import CheckpointStore
from graphagent.engine.executor import Executor
from graphagent.engine.frame import Mode
from graphagent.engine.limits import Limits
from graphagent.engine.result import Interrupt, RunResult
from graphagent.errors import AgentError, CheckpointNotFound
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.policies import RetryPolicy
from graphagent.graph.view import values_of
from graphagent.ids import fresh_id
from graphagent.ledger import Event, SessionKey
from graphagent.messages import Message

MODES = ("messages", "tasks", "custom")


class GraphAgent:
    """A compiled graph as an agent.

    `sub_agents`: those that its agent nodes name. `carry`: fields that keep their value from turn to turn, by way of
    the checkpoints; the others begin each turn with `initial`, or their default. `projector`: makes the messages that a
    turn begins with (None: that of the invocation's services, else the plain history). `user_input_key`: the field
    that gets what the agent is asked. The rest is that of an `Executor`. Raises AgentError for an agent node whose
    agent is not there.

    A run belongs to the lineage of its session; its namespace is the path of agents. Without a session it has a
    lineage of its own.
    """

    def __init__(
        self,
        name: str,
        graph: CompiledGraph,
        *,
        description: str = "",
        sub_agents: Sequence[Agent] = (),
        carry: Collection[str] = (),
        initial: Mapping[str, Any] | None = None,
        projector: Projector | None = None,
        user_input_key: str = "user_input",
        engine: Mode = "superstep",
        limits: Limits | None = None,
        default_retry: RetryPolicy | Sequence[RetryPolicy] | None = None,
        durability: Literal["step", "exit"] = "step",
        on_failure: Literal["drain", "cancel"] = "drain",
    ) -> None:
        if not name or "/" in name or "@" in name:
            raise AgentError(
                f"an agent is called {name!r}; it needs a name without '/' and '@' (paths are made of them)"
            )
        self.name = name
        self.description = description
        self.graph = bound(name, graph, sub_agents)
        self.carry = frozenset(carry)
        self.initial = dict(initial or {})
        self.user_input_key = user_input_key
        self._sub_agents = tuple(sub_agents)
        self.projector = projector
        self._options: dict[str, Any] = {
            "engine": engine,
            "limits": limits,
            "default_retry": default_retry,
            "durability": durability,
            "on_failure": on_failure,
            "callbacks": (RECORDING,),
        }
        self._executors: dict[int, Executor] = {}
        for field in (*self.carry, *self.initial):
            if field not in graph.schema.fields:
                graph.schema.check(field, None, f"agent '{name}'")  # raises, naming what is declared

    @property
    def sub_agents(self) -> Sequence[Agent]:
        """The agents that it may hand over to."""
        return self._sub_agents

    def to_mermaid(self) -> str:
        """The graph as Mermaid flowchart text."""
        return self.graph.to_mermaid()

    def executor(self, checkpoints: CheckpointStore | None = None) -> Executor:
        """The executor that runs the agent on a store: to pause its runs, and to look at them and change them."""
        found = self._executors.get(id(checkpoints))
        if found is None:
            found = self._executors[id(checkpoints)] = Executor(self.graph, checkpoints, **self._options)
        return found

    # -- a run -----------------------------------------------------------------------------------

    async def run(self, invocation: Invocation) -> AsyncIterator[Event]:
        """The events of one run. Raises UsageError and CheckpointError for a run that can't begin: new input while
        questions are open, answers that fit none, a session that another run holds."""
        if not invocation.branch:
            invocation = replace(invocation, branch=self.name)
        if invocation.node is not None:
            async for told in run_nested(self, invocation, invocation.node):
                yield told
            return
        executor = self.executor(invocation.services.checkpoints)
        log = Log()
        namespace = invocation.branch
        log.speakers[namespace] = invocation
        said: Event | None = None
        async with executor.stream(
            **await self._beginning(executor, invocation, namespace, log),
            namespace=namespace,
            modes=MODES,
            context=Scope(invocation, log),
            budget=invocation.options.budget,
        ) as events:
            async for event in events:
                if event.mode == "tasks":
                    for told in log.take((event.namespace, event.activation)) if event.kind == "end" else ():
                        said = told
                        yield told
                elif (piece := live_event(log, event)) is not None:
                    yield piece
        for told in log.rest():
            said = told
            yield told
        assert events.result is not None
        last = last_event(invocation, self.graph, events.result, said)
        if last is not None:
            yield last

    async def _beginning(self, executor: Executor, invocation: Invocation, namespace: str, log: Log) -> dict[str, Any]:
        """How the executor's run begins: with answers, or with a new turn."""
        options, lineage = invocation.options, lineage_of(invocation)
        if options.answers is not None:
            if lineage is None:
                raise CheckpointNotFound(f"agent '{self.name}' is resumed without a session; there is nothing to go on")
            return {"lineage": lineage, "answers": options.answers, "resume": True}
        # a turn that failed or whose process died is over once the person says something else; a question is not
        abandon = options.abandon or invocation.admitted == invocation.id
        if lineage is not None and not abandon:
            abandon = not await executor.interrupts(lineage, namespace=namespace)
        given = await self.start(invocation, log)
        kept = self.carry & self.initial.keys()
        if kept and lineage is not None and await executor.history(lineage, namespace=namespace, limit=1):
            given = {k: v for k, v in given.items() if k not in kept or k in options.state}
        return {
            "input": given,
            "lineage": lineage or fresh_id(),
            "abandon": abandon,
            "carry": self.carry,
        }

    async def start(
        self, invocation: Invocation, log: Log, given: Mapping[str, Any] | None = None, *, isolated: bool = False
    ) -> dict[str, Any]:
        """The state that a run begins with: `initial`, the options' state, what is `given`, the projected messages, and
        what the agent is asked. `isolated`: no messages but that."""
        fields, asked = self.graph.schema.fields, invocation.message
        values = {**self.initial, **{k: v for k, v in invocation.options.state.items() if k in fields}, **(given or {})}
        projected: tuple[Message, ...] = ()
        if "messages" in fields:
            alone = () if asked is None else (asked,)
            projected = alone if isolated else await self._messages(invocation, log)
            values["messages"] = list(projected) or values.get("messages", [])
        if self.user_input_key in fields and asked is not None and asked.role == "user" and asked.text:
            # once others have answered, the question stands before their answers and is not put again behind them
            put = not projected or projected[-1].text == asked.text
            values[self.user_input_key] = asked.text if put else ""
        inputs = self.graph.definition.inputs
        return values if inputs is None else {name: value for name, value in values.items() if name in inputs}

    async def _messages(self, invocation: Invocation, log: Log) -> tuple[Message, ...]:
        found = await messages_of(invocation, log.views)
        return await plain_history(invocation, log.told) if found is None else found


def lineage_of(invocation: Invocation) -> str | None:
    """The lineage of an invocation's runs: its session's; None without a session. An agent that another one runs, which
    is no graph, has one of its own."""
    if invocation.session is None:
        return None
    lineage = session_lineage(invocation.session.key)
    return f"{lineage}~{quote(invocation.branch, safe='')}" if invocation.parent_id else lineage


def session_lineage(key: SessionKey) -> str:
    """The lineage of a session's runs, in whatever store."""
    return "/".join(quote(part, safe="") for part in key)


def last_event(invocation: Invocation, graph: CompiledGraph, result: RunResult, said: Event | None) -> Event | None:
    """The event that ends a run, if what was said last doesn't: its failure, its questions, or its end."""
    if result.status == "completed":
        if said is not None and said.is_final and said.error is None:
            return None
        return event_by(invocation, kind="completion", extensions={"state": told_state(graph, result.state)})
    if result.status == "interrupted":
        return event_by(invocation, kind="graph", interrupts=tuple(map(shown, result.interrupts)))
    more = {} if result.landed is None else {"landed": result.landed}
    return event_by(invocation, kind="error", error=error_info(result), extensions=more)


def told_state(graph: CompiledGraph, state: Any) -> dict[str, Any]:
    """A final state as an event tells it: the graph's outputs, without the history, secrets, and what is never
    stored."""
    outputs, fields = graph.definition.outputs, graph.schema.fields
    return {
        name: value
        for name, value in values_of(state).items()
        if name != "messages"
        and not (fields[name].transient or fields[name].secret)
        and (outputs is None or name in outputs)
    }


def shown(interrupt: Interrupt) -> dict[str, Any]:
    """A question as an event shows it."""
    names = ("id", "key", "node", "prompt", "schema", "kind", "path")
    return {name: getattr(interrupt, name) for name in names}
