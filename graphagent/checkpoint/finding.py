"""Search over the runs of a store: what is asked, what is told, the port, and how the status of a run is judged.

All is judged from stored plain data, so that any tool can list any store without the code of its graphs. A store need
not have the port: `isinstance(store, SearchableRuns)` tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from graphagent.checkpoint.lease import check_name
from graphagent.checkpoint.record import Row, Source
from graphagent.errors import UsageError, alternatives
from graphagent.graph.marking import Starved
from graphagent.graph.names import END

RunStatus = Literal["completed", "interrupted", "failed", "limit_reached", "stalled", "running", "unfinished"]
"""What has become of a run. `running`: a live owner holds the lineage, `unfinished`: nobody does and it can be resumed
(its process died, it was cancelled, or a limit cut it off without a row that says so)."""

STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)
NO_NODES = b"[]"  # the column `nodes` of a row without any


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which runs are wanted; all conditions hold together, and an empty one holds for every run.

    `prefix`: how the lineage's name begins; `text`: a part of it. `status`: any of these. `node`: one that has run in
    the lineage, also in a child graph. `error`: a part of the error's text or the name of its type, in any case.
    `since`, `until`: when the newest row was written, in seconds since the epoch. `limit`: at most so many.
    `after`: page on behind a run, by its `RunInfo.place` (or the first two of it). Raises UsageError for a status that
    there isn't, or a limit below 1; CheckpointError for a name that no store
    takes.
    """

    prefix: str = ""
    text: str = ""
    status: frozenset[RunStatus] = frozenset()
    node: str | None = None
    error: str | None = None
    since: float | None = None
    until: float | None = None
    limit: int = 50
    after: tuple[float, str, str] | tuple[float, str] | None = None

    def __post_init__(self) -> None:
        for name in self.status:
            if name not in STATUSES:
                raise UsageError(f"there is no status '{name}' of runs: {alternatives(name, STATUSES)}")
        check_name("lineage", self.prefix + self.text)
        if self.limit < 1:
            raise UsageError(f"limit is {self.limit}, so nothing could be found; give 1 or more")

    def names(self, lineage: str) -> bool:
        """Whether the lineage is called so."""
        return lineage.startswith(self.prefix) and self.text in lineage

    def covers(self, updated: float) -> bool:
        """Whether a run that was last written then is meant."""
        return (self.since is None or updated >= self.since) and (self.until is None or updated <= self.until)

    def accepts(self, verdict: Verdict) -> bool:
        """Whether status and error are as wanted."""
        if self.status and verdict.status not in self.status:
            return False
        if not self.error:
            return True
        wanted = self.error.casefold()
        return any(wanted in text.casefold() for text in (verdict.error, verdict.kind) if text)


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One root frame of a lineage as a list of runs shows it; its namespace is `""` or that of an agent's run.

    `source` and `step` are of the newest row, `rows` counts those that are stored, `nodes` are of the newest row that
    has some. `error`: what failed, which limit was reached, or which join is starved. `waits`: keys of open questions.
    `began`, `updated`: when the oldest and the newest row were written, in seconds since the epoch. `run_id` and
    `fingerprint` are those of the newest row, `graph` is the name in that graph's stored document. `holder`: the live
    owner of the lineage in words, such as `process 12 on host 'x'`; None if nobody runs it.
    """

    lineage: str
    namespace: str
    status: RunStatus
    source: Source
    step: int
    rows: int
    nodes: tuple[str, ...]
    error: str | None
    waits: tuple[str, ...]
    began: float
    updated: float
    run_id: str
    fingerprint: str
    graph: str | None
    holder: str | None

    @property
    def place(self) -> tuple[float, str, str]:
        """Where it stands in the order of all runs; `RunQuery.after` takes it."""
        return self.updated, self.lineage, self.namespace


@runtime_checkable
class SearchableRuns(Protocol):
    """What a `CheckpointStore` may offer besides: its runs can be searched."""

    async def find_runs(self, query: RunQuery) -> list[RunInfo]:
        """The runs that are wanted, the last written first, then by lineage and namespace backwards. Raises
        LoadError."""
        ...

    async def written_elsewhere(self) -> str | None:
        """The name of the last other machine that held a lineage of this store, as of a database that was copied.

        None if all owners were on this machine, or nothing is known of them. Raises LoadError.
        """
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the newest row of a frame says of its run. `kind`: the name of the error's type."""

    status: RunStatus
    error: str | None = None
    kind: str | None = None
    waits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a frame goes: its rows, when the oldest was written, the nodes of the newest that has some."""

    rows: int
    began: float
    nodes: tuple[str, ...]


def is_root_frame(namespace: str) -> bool:
    """True for the frame of a run itself; the namespace of a child graph says at which row it is run."""
    return "@" not in namespace


def verdict_on(row: Row, held: bool, document: Mapping[str, Any] | None) -> Verdict:
    """What has become of a run whose newest row is `row`. `held`: a live owner holds its lineage. `document`: that of
    the graph that wrote the row, if it is known."""
    note = row.note if isinstance(row.note, Mapping) else {}
    waits = tuple(question.key for question in row.questions if not question.answered)
    if row.source == "end":
        return Verdict("completed")
    if row.source == "error" and "limit" in note:
        return Verdict("limit_reached", str(note["limit"]), waits=waits)
    if row.source == "error" and "error" in note:  # else the run went on: what was migrated is noted in such a row
        return Verdict("failed", str(note["error"]), note.get("type"), waits)
    if waits and row.source in ("interrupt", "fork", "edit"):
        return Verdict("interrupted", waits=waits)
    marking = row.marking["m"] if isinstance(row.marking, Mapping) and "m" in row.marking else row.marking
    if isinstance(marking, Mapping) and not marking.get("f"):
        reason = "; ".join(_starved(marking, document))
        if not reason and (row.source not in ("fork", "edit") or (not marking.get("e") and _names_end(document))):
            reason = "end_not_reached: the graph names END, nothing is left to run, and END was not reached"
        return Verdict("stalled", reason) if reason else Verdict("completed")
    if note.get("landing"):
        return Verdict("limit_reached", "a limit cut the run off, and its landing node has run")
    return Verdict("running" if held else "unfinished")


def _starved(marking: Mapping[str, Any], document: Mapping[str, Any] | None) -> Iterator[str]:
    """The joins that wait, or hold leftovers, where nothing is left to run; in the words of a stalled run's reason."""
    declared = {str(join["id"]): join for join in (document or {}).get("joins", ())}
    for name, (arrived, fired) in marking.get("j", {}).items():
        if fired and all(len(queue) == 1 for _, queue in arrived):
            continue
        have = tuple(source for source, _ in arrived)
        join = declared.get(name)
        if join is None:
            yield f"join '{name}' waits, has {', '.join(map(repr, have))}"
        else:
            missing = tuple(source for source in join["from"] if source not in have)
            yield str(Starved(name, str(join["to"]), have, missing))


