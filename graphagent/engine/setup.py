"""What is decided once per executor: how each node is called."""

from __future__ import annotations

import functools
from typing import Any

from graphagent.engine.attempt import NodeCall, bound, call_async, call_inline, call_thread
from graphagent.engine.child import run_child
from graphagent.engine.context import NodeContext
from graphagent.engine.frame import Frame, Setup
from graphagent.engine.hooks import NodeCallbacks
from graphagent.engine.outcome import Outcome, checked_overlay
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import NodeDef
from graphagent.graph.marking import Activation
from graphagent.graph.signature import is_async, wants_context


def node_calls(graph: CompiledGraph, options: Setup) -> tuple[NodeCall, ...]:
    """One NodeCall per node, in graph order."""
    return tuple(_call(graph, i, node, options) for i, node in enumerate(graph.defs))


def _call(graph: CompiledGraph, index: int, node: NodeDef, options: Setup) -> NodeCall:
    definition = graph.definition
    own = [callbacks for target, callbacks in definition.callbacks if target == node.id]
    shared = [callbacks for target, callbacks in definition.callbacks if target is None]
    callbacks: tuple[NodeCallbacks, ...] = (*options.callbacks, *shared, *own)
    policy = node.cache or definition.cache_policy
    cache = definition.cache if policy is not None else None
    retry = node.retry or options.default_retry
    timeout = node.timeout if node.timeout is not None else options.limits.attempt_timeout
    fn = node.fn
    context = fn is not None and wants_context(fn)
    if node.kind == "map":
        body: Any = functools.partial(_fan_out, node=node)
    elif node.kind == "interrupt":
        body, context = functools.partial(_question, node=node), True
    elif node.kind == "subgraph":
        body = functools.partial(run_child, node=node, setup=options.setup_of(node.child))
        context = True
    elif is_async(fn):  # type: ignore[arg-type]
        body = bound(call_async, fn)
    else:
        body = bound(call_inline if node.inline else call_thread, fn)
    plain = body.func is call_async and not (context or retry or timeout or cache or callbacks or options.debug)
    return NodeCall(
        index,
        node.id,
        fn,
        plain,
        body,
        context,
        retry,
        timeout,
        cache,
        policy,
        callbacks,
        before=any(getattr(one, "before", None) for one in callbacks),
        after=any(getattr(one, "after", None) for one in callbacks),
        end=any(getattr(one, "on_activation_end", None) for one in callbacks),
    )


async def _question(
    frame: Frame, position: int, activation: Activation, state: Any, ctx: NodeContext | None, *, node: NodeDef
) -> Any:
    """Body of an interrupt node."""
    assert ctx is not None
    config = node.config
    prompt = config["prompt"](state) if callable(config["prompt"]) else config["prompt"]
    answer = ctx.ask(config["key"], prompt, config["answer_type"])
    return {config["writes"]: answer} if config["writes"] else None


async def _fan_out(
    frame: Frame, position: int, activation: Activation, state: Any, ctx: NodeContext | None, *, node: NodeDef
) -> Any:
    """Body of a map node: a Send per item, or straight on to the collector."""
    config = node.config
    items = state[config["over"]] if isinstance(state, dict) else getattr(state, config["over"])
    graph = frame.graph
    if not items:
        return Outcome(goto=(graph.index.get(config["collect"], -1),))
    key, who = config["item_key"], f"node '{node.id}'"
    worker = graph.index[config["worker"]]
    return Outcome(sends=tuple((worker, {key: checked_overlay(graph.schema, who, key, item)}) for item in items))
