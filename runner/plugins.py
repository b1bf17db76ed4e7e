"""Plugins: code that looks on at every run of a Runner, and may step in."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from graphagent.agents.invocation import Hooks, Invocation
from graphagent.agents.model import ModelRequest, Reply
from graphagent.agents.tool import ToolContext, ToolResult
from graphagent.errors import AgentError, ModelError, StopAgent, UsageError
from graphagent.ledger import Event, Session
from graphagent.messages import Message, ToolCall
from runner.plugin_hooks import Call, hooks_of, overrides

if TYPE_CHECKING:
    from graphagent.engine.context import NodeContext

T = TypeVar("T")
_log = logging.getLogger(__name__)
_IDENTITY = ("id", "request_id", "invocation_id", "parent_invocation_id", "branch", "filter_key", "author", "timestamp")


class Plugin:
    """Base of plugins: override what is needed. `name` must be set, and be another one for each plugin of a run.

    What a hook raises ends the run, as an error that names the plugin, unless the hook says otherwise. At each hook the
    plugins of the Runner come first, then those of the run, then what the agent itself has.

    The hooks on calls are asked for the calls of every agent of the run, at any depth; `invocation` is that of the
    agent that calls. They may ask a person through `ctx.interrupt`, or `context.node.interrupt`. A hook before a call
    runs again when its node does, after an answered question or a crash; one after it as well, except on tools.
    """

    name = ""

    async def on_message(self, session: Session, message: Message) -> Sequence[Message] | None:
        """Messages in place of one that a person sent, before anything is stored; the last one is what the agent is
        asked. None: as it is. An empty list is an error."""
        return None

    async def before_agent(self, invocation: Invocation) -> Event | None:
        """An event that stands for the run of the agent, which then does not run; None lets it run."""
        return None

    async def on_event(self, invocation: Invocation, event: Event) -> Event | None:
        """Another event in place of one, partial ones too, before it is stored and handed out; None: as it is. It
        keeps its identity (ids, author, branch, key, time). If the hook raises, that is logged and the event stays."""
        return None

    async def before_model(
        self, invocation: Invocation, request: ModelRequest, ctx: NodeContext
    ) -> ModelRequest | Reply | None:
        """Before a model is called. Another request goes on to the next plugin; a Reply stands for the call, which then
        is not made, and later plugins are not asked; None: as it is. What it raises fails the node that calls."""
        return None

    async def after_model(self, invocation: Invocation, reply: Reply, ctx: NodeContext) -> Reply | None:
        """A Reply in place of the model's, which is final: neither later plugins nor the agent's callbacks see it. What
        it raises fails the node that calls."""
        return None

    async def on_model_error(
        self, invocation: Invocation, request: ModelRequest, error: ModelError, ctx: NodeContext
    ) -> Reply | None:
        """A Reply that stands for a call that failed; None leaves it to the next one, at last to the retry policy.
        Plugins after it see such a Reply in `after_model`."""
        return None

    async def before_tool(self, invocation: Invocation, call: ToolCall, context: ToolContext) -> ToolCall | Any | None:
        """Before a tool is called, and before a person is asked for approval. A ToolCall changes the arguments, and
        goes on to the next plugin; any other result stands for the tool's. What it raises is the result that the model
        sees; StopAgent ends the run."""
        return None

    async def after_tool(
        self, invocation: Invocation, call: ToolCall, context: ToolContext, result: ToolResult
    ) -> ToolResult | Any | None:
        """A result in place of the tool's, or of a failure's (`result.error`), which is final. What it raises is the
        result that the model sees."""
        return None

    async def on_tool_error(
        self, invocation: Invocation, call: ToolCall, context: ToolContext, error: Exception
    ) -> ToolResult | Any | None:
        """A result that stands for a tool whose last attempt raised; None leaves the error to the next one, at last to
        the model."""
        return None

    async def before_append(self, invocation: Invocation, event: Event) -> Event | None:
        """The event as it shall be stored; None: not at all. What the reader gets stays as it is."""
        return event

    async def after_agent(self, invocation: Invocation) -> Event | None:
        """One more event when the agent has come to its end by itself."""
        return None

    async def after_run(self, invocation: Invocation, completion: Event) -> None:
        """Work after the run, in the background: runs of one session in their order, all before the Runner closes.
        What it raises is logged."""

    async def aclose(self) -> None:
        """Called once when the Runner closes, for plugins that were given to the Runner itself."""


class Plugins:
    """The plugins of a run, in order: those of the Runner, then those of the run."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self._all = tuple(plugins)
        seen: set[str] = set()
        for plugin in self._all:
            if not plugin.name:
                raise UsageError(f"plugin {type(plugin).__name__} has no name: set `name` on its class")
            if plugin.name in seen:
                raise UsageError(f"two plugins are called '{plugin.name}': give one of them another name")
            seen.add(plugin.name)

    def and_more(self, plugins: Sequence[Plugin]) -> Plugins:
        """These and others after them. Raises UsageError as the constructor does."""
        return Plugins((*self._all, *plugins)) if plugins else self

    def hooks(self) -> Hooks:
        """The plugins' hooks on calls, as the nodes of a run take them; a plugin without any adds nothing."""
        return hooks_of(self._all, Plugin, _calling)

    async def messages(self, session: Session, said: Sequence[Message]) -> tuple[Message, ...]:
        """What persons said, rewritten. Raises AgentError if a plugin leaves nothing."""
        current = tuple(said)
        for plugin in self._all:
            changed: list[Message] = []
            for message in current:
                new = await _of(plugin, plugin.on_message(session, message))
                changed += [message] if new is None else new
            if current and not changed:
                raise AgentError(f"plugin '{plugin.name}' left nothing of the message: return at least one message")
            current = tuple(changed)
        return current

    async def before_agent(self, invocation: Invocation) -> Event | None:
        """The event of the first plugin that stands in for the agent."""
        for plugin in self._all:
            event = await _of(plugin, plugin.before_agent(invocation))
            if event is not None:
                return event
        return None

    async def event(self, invocation: Invocation, event: Event) -> Event:
        """The event after all plugins."""
        for plugin in self._all:
            try:
                changed = await plugin.on_event(invocation, event)
            except Exception:
                _log.exception("on_event of plugin '%s' failed; the event stays as it is", plugin.name)
                continue
            if changed is not None and changed is not event:
                event = changed.model_copy(update={name: getattr(event, name) for name in _IDENTITY})
        return event

    async def before_append(self, invocation: Invocation, event: Event) -> Event | None:
        """The event as it shall be stored, or None."""
        current: Event | None = event
        for plugin in self._all:
            if current is not None:
                current = await _of(plugin, plugin.before_append(invocation, current))
        return current

    async def after_agent(self, invocation: Invocation) -> list[Event]:
        """The events that plugins add."""
        found = [await _of(plugin, plugin.after_agent(invocation)) for plugin in self._all]
        return [event for event in found if event is not None]

    def after_run(self, invocation: Invocation, completion: Event) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        """The jobs after a run, with the names of the plugins whose they are."""

        def job(plugin: Plugin) -> Callable[[], Awaitable[None]]:
            return lambda: plugin.after_run(invocation, completion)

        return [(plugin.name, job(plugin)) for plugin in self._all if overrides(plugin, Plugin, "after_run")]

    async def aclose(self) -> None:
        """Close them, the last one first; what one raises is logged."""
        for plugin in reversed(self._all):
            try:
                await plugin.aclose()
            except Exception:
                _log.exception("closing plugin '%s' failed", plugin.name)


def _calling(plugin: Plugin, name: str) -> Call:
    async def call(*args: Any) -> Any:
        return await _of(plugin, getattr(plugin, name)(*args))

    return call


async def _of(plugin: Plugin, result: Awaitable[T]) -> T:
    """What a hook comes back with; an error of it names the plugin. StopAgent is a decision, not an error."""
    try:
        return await result
    except StopAgent:
        raise
    except Exception as error:
        raise AgentError(f"plugin '{plugin.name}' failed: {type(error).__name__}: {error}") from error
