"""The node that runs an agent as its child."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphagent.agents.agent import Agent
from graphagent.agents.failures import error_of
from graphagent.agents.handover import HANDOVERS, Ways
from graphagent.agents.invocation import Invocation, RunOptions
from graphagent.agents.nested import AgentAnswer, graph_of, run_agent
from graphagent.agents.requests import field, first_asked
from graphagent.agents.scope import activity_of, event_by, invocation_of, scope_of
from graphagent.engine.context import NodeContext
from graphagent.engine.outcome import Outcome
from graphagent.errors import AgentError, LimitReached, alternatives
from graphagent.graph.kinds import register
from graphagent.graph.results import Command
from graphagent.graph.schema import MessagesState
from graphagent.graph.view import values_of
from graphagent.messages import Message, MessageUpdate, RemoveMessage

CONVERSATION = frozenset(MessagesState.model_fields)
"""Fields that a child has of its own: what was said to its parent is not said to it."""


class AgentNode:
    """The function of an agent node; see `StateGraph.add_agent_node` for what it does."""

    def __init__(self, id: str, config: Mapping[str, Any]) -> None:
        self.id = id
        self.config = config
        self.agent: Agent | None = config["agent"]
        self.declared: frozenset[str] = config["declared"]
        self.user_input_key: str = config["user_input_key"]
        self.ways: Ways = config["hand_over"] or Ways()
        if self.agent is not None and not hasattr(self.agent, "run"):
            raise AgentError(f"the agent of node '{id}' is {self.agent!r:.60}; it has no 'run' (see Agent)")
        if config["on_child_error"] not in ("fail", "record"):
            known = alternatives(str(config["on_child_error"]), ("fail", "record"))
            raise AgentError(f"on_child_error of node '{id}' is {config['on_child_error']!r}: {known}")

    async def __call__(self, state: Any, ctx: NodeContext) -> Any:
        """Run the agent; its answer becomes the update. Raises the agent's failure unless it is to be recorded."""
        agent, parent = self._agent(ctx), invocation_of(ctx)
        given = self._given(agent, state)
        child = self._invocation(agent, parent, self._message(agent, given, state, parent), state, ctx)
        answer = await run_agent(ctx, agent, child, given=given, isolated=self.config["isolated_messages"])
        if answer.limit is not None:
            outcome = Outcome()
            outcome.limit = answer.limit
            return outcome
        if answer.error is None:
            update = self._update(answer)
            return update if answer.handed is None else await self._handed_on(answer, update, state, parent, ctx)
        if self.config["on_child_error"] == "fail":
            raise answer.error
        return self._recorded(answer.error, child, ctx)

    def _agent(self, ctx: NodeContext) -> Agent:
        if self.agent is not None:
            return self.agent
        parent = invocation_of(ctx)
        known = {} if parent is None else {agent.name: agent for agent in parent.agent.sub_agents}
        if self.id not in known:
            raise AgentError(
                f"agent node '{self.id}' has no agent, and no sub-agent has its name: {alternatives(self.id, known)}"
            )
        return known[self.id]

    def _given(self, agent: Agent, state: Any) -> dict[str, Any]:
        """The fields that a graph agent begins with."""
        graph = graph_of(agent)
        if (mapper := self.config["input_mapper"]) is not None:
            return dict(mapper(state) or {})
        if graph is None:
            return {}
        fields = graph.graph.schema.fields
        return {k: v for k, v in values_of(state).items() if k in fields and k not in CONVERSATION}

    def _message(self, agent: Agent, given: Mapping[str, Any], state: Any, parent: Invocation | None) -> Message | None:
        """What the child is asked."""
        text = given.get(getattr(agent, "user_input_key", "user_input")) or ""
        if not text and self.config["input_from_last_response"]:
            text = field(state, "last_response", "")
        text = text or field(state, self.user_input_key, "")
        asked = None if parent is None else parent.message
        if not text or (asked is not None and asked.text == text):
            return asked
        return Message.user(str(text))

    def _invocation(
        self, agent: Agent, parent: Invocation | None, message: Message | None, state: Any, ctx: NodeContext
    ) -> Invocation:
        """The child's invocation. Its id is the same whenever this activation runs again."""
        split = ctx.activation.branch
        path = _path(split, self.id)
        branch = path.removesuffix(agent.name).rstrip("/") if path.split("/")[-1] == agent.name else path
        scope = self.config["event_scope"]
        key = split if scope is None else _path(split, scope or agent.name)
        if parent is None:
            options = RunOptions(history=tuple(field(state, "messages", ())))
            name = _path(path, agent.name)
            return Invocation(agent, message, branch=name, filter_key=key, options=options)
        child = parent.child(agent, message, scope=key or None, branch=branch)
        options = replace(child.options, answers=None, abandon=False, agent=None, instruction=None)
        return replace(child, id=ctx.idempotency_key("invocation"), options=options)

    async def _handed_on(
        self, answer: AgentAnswer, update: Mapping[str, Any], state: Any, parent: Invocation | None, ctx: NodeContext
    ) -> Command:
        """The jump to who takes over. Raises LimitReached if the agents of this turn hand over to each other too often,
        AgentError for an agent to which there is no way."""
        handed, ways = answer.handed, self.ways
        assert handed is not None
        if handed.agent not in ways.nodes:
            known = alternatives(handed.agent, ways.nodes)
            raise AgentError(
                f"the agent of node '{self.id}' hands over to '{handed.agent}', to which it has no way: {known}"
            )
        count = field(state, "metadata", {}).get(HANDOVERS, 0)
        if count >= ways.most:
            raise LimitReached(f"max handoffs exceeded: {ways.most}")
        asked = handed.asked or first_asked(parent)
        more: dict[str, Any] = {"metadata": {HANDOVERS: count + 1}, self.user_input_key: asked}
        if parent is not None and handed.agent == parent.agent.name:
            more |= {"messages": await self._retold(answer, asked, parent, ctx), self.user_input_key: ""}
        return Command(update={**update, **self._known(more, clear=False)}, goto=ways.nodes[handed.agent])

    async def _retold(
        self, answer: AgentAnswer, asked: str, parent: Invocation, ctx: NodeContext
    ) -> list[MessageUpdate]:
        """The history of an agent to which its child hands back: as a new turn would see it, with what it is asked."""
        above, scope = graph_of(parent.agent), scope_of(ctx)
        said: list[MessageUpdate] = [Message.user(asked)] if asked else []
        if above is None or scope is None or parent.session is None:
            return [Message.assistant(answer.text), *said] if answer.text else said
        seen = await above.start(parent, scope.log)
        return [RemoveMessage.all(), *seen.get("messages", ()), *said]

    def _update(self, answer: AgentAnswer) -> Mapping[str, Any]:
        mapper = self.config["output_mapper"]
        if mapper is None:
            return self._known({"last_response": answer.text, "node_responses": {self.id: answer.text}}, clear=True)
        mapped = mapper(answer)
        return self._known(dict(mapped), clear=True, check=False) if mapped else {}

    def _known(self, update: dict[str, Any], *, clear: bool, check: bool = True) -> dict[str, Any]:
        """The update with the input used up, without fields that the state lacks unless a mapper wrote them."""
        if clear and self.user_input_key in self.declared:
            update.setdefault(self.user_input_key, "")
        return {name: value for name, value in update.items() if not check or name in self.declared}

    def _recorded(self, error: Exception, child: Invocation, ctx: NodeContext) -> dict[str, Any]:
        """The child's failure as a result; it is told all the same."""
        info = error_of(error)
        scope = scope_of(ctx)
        if scope is not None:
            event = event_by(child, id=ctx.idempotency_key("error"), kind="error", error=info)
            scope.log.add(activity_of(ctx), event)
        failed = {"error": {"type": info.type, "message": info.message}}
        return self._known({"node_responses": {self.id: failed}}, clear=True)


def _path(*parts: str) -> str:
    """A path of segments; one that repeats the segment before it is left out."""
    segments = [segment for part in parts for segment in part.split("/") if segment]
    return "/".join(s for i, s in enumerate(segments) if i == 0 or s != segments[i - 1])


register("agent", AgentNode)
