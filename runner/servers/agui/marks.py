"""What a run tells beside its events while it goes on, so that its stream can say more: which answer a piece of text
belongs to, and that a model is asked again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import anyio

from graphagent.agents.invocation import Invocation
from graphagent.agents.model import ModelRequest
from graphagent.agents.tool import ToolContext
from graphagent.ledger import Event
from graphagent.messages import ToolCall
from runner.plugins import Plugin

if TYPE_CHECKING:
    from graphagent.engine.context import NodeContext

ASKED = "agui.asked"
"""The kind of the mark before a model is asked: `message` (id of its answer), `step`, `node`, `attempt`."""
CALLED = "agui.called"
"""The kind of the mark before a tool is called: `call` (its id), `step`, `node`, `attempt`."""
MARKS = (ASKED, CALLED)


class Marks(Plugin):
    """Puts marks into the stream of one run. `begun`: set when what was said is stored, and the agent is about to
    run."""

    name = "agui"

    def __init__(self) -> None:
        self.begun = anyio.Event()

    async def before_agent(self, invocation: Invocation) -> None:
        """The run has begun: from here on its end is an event."""
        self.begun.set()

    async def before_model(self, invocation: Invocation, request: ModelRequest, ctx: NodeContext) -> None:
        """Tell which answer comes."""
        await ctx.emit(ASKED, {"message": ctx.idempotency_key("message"), **_where(ctx)})

    async def before_tool(self, invocation: Invocation, call: ToolCall, context: ToolContext) -> None:
        """Tell which call is made."""
        node = cast("NodeContext", context.node)
        await node.emit(CALLED, {"call": call.id, **_where(node)})


def mark_of(event: Event) -> tuple[str, Mapping[str, Any]] | None:
    """Kind and payload of a mark; None for another event."""
    if event.kind == "graph" and event.partial:
        for kind in MARKS:
            found = event.extensions.get(kind)
            if isinstance(found, Mapping):
                return kind, found
    return None


def _where(ctx: NodeContext) -> dict[str, Any]:
    at = ctx.activation
    step = f"{ctx.namespace}/{at.id}" if ctx.namespace else at.id
    return {"step": step, "node": at.node, "attempt": at.attempt}