def _names_end(document: Mapping[str, Any] | None) -> bool:
    """Whether some edge, route or jump of the graph leads to END; False if the graph isn't known."""
    if document is None:
        return False
    named = [edge[1] for key in ("edges", "errors") for edge in document.get(key, ())]
    named += [join["to"] for join in document.get("joins", ())]
    for route in document.get("routes", ()):
        named += [*route.get("targets", ()), route.get("default")]
    for node in document["nodes"].values():
        named += node.get("destinations", {}).values()
    return END in named


def told(
    place: tuple[str, str],
    row: Row,
    verdict: Verdict,
    extent: Extent,
    document: Mapping[str, Any] | None,
    holder: str | None,
) -> RunInfo:
    """All that a list of runs shows of one. `place`: lineage and namespace; `row`: the newest."""
    name = None if document is None else document.get("name")
    return RunInfo(
        lineage=place[0],
        namespace=place[1],
        status=verdict.status,
        source=row.source,
        step=row.step,
        rows=extent.rows,
        nodes=extent.nodes,
        error=verdict.error,
        waits=verdict.waits,
        began=extent.began,
        updated=row.created_at,
        run_id=row.run_id,
        fingerprint=row.fingerprint,
        graph=None if name is None else str(name),
        holder=holder,
    )


def page_of(found: Iterable[RunInfo], query: RunQuery) -> list[RunInfo]:
    """The wanted page of all that was found, the last written first."""
    after = query.after
    left = (info for info in found if after is None or info.place < after)
    return sorted(left, key=lambda info: info.place, reverse=True)[: query.limit]
