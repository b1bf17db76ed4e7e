"""The builder: records nodes, edges, routes and joins; `compile()` checks them together and freezes the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphagent.errors import GraphDefinitionError, alternatives
from graphagent.graph.checks import check_definition
from graphagent.graph.compile import build
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import (
    Condition,
    EdgeDef,
    ErrorEdgeDef,
    GraphDef,
    JoinDef,
    JoinMode,
    Migration,
    NodeDef,
    Place,
    Problem,
    RouteDef,
)
from graphagent.graph.document import fill_builder, parse_document, state_class
from graphagent.graph.names import END, START
from graphagent.graph.policies import CachePolicy, RetryPolicy
from graphagent.graph.schema import StateSchema
from graphagent.graph.signature import declared_labels

Labels = Mapping[Any, str] | Iterable[str]
Retry = RetryPolicy | Sequence[RetryPolicy] | None
_HERE = str(Path(__file__).parent)


def _caller() -> Place:
    """Where the user called the builder: the first frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)


def _labelled(labels: Labels) -> dict[Any, str]:
    return dict(labels) if isinstance(labels, Mapping) else {label: label for label in labels}


def _retries(retry: Retry) -> tuple[RetryPolicy, ...]:
    if retry is None:
        return ()
    return (retry,) if isinstance(retry, RetryPolicy) else tuple(retry)


