"""An agent as a tool of another one."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from graphagent.agents.agent import Agent
from graphagent.agents.function_tool import DELTA
from graphagent.agents.invocation import Invocation
from graphagent.agents.model import ToolSpec
from graphagent.agents.tool import ToolContext
from graphagent.engine.context import NodeContext
from graphagent.errors import ToolError
from graphagent.ledger import Event
from graphagent.messages import Message

Persist = Callable[[Event], Awaitable[None]]
TRIGGER = "trigger"
"""The extension of the events of an agent that is a tool: the call that it answers (`type`, `id`, `name`). They are
stored, and whoever reads the run doesn't hear them."""

REQUEST: Mapping[str, Any] = {
    "type": "object",
    "properties": {"request": {"type": "string", "description": "what the agent shall do, with all it has to know"}},
    "required": ["request"],
    "additionalProperties": False,
}


class AgentTool:
    """Runs an agent on a request and returns its answer.

    `parameters`: the JSON schema of the request, which the agent then gets as JSON text; without one the model gives a
    text. `own_history`: the agent sees nothing of the conversation around it, nor that of it (the default); else its
    filter key is one below the caller's. `stream`: its text goes out piece by piece, as that of a streaming tool.
    `whole`: everything it said, not only its last answer.

    The agent runs as a part of the calling node (see `Invocation.node`): the questions of one that is a graph are the
    node's, at any depth, and when they are answered, or after a crash, it goes on where it stopped.
    """

    external = needs_approval = ends_turn = False
    reentrant = True

    def __init__(
        self,
        agent: Agent,
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        own_history: bool = True,
        stream: bool = False,
        whole: bool = False,
    ) -> None:
        self.agent = agent
        self._plain = parameters is None
        self._own_history = own_history
        self._stream = stream
        self._whole = whole
        self.spec = ToolSpec(name or agent.name, description or agent.description, parameters or REQUEST)

    def check(self, arguments: Mapping[str, Any]) -> str | None:
        """What is wrong with arguments, or None."""
        fits = not self._plain or (set(arguments) == {"request"} and isinstance(arguments["request"], str))
        return None if fits else f"tool '{self.spec.name}' takes one argument: 'request', a text"

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """The agent's answer. Raises ToolError if the agent fails."""
        text = str(arguments["request"]) if self._plain else json.dumps(dict(arguments), ensure_ascii=False)
        said: list[str] = []
        last: Event | None = None
        async for event in self.agent.run(self._invocation(Message.user(text), context)):
            if event.partial:
                await self._show(event, context)
                continue
            said += [m.text for m in event.messages if m.role == "assistant" and m.text and not m.tool_calls]
            last = event
        if last is not None and last.error is not None:
            raise ToolError(f"agent '{self.agent.name}' failed: {last.error.type}: {last.error.message}")
        if last is not None and last.interrupts:
            keys = ", ".join(f"'{question['key']}'" for question in last.interrupts)
            raise ToolError(f"agent '{self.agent.name}' asks {keys}, and nobody can answer; run it as an agent node")
        return "\n".join(said) if self._whole else (said or [""])[-1]

    def _invocation(self, message: Message, context: ToolContext) -> Invocation:
        """The agent's own invocation. Its id and branch are the same whenever this call runs again, and no other's."""
        node = cast(NodeContext, context.node)
        key = node.idempotency_key("agent")
        own = f"{self.agent.name}-{key[:12]}"
        parent = context.invocation or Invocation(self.agent, None)
        child = parent.child(self.agent, message, scope=own, branch=f"{context.name}-{key[:12]}")
        options = replace(child.options, answers=None, history=(), instruction=None, agent=None, tool_filter=None)
        filter_key = own if self._own_history else child.filter_key
        told = replace(child, persist=_marking(child.persist, context), as_tool=True)
        return replace(told, id=key, filter_key=filter_key, options=options, node=node)

    async def _show(self, event: Event, context: ToolContext) -> None:
        if self._stream and event.delta:
            told = {"call_id": context.call_id, "name": context.name, "delta": event.delta}
            await cast(NodeContext, context.node).emit(DELTA, told)


def _marking(persist: Persist | None, context: ToolContext) -> Persist | None:
    """Stores events as those of a call; the innermost call stands."""
    trigger = {"type": "tool_call", "id": context.call_id, "name": context.name}

    async def marked(event: Event) -> None:
        assert persist is not None
        if TRIGGER not in event.extensions:
            event = event.model_copy(update={"extensions": {**event.extensions, TRIGGER: trigger}})
        await persist(event)

    return None if persist is None else marked
