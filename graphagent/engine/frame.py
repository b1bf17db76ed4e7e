"""The state of one run of one graph: what the loop reads and changes, for the root and for every child alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from graphagent.checkpoint.record import Question
from graphagent.checkpoint.store import CheckpointStore, Lease
from graphagent.clock import Clock
from graphagent.engine.hooks import NodeCallbacks
from graphagent.engine.limits import Limits, Meter
from graphagent.engine.outcome import Outcome
from graphagent.engine.state_codec import StateCodec
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Activation, Marking, text_of
from graphagent.graph.policies import RetryPolicy
from graphagent.unset import UNSET

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from graphagent.engine.attempt import NodeCall
    from graphagent.engine.control import Control
    from graphagent.engine.lone import LoneNode
    from graphagent.engine.plan import Stop
    from graphagent.engine.stream import Emitter

RECENT = 24
"""Steps that are looked at for a cycle when a run reaches its limit."""
Mode = Literal["superstep", "eager"]


class Step(NamedTuple):
    """Positions of the frontier that run now; the others have finished or wait for an answer. `nodes` of all."""

    todo: tuple[int, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Setup:
    """What an executor has made ready for one graph; children have their own, made from their parent's."""

    graph: CompiledGraph
    engine: Mode
    limits: Limits
    clock: Clock
    codec: StateCodec
    calls: tuple[NodeCall, ...]
    callbacks: tuple[NodeCallbacks, ...]
    default_retry: tuple[RetryPolicy, ...]
    cancel_on_failure: bool
    save_each_step: bool  # durability "step"
    debug: bool
    lone_steps: tuple[Step, ...]  # per node: the step in which it alone runs
    lone: tuple[LoneNode | None, ...]
    drive: Callable[[Frame], Awaitable[Stop]]  # runs a frame to its end
    setup_of: Callable[[CompiledGraph], Setup]  # of a child graph
    fired: dict[Any, Marking] = field(default_factory=dict)  # transitions seen so far, by marking and completions
    judges: dict[str, Any] = field(default_factory=dict)  # of runs of other versions, by their fingerprint


class Ran(NamedTuple):
    """What came of a lone node that has run already, and of its router if that has too."""

    result: Any
    error: Exception | None = None
    label: Any = UNSET
    route_error: Exception | None = None


class Origin(NamedTuple):
    """Identity of an activation across a re-run: the row it started from, its place there, its visit (step)."""

    base: int
    position: int
    visit: int
    node: str


@dataclass(slots=True)
class Tree:
    """What a root run and its child graphs share."""

    lineage: str
    run_id: str
    meter: Meter
    context: Any = None
    store: CheckpointStore | None = None
    lease: Lease | None = None
    emitter: Emitter | None = None
    control: Control | None = None  # a debugger that may hold the run between steps
    warnings: list[str] = field(default_factory=list)
    stop: str | None = None  # "pause" (graceful), "forced" or "cancel": seen between steps
    cancelled: bool = False
    lost: bool = False  # the lease was taken over
    begun: frozenset[str] = frozenset()  # namespaces of child frames that this run has begun
    instant: bool = False  # nothing that a save does is waited for: neither the store nor a reader of events
    life: str = ""  # of a store that ends with the process: lineages of one name in two of them are two
    waits: bool = False  # writes to the store are waited for, so that a bound on their time means something
    durable: bool = True  # False: the store only parks an interrupted run inside this process
    released: bool = False
    supersedes: bool = False  # it had the run before it cancelled, and takes that one's place

    async def writer(self) -> Lease:
        """The right to write the lineage, taken at the first write where it wasn't at the start."""
        if self.lease is None:
            assert self.store is not None
            self.lease = await self.store.acquire(self.lineage, self.run_id)
        return self.lease