class StateGraph:
    """A graph under construction over a state class (a pydantic model, a TypedDict or a dataclass).

    Every method returns the builder. Problems are collected and raised together by `compile()`. `inputs` and
    `outputs` name the fields that a caller may pass in and that count as the result (None: all).
    """

    def __init__(
        self,
        state: type,
        *,
        name: str = "graph",
        inputs: Iterable[str] | None = None,
        outputs: Iterable[str] | None = None,
    ) -> None:
        self.schema = StateSchema(state)
        self.definition = GraphDef(
            name,
            inputs=None if inputs is None else tuple(inputs),
            outputs=None if outputs is None else tuple(outputs),
        )
        self._places: dict[str, Place] = {}  # of every node by id: a twin is found without a look at all nodes

    # -- nodes -----------------------------------------------------------------------------------

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
    ) -> StateGraph:
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
                destinations=None if destinations is None else _labelled(destinations),
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
                place=_caller(),
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
    ) -> StateGraph:
        """Add a node that runs another compiled graph as its child.

        `input_mapper(state)` gives the child's input (default: the fields both states declare, as far as they are
        set). `output_mapper(child_state)` gives the update (default: the fields both declare that the child
        changed; list-like fields give their new items only). `options` are those of `add_node`.
        """
        config = {"input_mapper": input_mapper, "output_mapper": output_mapper}
        return self._special(id, "subgraph", config, child=graph, **options)

    def add_interrupt_node(
        self,
        id: str,
        *,
        prompt: Any,
        answer_type: Any = Any,
        key: str | None = None,
        writes: str | None = None,
        **options: Any,
    ) -> StateGraph:
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
    ) -> StateGraph:
        """Fan out over the list in field `over`: `worker` runs once an item, with the item in field `item_key`, and
        `collect` runs once when all have ended (at once for an empty list).

        `worker` is the id of a node, or a function, which becomes the node `<id>.item`.
        """
        place = _caller()
        if not isinstance(worker, str):
            worker_id = f"{id}.item"
            self._node(NodeDef(worker_id, fn=worker, place=place))
        else:
            worker_id = worker
        config = {"worker": worker_id, "over": over, "item_key": item_key, "collect": collect}
        self._special(id, "map", config, reads=(over,), writes=(), **options)
        self.definition.edges.append(EdgeDef(worker_id, collect, place))
        return self

    def _special(self, id: str, kind: Any, config: Mapping[str, Any], child: Any = None, **options: Any) -> StateGraph:
        retry = _retries(options.pop("retry", None))
        for name in ("reads", "writes", "effects", "formerly", "allow"):
            if options.get(name) is not None:
                options[name] = tuple(options[name])
        return self._node(NodeDef(id, kind=kind, retry=retry, child=child, config=config, place=_caller(), **options))

    def _node(self, node: NodeDef) -> StateGraph:
        if node.id in self._places:
            first = self._places[node.id]
            self._problem("GA003", f"node '{node.id}' is added twice, first at {first}", node.id, node.place)
            return self
        self._places[node.id] = node.place
        self.definition.nodes.append(node)
        return self

    # -- edges -----------------------------------------------------------------------------------

    def add_edge(self, source: str, target: str) -> StateGraph:
        """When `source` has run, `target` runs. Several edges into one node mean: on any of them, not on all."""
        if source == START:
            return self.set_entry_point(target)
        self.definition.edges.append(EdgeDef(source, target, _caller()))
        return self

    def add_join_edge(
        self, sources: Iterable[str], target: str, *, mode: JoinMode = "all", id: str | None = None
    ) -> StateGraph:
        """When enough of `sources` have run, `target` runs once.

        `mode`: `all` of them; `active`: all that can still come; `any`: the first; a number: so many distinct ones.
        `id` names the join in checkpoints (default: the target; a second join on one target needs its own).
        """
        names = tuple(dict.fromkeys(name for name in sources if name and name.strip()))
        self.definition.joins.append(JoinDef(id or target, names, target, mode, _caller()))
        return self

    def add_error_edge(
        self, source: str, target: str, *, errors: type[Exception] | Sequence[type[Exception]] = (Exception,)
    ) -> StateGraph:
        """When `source` fails for good with one of `errors`, `target` runs instead of its out-edges."""
        kinds = (errors,) if isinstance(errors, type) else tuple(errors)
        self.definition.error_edges.append(ErrorEdgeDef(source, target, kinds, _caller()))
        return self

    def add_conditional_edges(
        self,
        source: str,
        router: Callable[..., Any],
        path_map: Labels | None = None,
        *,
        default: str | None = None,
        same_as: str | None = None,
        with_edges: bool = False,
    ) -> StateGraph:
        """After `source`, `router(state)` names the label of the one target that runs.

        Labels are declared by `path_map` (ids, or labels with ids) or by the router's return annotation (`Literal`
        or an Enum). END is always a legal label. `default` takes an unknown label or None. `same_as` names another
        routed node that always decides alike; `with_edges` says that plain edges beside the route are meant.
        """
        return self._route(source, router, path_map, default, same_as=same_as, with_edges=with_edges)

    def add_multi_conditional_edges(
        self, source: str, router: Callable[..., Any], path_map: Labels | None = None, *, default: str | None = None
    ) -> StateGraph:
        """After `source`, `router(state)` returns a list of labels; all their targets run, each once.

        `default` is taken when the list is empty.
        """
        return self._route(source, router, path_map, default, many=True)

    def _route(
        self, source: str, router: Callable[..., Any], path_map: Labels | None, default: str | None, **options: Any
    ) -> StateGraph:
        if path_map is not None:
            labels: dict[Any, str] | None = _labelled(path_map)
        else:
            found = declared_labels(router) if callable(router) else None
            labels = None if found is None else {label: getattr(label, "value", label) for label in found}
        self.definition.routes.append(RouteDef(source, router, labels, default=default, place=_caller(), **options))
        return self

    def add_tools_conditional_edges(self, llm_node: str, tools_node: str, fallback: str = END) -> StateGraph:
        """After `llm_node`: `tools_node` if the last message has tool calls, else `fallback`."""

        def has_tool_calls(state: Any) -> str:
            messages = state["messages"] if isinstance(state, dict) else state.messages
            return tools_node if messages and messages[-1].tool_calls else fallback

        return self._route(llm_node, has_tool_calls, [tools_node, fallback], None)

    def set_entry_point(self, *ids: str) -> StateGraph:
        """Where a run starts; several start side by side."""
        self.definition.entries += [(id, _caller()) for id in ids]
        return self

    def set_finish_point(self, *ids: str) -> StateGraph:
        """The run may end after these nodes: an edge to END."""
        place = _caller()
        self.definition.edges += [EdgeDef(id, END, place) for id in ids]
        return self

    # -- behaviour around nodes --------------------------------------------------------------------

    def interrupt_before_nodes(self, *ids: str) -> StateGraph:
        """Breakpoints: stop before these nodes run."""
        self.definition.before += [(id, _caller()) for id in ids]
        return self

    def interrupt_after_nodes(self, *ids: str) -> StateGraph:
        """Breakpoints: stop after these nodes have run."""
        self.definition.after += [(id, _caller()) for id in ids]
        return self

    def with_node_callbacks(self, callbacks: Any, *, node: str | None = None) -> StateGraph:
        """Add callbacks (an object with `before`, `after`, `on_error`; see `graphagent.engine.hooks`) around every
        node, or around one. Those of the graph run before those of a node."""
        self.definition.callbacks.append((node, callbacks))
        return self

    def with_cache(self, cache: Any, policy: CachePolicy | None = None) -> StateGraph:
        """Keep node results in `cache`; `policy` is the default for nodes without one of their own."""
        self.definition.cache, self.definition.cache_policy = cache, policy
        return self

    def with_version(self, text: str) -> StateGraph:
        """A version of your own; it separates cached results and is shown in reports."""
        self.definition.version = text
        return self

    def migrates(
        self,
        *,
        fields: Mapping[str, str] | None = None,
        values: Mapping[str, Callable[[Any], Any]] | None = None,
        new: Mapping[str, Any] | None = None,
        drop: Iterable[str] = (),
    ) -> StateGraph:
        """Say how rows that an earlier version of the graph stored are read; nodes have `formerly` for that.

        `fields`: former names of fields, and what they are called now. `values`: by present name, a function from
        stored plain data (of a value, of new items of a list, of changed entries of a mapping) to plain data of the
        type declared now; it is called for what was stored under a former name and for what doesn't fit the type, so
        that nothing is migrated twice. `new`: for fields that such a row lacks, plain data, or a function of the
        stored plain state that makes it. `drop`: fields that are given up. May be called several times. Not part of
        the fingerprint.
        """
        made = Migration(dict(fields or {}), dict(values or {}), dict(new or {}), tuple(drop))
        self.definition.migrations.append(made)
        for name in dict.fromkeys([*made.fields.values(), *made.values, *made.new]):
            if name not in self.schema.fields:
                known = alternatives(name, self.schema.names)
                text = f"a migration leads to field '{name}', which '{self.schema.name}' doesn't declare: {known}"
                self._problem("GA405", text, name, _caller())
        return self

    # -- facts for the validator -----------------------------------------------------------------

    def must_pass(self, node: str, *, through: str | Iterable[str]) -> StateGraph:
        """Policy: no way leads to `node` except through one of `through`."""
        guards = (through,) if isinstance(through, str) else tuple(through)
        self.definition.must_pass.append((node, guards))
        return self

    def assume(self, **choices: str) -> StateGraph:
        """Tell the validator that these outcomes (routed node = label) never happen together."""
        self.definition.assumptions.append(choices)
        return self

    def limits(self, **bounds: Any) -> StateGraph:
        """Bounds that the validator may rely on: `steps`, `laps` (node -> laps), `fanout` (node -> items)."""
        self.definition.limits.update(bounds)
        return self

    # -- result ----------------------------------------------------------------------------------

    def compile(self, *, strict: bool = True) -> CompiledGraph:
        """Check the definition and freeze it. Raises GraphDefinitionError with every problem found.

        `strict` makes routers and gotos without declared targets an error; otherwise they are warnings, kept in
        `CompiledGraph.warnings` with the rest.
        """
        problems = [*self.definition.problems, *check_definition(self.definition, self.schema, strict=strict)]
        errors = [problem for problem in problems if problem.severity == "error"]
        if errors:
            raise GraphDefinitionError(self.definition.name, errors)
        return build(self.definition.snapshot(), self.schema, tuple(problems), strict=strict)

    @classmethod
    def from_json(
        cls, doc: Mapping[str, Any] | str, functions: Mapping[str, Callable[..., Any]], *, state: type | None = None
    ) -> StateGraph:
        """A builder from the canonical JSON of a graph (a mapping or text) and its node and router functions.

        Functions are found by node id, routers by `<node>:router`, exception classes of error edges that aren't built
        in by their name. `state` is the state class; without it one is made from the document, with `Any` where a
        type isn't built in. Raises ValueError for a malformed document.
        """
        content = parse_document(doc)
        interface = {"inputs": content.get("inputs"), "outputs": content.get("outputs")}
        builder = cls(state or state_class(content), name=content.get("name", "graph"), **interface)
        fill_builder(builder, content, functions)
        return builder

    def _problem(self, code: str, message: str, node: str, place: Place) -> None:
        self.definition.problems.append(Problem(code, "error", message, (node,), place))
