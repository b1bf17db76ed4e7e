"""The part of the builder that adds nodes, one method a kind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from graphagent.errors import AgentError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import Condition, EdgeDef, GraphDef, NodeDef, NodeKind, Place, Problem
from graphagent.graph.kinds import function_of
from graphagent.graph.names import END
from graphagent.graph.policies import CachePolicy, RetryPolicy
from graphagent.graph.schema import StateSchema

Labels = Mapping[Any, str] | Iterable[str]
Retry = RetryPolicy | Sequence[RetryPolicy] | None
_HERE = str(Path(__file__).parent)


def caller() -> Place:
    """Where the user called the builder: the first frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)


def labelled(labels: Labels) -> dict[Any, str]:
    """Labels with the ids they lead to; an id is a label for itself."""
    return dict(labels) if isinstance(labels, Mapping) else {label: label for label in labels}


def _retries(retry: Retry) -> tuple[RetryPolicy, ...]:
    if retry is None:
        return ()
    return (retry,) if isinstance(retry, RetryPolicy) else tuple(retry)


class NodeMethods:
    """What adds nodes to a graph under construction; `StateGraph` has the rest."""

    schema: StateSchema
    definition: GraphDef
    _places: dict[str, Place]  # of every node by id: a twin is found without a look at all nodes

    def add_node(
        self,
        id: str,
        fn: Callable[..., Any] | None = None,
        *,
        inline: bool = False,
        retry: Retry = None,
        timeout: float | None = None,
        cache: CachePolicy | None = None,
        destinations: Labels | None = None,
        reads: Iterable[str] | None = None,
        writes: Iterable[str] | None = None,
        interrupt_before: Condition = False,
        interrupt_after: Condition = False,
        effects: Iterable[str] = (),
        idempotent: bool = False,
        formerly: Iterable[str] = (),
        allow: Iterable[str] = (),
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> Self:
        """Add a function node.

        `fn(state)` or `fn(state, ctx)`, sync or async, returns None, a mapping of changed fields, a Send or a list
        of them, or a Command. A sync function runs in a worker thread unless `inline=True` says that it never
        blocks. `timeout`: seconds an attempt may take. `destinations`: ids, or labels with ids, that a goto or Send
        may name. `reads`, `writes`: fields, for the validator. `interrupt_before`, `interrupt_after`: a breakpoint,
        or a predicate over the state. `effects`: names of side effects; `idempotent`: repeating it does no harm.
        `formerly`: earlier ids, so that old checkpoints find the node. `allow`: rule codes to silence here, with a
        reason after a colon.
        """
        return self._node(
            NodeDef(
                id,
                fn=fn,
                inline=inline,
                retry=_retries(retry),
                timeout=timeout,
                cache=cache,
                destinations=None if destinations is None else labelled(destinations),
                reads=None if reads is None else tuple(reads),
                writes=None if writes is None else tuple(writes),
                interrupt_before=interrupt_before,
                interrupt_after=interrupt_after,
                effects=tuple(effects),
                idempotent=idempotent,
                formerly=tuple(formerly),
                allow=tuple(allow),
                description=description or (fn.__doc__ or "").strip().split("\n")[0],
                metadata=dict(metadata or {}),
                place=caller(),
            )
        )

    def add_subgraph_node(
        self,
        id: str,
        graph: CompiledGraph,
        *,
        input_mapper: Callable[[Any], Mapping[str, Any]] | None = None,
        output_mapper: Callable[[Any], Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> Self:
        """Add a node that runs another compiled graph as its child.

        `input_mapper(state)` gives the child's input (default: the fields both states declare, as far as they are
        set). `output_mapper(child_state)` gives the update (default: the fields both declare that the child
        changed; list-like fields give their new items only). `options` are those of `add_node`.
        """
        config = {"input_mapper": input_mapper, "output_mapper": output_mapper}
        return self._special(id, "subgraph", config, child=graph, **options)

    def add_llm_node(
        self,
        id: str,
        model: Any,
        *,
        instruction: Any = "",
        tools: Iterable[Any] = (),
        output_schema: Any = None,
        output_key: str | None = None,
        user_input_key: str = "user_input",
        config: Any = None,
        limits: Any = None,
        callbacks: Iterable[Any] = (),
        output_attempts: int = 2,
        **options: Any,
    ) -> Self:
        """Add a node that asks a model, on a state with a message history in `messages` (see `MessagesState`).

        What it asks, the first that is there: the one-shot messages for this node, the one-shot messages, the text in
        `user_input_key` on top of `messages`, `messages`; what was used is cleared. `instruction`: a text, or a
        function of state and context; it goes before all and is never stored. `tools`: what the model may ask for.
        `output_schema`: a type, or a JSON schema, that the answer must satisfy; the model is told what is wrong with
        one that doesn't, and has `output_attempts` in all. `output_key`: the field, and the key in the session's
        state, that the answer goes to. `config`: a GenerationConfig; `limits`: CallLimits; `callbacks`:
        ModelCallbacks. `options` are those of `add_node`.
        """
        given = {
            "model": model,
            "instruction": instruction,
            "tools": tuple(tools),
            "output_schema": output_schema,
            "output_key": output_key,
            "user_input_key": user_input_key,
            "config": config,
            "limits": limits,
            "callbacks": tuple(callbacks),
            "output_attempts": output_attempts,
        }
        own = ("one_shot_messages", "one_shot_messages_by_node", user_input_key, "metadata")
        written = ("last_response", "last_response_id", "node_responses", *own, output_key)
        return self._acting(id, "llm", given, **self._accesses(options, own, written))

    def add_tools_node(
        self,
        id: str,
        tools: Iterable[Any],
        *,
        parallel: bool = False,
        max_concurrency: int | None = None,
        retry: Retry = None,
        tool_options: Any = None,
        **options: Any,
    ) -> Self:
        """Add a node that runs the tool calls of the last answer in `messages`, and appends their results.

        `parallel`: side by side, at most `max_concurrency`; results stand in call order all the same. `retry`: the
        policy for tools without one of their own. `tool_options`: ToolOptions, for the rest. `options` are those of
        `add_node`.
        """
        given = {
            "tools": tuple(tools),
            "parallel": parallel,
            "max_concurrency": max_concurrency,
            "retry": retry,
            "options": tool_options,
        }
        written = ("last_tool_response", "user_input")
        return self._acting(id, "tools", given, **self._accesses(options, (), written))

    def add_agent_node(
        self,
        id: str,
        agent: Any = None,
        *,
        input_mapper: Callable[[Any], Mapping[str, Any]] | None = None,
        output_mapper: Callable[[Any], Mapping[str, Any] | None] | None = None,
        isolated_messages: bool = False,
        input_from_last_response: bool = False,
        event_scope: str | None = "",
        on_child_error: Literal["fail", "record"] = "fail",
        user_input_key: str = "user_input",
        hand_over: Any = None,
        **options: Any,
    ) -> Self:
        """Add a node that runs an agent as its child: `agent`, or the sub-agent of the running agent that is named
        like the node.

        `input_mapper(state)`: the fields that a graph agent begins with (default: those both states declare, but for
        the conversation's). `output_mapper(answer)`: the update, from an `AgentAnswer` (default: `last_response` and
        `node_responses`). The child is asked the text in `user_input_key`, else what the running agent was asked;
        `input_from_last_response`: the last response, if there is one. `isolated_messages`: it sees nothing of the
        conversation but that. `event_scope`: its segment of the filter key (default: its name; None: no segment).
        `on_child_error`: a failure of the child fails the node, or is recorded in `node_responses` and the run goes
        on. `hand_over`: the `Ways` to the nodes that go on when it hands over to another agent. `options` are those of
        `add_node`.
        """
        given = {
            "agent": agent,
            "input_mapper": input_mapper,
            "output_mapper": output_mapper,
            "isolated_messages": isolated_messages,
            "input_from_last_response": input_from_last_response,
            "event_scope": event_scope,
            "on_child_error": on_child_error,
            "user_input_key": user_input_key,
            "hand_over": hand_over,
        }
        written: tuple[str, ...] = ("last_response", "node_responses", user_input_key)
        if hand_over is not None:
            options.setdefault("destinations", [END, *dict.fromkeys(hand_over.nodes.values())])
            written = (*written, "messages", "metadata")
        graph = getattr(agent, "graph", None)
        child = graph if isinstance(graph, CompiledGraph) else None
        if output_mapper is None:
            options.setdefault("writes", [name for name in written if name in self.schema.fields])
        return self._acting(id, "agent", given, child, **options)

    def _acting(
        self, id: str, kind: NodeKind, given: Mapping[str, Any], child: CompiledGraph | None = None, **options: Any
    ) -> Self:
        """A node whose function is made from what was given, and the fields that the state declares."""
        try:
            fn = function_of(kind, id, {**given, "declared": frozenset(self.schema.fields)})
        except AgentError as error:
            self._problem("GA015", str(error), id, caller())
            fn = None
        return self._special(id, kind, given, child, fn=fn, **options)

    def _accesses(self, options: dict[str, Any], reads: Iterable[str], writes: Iterable[str | None]) -> dict[str, Any]:
        """The options of a node that works on `messages`, and on others of these fields as far as they are declared."""
        known = self.schema.fields
        found = {
            "reads": ["messages", *dict.fromkeys(name for name in reads if name in known)],
            "writes": ["messages", *dict.fromkeys(name for name in writes if name and name in known)],
        }
        return {**found, **options}

    def add_interrupt_node(
        self,
        id: str,
        *,
        prompt: Any,
        answer_type: Any = Any,
        key: str | None = None,
        writes: str | None = None,
        **options: Any,
    ) -> Self:
        """Add a node that asks a person or another system, and goes on with the answer.

        `prompt`: plain data, or a function of the state that makes it. `answer_type`: the type that an answer is
        validated as. `key`: the name to answer by (default: the id). `writes`: the field that takes the answer
        (default: the field named like the key, if there is one).
        """
        field = writes or (key or id if (key or id) in self.schema.fields else None)
        config = {"prompt": prompt, "answer_type": answer_type, "key": key or id, "writes": field}
        return self._special(id, "interrupt", config, writes=(field,) if field else (), **options)

    def add_map_node(
        self, id: str, worker: str | Callable[..., Any], *, over: str, item_key: str, collect: str, **options: Any
    ) -> Self:
        """Fan out over the list in field `over`: `worker` runs once an item, with the item in field `item_key`, and
        `collect` runs once when all have ended (at once for an empty list).

        `worker` is the id of a node, or a function, which becomes the node `<id>.item`.
        """
        place = caller()
        if not isinstance(worker, str):
            worker_id = f"{id}.item"
            self._node(NodeDef(worker_id, fn=worker, place=place))
        else:
            worker_id = worker
        config = {"worker": worker_id, "over": over, "item_key": item_key, "collect": collect}
        self._special(id, "map", config, reads=(over,), writes=(), **options)
        self.definition.edges.append(EdgeDef(worker_id, collect, place))
        return self

    def _special(self, id: str, kind: NodeKind, config: Mapping[str, Any], child: Any = None, **options: Any) -> Self:
        retry = _retries(options.pop("retry", None))
        if options.get("destinations") is not None:
            options["destinations"] = labelled(options["destinations"])
        for name in ("reads", "writes", "effects", "formerly", "allow"):
            if options.get(name) is not None:
                options[name] = tuple(options[name])
        return self._node(NodeDef(id, kind=kind, retry=retry, child=child, config=config, place=caller(), **options))

    def _node(self, node: NodeDef) -> Self:
        if node.id in self._places:
            first = self._places[node.id]
            self._problem("GA003", f"node '{node.id}' is added twice, first at {first}", node.id, node.place)
            return self
        self._places[node.id] = node.place
        self.definition.nodes.append(node)
        return self

    def _problem(self, code: str, message: str, node: str, place: Place) -> None:
        self.definition.problems.append(Problem(code, "error", message, (node,), place))