@dataclass(slots=True)
class Frame:
    """One graph's run. `seq` counts rows as if each step wrote one; `head` is the newest row that was written."""

    setup: Setup
    graph: CompiledGraph
    tree: Tree
    namespace: str
    marking: Marking
    values: dict[str, Any]
    store: CheckpointStore | None
    context: Any = None  # of the run, unless the node that runs this child graph has given it one of its own
    seq: int = -1
    head: int | None = None
    base: int = 0
    step: int = 0  # over the lineage
    steps: int = 0  # of this run
    step_bound: int = 1000  # steps before the limit cuts in; one less than the limit if a landing node wants the last
    snap: int = 0
    root: int = 0
    delta_rows: int = 0
    delta_size: int = 0
    snap_size: int = 0
    fresh: bool = True  # the next row begins a history of its own
    saved: dict[str, Any] | None = None  # the values at the newest row, if steps are not saved one by one
    unsaved_nodes: list[str] = field(default_factory=list)
    held: dict[int, Outcome] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)  # positions whose result is stored
    questions: tuple[Question, ...] = ()
    passed: frozenset[int] = frozenset()  # positions whose breakpoint a resume has passed
    origins: list[Origin] | None = None  # of the frontier; None: all started from row `base`
    resuming: bool = False  # no step has been taken since the frame was loaded
    unmet: bool = False  # no effect under its namespace is older than the frame: there is none to look for
    ran: Ran | None = None  # a lone node has run and waits for the loop to settle it
    started: dict[Origin, int] = field(default_factory=dict)  # eager: the newest row when an activation started
    inputs: dict[Origin, dict[str, Any]] = field(default_factory=dict)  # what those of an earlier run had started on
    landed: bool = False
    ended: bool = False  # the newest row is an end row
    migrated: tuple[str, ...] = ()  # what was migrated when the frame was loaded, and is in no row yet
    graph_kept: bool = False  # the store has been given the document of the graph
    recent: list[tuple[str, ...]] = field(default_factory=list)  # nodes of the last steps, 24 or some more

    @property
    def lineage(self) -> str:
        """The lineage of the root run."""
        return self.tree.lineage

    @property
    def store_persists(self) -> bool:
        """True if rows are encoded, so that their sizes say when a snapshot pays."""
        return self.store is not None and self.store.persistent

    def origin(self, position: int) -> Origin:
        """The identity of the activation at a place of the frontier."""
        if self.origins is not None:
            return self.origins[position]
        node = self.graph.names[self.marking.frontier[position].node]
        return Origin(self.base, position, self.step + 1, node)

    def activation_id(self, position: int) -> str:
        """`<branch>/<node>#<visit>`, with `~k` for the k-th of equal ones."""
        frontier = self.marking.frontier
        activation = frontier[position]
        text = activation_text(self.graph, activation, self.origin(position).visit)
        if len(frontier) == 1:
            return text
        same = [
            i for i, other in enumerate(frontier) if other.node == activation.node and other.branch == activation.branch
        ]
        return text if same[0] == position else f"{text}~{same.index(position)}"

    def given(self, activation: Activation) -> dict[str, Any]:
        """The values that an activation sees: the state, with its overlay on top."""
        return self.values if activation.overlay is None else {**self.values, **activation.overlay}


def activation_text(graph: CompiledGraph, activation: Activation, visit: int) -> str:
    """Branch, node and visit of an activation as text."""
    name = f"{graph.names[activation.node]}#{visit}"
    return f"{text_of(activation.branch)}/{name}" if activation.branch else name


def is_root(namespace: str) -> bool:
    """True for the namespace of a run itself, as that of an agent; that of a child graph says where it is run."""
    return "@" not in namespace


def child_namespace(frame: Frame, position: int, scope: str = "") -> str:
    """The namespace of the child graph that an activation runs: the path of the activation and the row it started
    from, so that a child that runs twice, or once more after a fork, never meets its own earlier run. `scope` tells
    several children of one activation apart."""
    origin = frame.origin(position)
    activation = frame.marking.frontier[position]
    path = f"{text_of(activation.branch)}/" if activation.branch else ""
    within = f"/{scope}" if scope else ""
    own = f"{path}{origin.node}{within}@{origin.base}.{origin.position}"
    return f"{frame.namespace}/{own}" if frame.namespace else own
