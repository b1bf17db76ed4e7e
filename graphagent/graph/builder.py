"""The builder: records nodes, edges, routes and joins; `compile()` checks them together and freezes the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from graphagent.errors import GraphDefinitionError, alternatives
from graphagent.graph.builder_nodes import Labels, caller, labelled
from graphagent.graph.builder_programs import ProgramMethods
from graphagent.graph.checks import check_definition
from graphagent.graph.compile import build
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import EdgeDef, ErrorEdgeDef, GraphDef, JoinDef, JoinMode, Migration, RouteDef
from graphagent.graph.document import fill_builder, parse_document, state_class
from graphagent.graph.names import END, START
from graphagent.graph.policies import CachePolicy
from graphagent.graph.schema import StateSchema
from graphagent.graph.signature import declared_labels


class StateGraph(ProgramMethods):
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
        self._places = {}

    # -- edges -----------------------------------------------------------------------------------

    def add_edge(self, source: str, target: str) -> StateGraph:
        """When `source` has run, `target` runs. Several edges into one node mean: on any of them, not on all."""
        if source == START:
            return self.set_entry_point(target)
        self.definition.edges.append(EdgeDef(source, target, caller()))
        return self

    def add_join_edge(
        self, sources: Iterable[str], target: str, *, mode: JoinMode = "all", id: str | None = None
    ) -> StateGraph:
        """When enough of `sources` have run, `target` runs once.

        `mode`: `all` of them; `active`: all that can still come; `any`: the first; a number: so many distinct ones.
        `id` names the join in checkpoints (default: the target; a second join on one target needs its own).
        """
        names = tuple(dict.fromkeys(name for name in sources if name and name.strip()))
        self.definition.joins.append(JoinDef(id or target, names, target, mode, caller()))
        return self

    def add_error_edge(
        self, source: str, target: str, *, errors: type[Exception] | Sequence[type[Exception]] = (Exception,)
    ) -> StateGraph:
        """When `source` fails for good with one of `errors`, `target` runs instead of its out-edges."""
        kinds = (errors,) if isinstance(errors, type) else tuple(errors)
        self.definition.error_edges.append(ErrorEdgeDef(source, target, kinds, caller()))
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
            labels: dict[Any, str] | None = labelled(path_map)
        else:
            found = declared_labels(router) if callable(router) else None
            labels = None if found is None else {label: getattr(label, "value", label) for label in found}
        self.definition.routes.append(RouteDef(source, router, labels, default=default, place=caller(), **options))
        return self

    def add_tools_conditional_edges(self, llm_node: str, tools_node: str, fallback: str = END) -> StateGraph:
        """After `llm_node`: `tools_node` if the last message, results of tools aside, has tool calls, else
        `fallback`."""

        def has_tool_calls(state: Any) -> str:
            messages = state["messages"] if isinstance(state, dict) else state.messages
            said = next((message for message in reversed(messages) if message.role != "tool"), None)
            return tools_node if said is not None and said.tool_calls else fallback

        return self._route(llm_node, has_tool_calls, [tools_node, fallback], None)

    def set_entry_point(self, *ids: str) -> StateGraph:
        """Where a run starts; several start side by side."""
        self.definition.entries += [(id, caller()) for id in ids]
        return self

    def set_finish_point(self, *ids: str) -> StateGraph:
        """The run may end after these nodes: an edge to END."""
        place = caller()
        self.definition.edges += [EdgeDef(id, END, place) for id in ids]
        return self

    # -- behaviour around nodes --------------------------------------------------------------------

    def interrupt_before_nodes(self, *ids: str) -> StateGraph:
        """Breakpoints: stop before these nodes run."""
        self.definition.before += [(id, caller()) for id in ids]
        return self

    def interrupt_after_nodes(self, *ids: str) -> StateGraph:
        """Breakpoints: stop after these nodes have run."""
        self.definition.after += [(id, caller()) for id in ids]
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
                self._problem("GA405", text, name, caller())
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
