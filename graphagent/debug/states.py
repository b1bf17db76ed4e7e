"""What is to be said of every node and edge of a graph at a moment, for a drawing of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graphagent.checkpoint.finding import RunQuery, SearchableRuns
from graphagent.checkpoint.record import Header
from graphagent.debug.moment import Coming, Moment
from graphagent.debug.rows import Rows, Written
from graphagent.engine.executor import Executor
from graphagent.graph.names import END, START

State = Literal["idle", "next", "running", "done", "failed", "waiting", "held"]


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node at a moment. `visits`: how often it has ended in the history that leads there; `last_step`: the step in
    which it last did.

    `state`: it is `waiting` for an answer, has `failed`, is `running` (a live run holds the lineage), is `next`, is
    `held` (it has ended, and waits for the others of its step), `done`, or has never run (`idle`). Of several
    activations the first in this order stands.
    """

    state: State
    visits: int = 0
    last_step: int | None = None


async def node_states(
    executor: Executor, moment: Moment, rows: Sequence[Header], *, running: bool | None = None
) -> Mapping[str, NodeState]:
    """Every node of the frame's graph, in order of declaration.

    `rows`: headers of the frame, of which those that lead to the moment count. `running`: whether a live run stands
    there; None: whoever holds the lineage is asked for, if the moment is the newest and the store can tell.
    """
    graph = (await Rows.of(executor, moment)).setup.graph
    visits: Counter[str] = Counter()
    last: dict[str, int] = {}
    for header in _leading_to(moment.seq, rows):
        visits.update(header.nodes)
        for name in header.nodes:
            last.setdefault(name, header.step)
    due: dict[str, list[Coming]] = {}
    for coming in moment.coming:
        due.setdefault(coming.node, []).append(coming)
    if running is None:
        running = await _is_held(executor, moment, rows)
    failed = set() if running or moment.source != "error" else _failed(moment)
    return {
        name: NodeState(
            _state(due.get(name, ()), running, name in failed, name in visits), visits[name], last.get(name)
        )
        for name in graph.names
    }


def _state(due: Iterable[Coming], running: bool, failed: bool, visited: bool) -> State:
    states = {coming.state for coming in due}
    if "waiting" in states:
        return "waiting"
    if failed:
        return "failed"
    if "ready" in states:
        return "running" if running else "next"
    if "held" in states:
        return "held"
    return "done" if visited else "idle"


def _leading_to(seq: int, rows: Iterable[Header]) -> Iterable[Header]:
    """The headers that lead to a row, newest first."""
    known = {header.seq: header for header in rows}
    place: int | None = seq
    while place is not None and place in known:
        yield known[place]
        place = known[place].parent


def _failed(moment: Moment) -> set[str]:
    """The nodes that an error row names; where it names none, all that have not ended."""
    if isinstance(moment.note, dict) and "limit" in moment.note:
        return set()
    left = {coming.node for coming in moment.coming if coming.state == "ready"}
    named = {name for name in left if f"'{name}'" in (moment.error or "")}
    return named or (left if moment.error else set())


async def _is_held(executor: Executor, moment: Moment, rows: Sequence[Header]) -> bool:
    """True if a live run holds the lineage, and the moment is where it has come to."""
    store = executor.store
    if any(header.seq > moment.seq for header in rows) or not isinstance(store, SearchableRuns):
        return False
    found = await store.find_runs(RunQuery(prefix=moment.lineage, status=frozenset(["running"]), limit=1000))
    return any(run.lineage == moment.lineage for run in found)


async def edges_taken(executor: Executor, moment: Moment) -> Mapping[tuple[str, str], int]:
    """How often each edge was taken in the history that leads to a moment, by the ids of its ends (`START` and `END`
    included), as far as the stored triggers tell: a way to END is told only where one node ran alone."""
    rows = await Rows.of(executor, moment)
    found: Counter[tuple[str, str]] = Counter()
    async for written in rows.history(moment.seq):
        if written.row.source == "input":
            found.update((START, name) for name, *_ in _frontier(written))
        elif written.row.source == "step":
            found.update(_triggers(written, rows.setup.graph.index))
    return found


def _triggers(written: Written, names: Container[str]) -> Iterable[tuple[str, str]]:
    row = written.row
    for position, (name, *more) in enumerate(_frontier(written)):
        if isinstance(row.marking, dict) and "m" in row.marking and row.marking["o"][position][0] != row.seq:
            continue  # it goes on from an earlier row
        trigger = more[3] if len(more) > 3 else None
        for origin in row.nodes if trigger is None else (_node(one, names) for one in trigger):
            yield origin, name
    if not _frontier(written) and len(row.nodes) == 1 and _plain(written).get("e"):
        yield row.nodes[0], END


def _node(activation: str, names: Container[str]) -> str:
    """The node in the id of an activation: what is left without the branch, in which there may be slashes as well."""
    name = activation.rpartition("#")[0]
    while name not in names and "/" in name:
        name = name.partition("/")[2]
    return name


def _plain(written: Written) -> dict[str, Any]:
    plain = written.row.marking
    if isinstance(plain, dict) and "m" in plain:
        plain = plain["m"]
    return {"f": [[plain]]} if isinstance(plain, str) else plain


def _frontier(written: Written) -> list[list[Any]]:
    found: list[list[Any]] = _plain(written)["f"]
    return found
