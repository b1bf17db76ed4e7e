"""What a builder records: nodes, edges, joins and routes as declared, with the place of the declaring call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from graphagent.graph.policies import CachePolicy, RetryPolicy

NodeKind = Literal["function", "llm", "tools", "agent", "code", "skill", "subgraph", "map", "interrupt"]
JoinMode = Literal["all", "active", "any"] | int
Condition = bool | Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Place:
    """File and line of the `add_*` call that made a part of the graph."""

    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "unknown place"


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: rule code, severity, message with the mend, the nodes concerned, the place of the declaration."""

    code: str
    severity: Literal["error", "warning", "info"]
    message: str
    at: tuple[str, ...] = ()
    place: Place = Place()

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place.file else ""
        return f"{where}{self.code} {self.severity}: {self.message}"


@dataclass(frozen=True, slots=True)
class NodeDef:
    """A node as declared. `child` is the graph of a subgraph node (or what will make one); `config` belongs to the
    kind: map and interrupt nodes keep their parameters there, llm, tools and agent nodes theirs."""

    id: str
    kind: NodeKind = "function"
    fn: Callable[..., Any] | None = None
    inline: bool = False
    retry: tuple[RetryPolicy, ...] = ()
    timeout: float | None = None
    cache: CachePolicy | None = None
    destinations: Mapping[str, str] | None = None
    reads: tuple[str, ...] | None = None
    writes: tuple[str, ...] | None = None
    interrupt_before: Condition = False
    interrupt_after: Condition = False
    effects: tuple[str, ...] = ()
    idempotent: bool = False
    formerly: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    description: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    child: Any = None
    config: Mapping[str, Any] = field(default_factory=dict)
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class EdgeDef:
    """A plain edge."""

    source: str
    target: str
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class JoinDef:
    """A join: `target` runs when enough of `sources` have arrived."""

    id: str
    sources: tuple[str, ...]
    target: str
    mode: JoinMode = "all"
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class ErrorEdgeDef:
    """Where control goes when `source` fails for good with one of `errors`."""

    source: str
    target: str
    errors: tuple[type[Exception], ...] = (Exception,)
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class RouteDef:
    """A conditional route. `labels` maps what the router returns to node ids; None: any node id may be returned.
    `sets`: the only sets of labels that a multi-target router returns, where that is known; `empty_ok`: it may choose
    none, which then ends the branch."""

    source: str
    router: Callable[..., Any] | None
    labels: Mapping[Any, str] | None
    many: bool = False
    default: str | None = None
    same_as: str | None = None
    with_edges: bool = False
    sets: tuple[tuple[str, ...], ...] | None = None
    empty_ok: bool = False
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class Migration:
    """How stored rows of an earlier version are read: `fields` maps former field names to present ones, `values` has
    functions of stored plain data by present name, `new` what fields get that such rows lack (plain data, or a function
    of the stored plain state), `drop` names fields that are given up."""

    fields: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    new: Mapping[str, Any] = field(default_factory=dict)
    drop: tuple[str, ...] = ()


@dataclass(slots=True)
class GraphDef:
    """All that a builder has collected."""

    name: str
    nodes: list[NodeDef] = field(default_factory=list)
    edges: list[EdgeDef] = field(default_factory=list)
    joins: list[JoinDef] = field(default_factory=list)
    routes: list[RouteDef] = field(default_factory=list)
    error_edges: list[ErrorEdgeDef] = field(default_factory=list)
    entries: list[tuple[str, Place]] = field(default_factory=list)
    before: list[tuple[str, Place]] = field(default_factory=list)
    after: list[tuple[str, Place]] = field(default_factory=list)
    must_pass: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    assumptions: list[Mapping[str, Any]] = field(default_factory=list)
    limits: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    version: str = ""
    migrations: list[Migration] = field(default_factory=list)
    callbacks: list[tuple[str | None, Any]] = field(default_factory=list)
    cache: Any = None
    cache_policy: CachePolicy | None = None
    problems: list[Problem] = field(default_factory=list)

    def snapshot(self) -> GraphDef:
        """A copy that doesn't follow the builder any more; nodes, functions and callbacks are shared."""
        collected: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            collected[item.name] = copy(value) if isinstance(value, list | dict) else value
        return GraphDef(**collected)
