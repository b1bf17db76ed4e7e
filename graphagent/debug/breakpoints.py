"""Breakpoints: where a debugged run, or a walk along its stored rows, is to stop."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from graphagent.debug.expression import NAMES, Expression
from graphagent.debug.moment import Moment
from graphagent.engine.nested import graphs_within
from graphagent.errors import UnsetField, UsageError, alternatives
from graphagent.graph.compiled import CompiledGraph

Kind = Literal["before", "after", "write", "error", "when"]
NO_VISITS: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Where to stop.

    `kind`: `before` or `after` a `node`, after a `write` to a `field`, at an `error`, or `when` a condition comes true
    (with a node: each time that it is about to run and the condition holds). `condition`: a safe expression (see
    `Expression`) that must hold, for any kind. `visit`: only at the n-th visit of the node in the lineage, counted from
    1. `namespace`: only in frames that fit, such as `child@*` (None: in every frame). `once`: it goes when it is hit.
    """

    id: int
    kind: Kind
    node: str | None = None
    field: str | None = None
    condition: str | None = None
    visit: int | None = None
    namespace: str | None = None
    enabled: bool = True
    once: bool = False


class Breakpoints:
    """The breakpoints of a session on one graph and whatever runs inside it."""

    def __init__(self, graph: CompiledGraph) -> None:
        self.graph = graph
        self._all: dict[int, Breakpoint] = {}
        self._conditions: dict[int, Expression] = {}
        self._held: dict[tuple[int, str], bool] = {}  # whether a condition held when a frame was judged last
        self._last = 0
        self.active = False
        """Whether any is enabled."""
        self.counts = False
        """Whether any wants to know how often its node has run."""
        self.writes = False
        """Whether any wants to know what a step has changed."""

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(list(self._all.values()))

    def __len__(self) -> int:
        return len(self._all)

    def add(
        self,
        kind: Kind,
        *,
        node: str | None = None,
        field: str | None = None,
        condition: str | None = None,
        visit: int | None = None,
        namespace: str | None = None,
        once: bool = False,
    ) -> Breakpoint:
        """A new breakpoint. Raises UsageError for a node, a field or a name that isn't there, and for a kind that lacks
        what it needs."""
        self._check(kind, node, field, condition, visit)
        expression = None if condition is None else self._expression(condition)
        self._last += 1
        new = Breakpoint(self._last, kind, node, field, condition, visit, namespace, True, once)
        self._all[new.id] = new
        if expression is not None:
            self._conditions[new.id] = expression
        self._changed()
        return new

    def remove(self, id: int) -> Breakpoint:
        """Take one away. Raises UsageError if it isn't there."""
        found = self._get(id)
        del self._all[id]
        self._conditions.pop(id, None)
        self._changed()
        return found

    def enable(self, id: int, on: bool = True) -> Breakpoint:
        """Switch one on or off. Raises UsageError if it isn't there."""
        changed = self._all[id] = replace(self._get(id), enabled=on)
        self._changed()
        return changed

    def hits(
        self,
        moment: Moment,
        view: Any,
        graph: CompiledGraph,
        *,
        visits: Mapping[str, int] = NO_VISITS,
        starting: Collection[int] | None = None,
    ) -> tuple[Breakpoint, ...]:
        """Those that are hit at a moment; such as go once have gone then.

        `view`: the state, as the class of `graph`, the graph of the moment's frame. `visits`: how often each node had
        run by then. `starting`: places of the activations that are about to start (None: those that the step before
        the moment made ready).
        """
        found = tuple(one for one in self if one.enabled and self._hit(one, moment, view, visits, starting))
        for one in found:
            if one.once:
                self.remove(one.id)
        return found

    def can_hit(self, ran: Collection[str]) -> bool:
        """False if nothing can be hit at a moment, going by the nodes of the step before it alone."""
        return any(one.enabled and (one.kind != "after" or one.node in ran) for one in self._all.values())

    def forget(self) -> None:
        """The next moment is judged without regard to those before: the cursor has been moved."""
        self._held = {}

    # -- inside ----------------------------------------------------------------------------------

    def _changed(self) -> None:
        enabled = [one for one in self._all.values() if one.enabled]
        self.active = bool(enabled)
        self.writes = any(one.kind == "write" for one in enabled)
        self.counts = any(one.visit is not None or "visit" in self._names(one) for one in enabled)

    def _get(self, id: int) -> Breakpoint:
        if id not in self._all:
            raise UsageError(f"there is no breakpoint {id}: {alternatives(str(id), map(str, self._all))}")
        return self._all[id]

    def _check(self, kind: str, node: str | None, field: str | None, condition: str | None, visit: int | None) -> None:
        if kind not in get_args(Kind):
            raise UsageError(f"'{kind}' is no kind of breakpoint: {alternatives(kind, get_args(Kind))}")
        graphs = graphs_within(self.graph)
        nodes = [name for graph in graphs for name in graph.names]
        fields = [name for graph in graphs for name in graph.schema.names]
        if node is not None and node not in nodes:
            raise UsageError(f"'{node}' is not a node: {alternatives(node, nodes)}")
        if field is not None and field not in fields:
            raise UsageError(f"'{field}' is not a field of the state: {alternatives(field, fields)}")
        if kind in ("before", "after") and node is None:
            raise UsageError(f"a breakpoint '{kind}' needs a node")
        if kind == "write" and field is None:
            raise UsageError("a breakpoint on a write needs a field")
        if kind == "when" and condition is None:
            raise UsageError("a breakpoint 'when' needs a condition")
        if visit is not None and (visit < 1 or node is None):
            raise UsageError(f"visit={visit}: visits are those of a node, and counted from 1")

    def _expression(self, condition: str) -> Expression:
        expression = Expression(condition)
        for name in sorted(expression.names() - set(NAMES)):
            raise UsageError(f"'{condition}' names '{name}', which isn't there: {alternatives(name, NAMES)}")
        known = [name for graph in graphs_within(self.graph) for name in graph.schema.names]
        for name in sorted(expression.fields() - set(known)):
            raise UsageError(f"'{condition}' reads '{name}' of the state: {alternatives(name, known)}")
        return expression

    def _names(self, one: Breakpoint) -> set[str]:
        return self._conditions[one.id].names() if one.id in self._conditions else set()

    def _hit(
        self,
        one: Breakpoint,
        moment: Moment,
        view: Any,
        visits: Mapping[str, int],
        starting: Collection[int] | None,
    ) -> bool:
        if one.namespace is not None and not fnmatchcase(moment.namespace, one.namespace):
            return False
        due = [
            (c.node, c.branch) for c in moment.coming if _starts(c.activation, c.state, c.position, moment, starting)
        ]
        about, branch = one.node, ""
        if one.kind == "before" or (one.kind == "when" and one.node is not None):
            at = [b for node, b in due if node == one.node]
            if not at:
                return False
            span = range(visits.get(str(one.node), 0) + 1, visits.get(str(one.node), 0) + len(at) + 1)
            branch = at[0]
        else:
            if not self._happened(one, moment, starting):
                return False
            ran = moment.ran.count(str(one.node))
            span = range(visits.get(str(one.node), 0) - max(ran, 1) + 1, visits.get(str(one.node), 0) + 1)
            about = one.node or next(iter(moment.ran), None) or next((node for node, _ in due), None)
        if one.visit is not None and one.visit not in span:
            return False
        names = {
            "state": view,
            "node": about,
            "step": moment.step,
            "visit": span.start,
            "branch": branch,
            "error": moment.error,
        }
        return self._holds(one, moment.namespace, names)

    def _happened(self, one: Breakpoint, moment: Moment, starting: Collection[int] | None) -> bool:
        if one.kind == "after":
            return one.node in moment.ran
        if one.kind == "write":
            wrote = one.field in moment.changed and moment.source in ("step", "end", "edit")
            return wrote and (one.node is None or one.node in moment.ran)
        if one.kind == "error":
            return moment.error is not None and not starting
        return True

    def _holds(self, one: Breakpoint, namespace: str, names: Mapping[str, Any]) -> bool:
        """Whether the condition holds. One that can't be worked out counts as true: better to stop once too often."""
        if one.id not in self._conditions:
            return True
        try:
            true = bool(self._conditions[one.id].value(names))
        except UnsetField:
            true = False
        except UsageError:
            true = True
        if one.kind != "when" or one.node is not None:
            return true
        before = self._held.get((one.id, namespace), False)
        self._held[one.id, namespace] = true
        return true and not before


def _starts(activation: str, state: str, position: int, moment: Moment, starting: Collection[int] | None) -> bool:
    if state != "ready":
        return False
    if starting is not None:
        return position in starting
    return int(activation.rpartition("#")[2].partition("~")[0]) == moment.step + 1
