"""What a checkpoint store promises whose runs can be searched (`SearchableRuns`); see `store_cases`.

Lineages have a prefix of their own, so that cases may share a database. A store without the port skips them.
"""

from __future__ import annotations

import random
import unittest
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, get_args

from graphagent.checkpoint.finding import RunInfo, RunQuery, RunStatus, SearchableRuns
from graphagent.checkpoint.record import Question, Retention, Row
from graphagent.checkpoint.store import CheckpointStore, Lease
from graphagent.errors import CheckpointError, UsageError
from graphagent.ids import fresh_id
from graphagent.testing.store_cases import Stores, refused, write
from graphagent.testing.store_model import plain_rows

_ASKED = Question("q-1", "approve", "work", 0, 0, prompt={"text": "may it?"})
_ANSWERED = replace(_ASKED, id="q-2", key="amount", answered=True, answer=7)
_AT_WORK, _DONE = {"f": [["work"]]}, {"f": [], "e": 1}
_WAITING: Any = {"f": [], "j": {"both": [[["left", [[[], [0]]]]], False]}}
_DOCUMENT = {
    "name": "shop",
    "nodes": {"work": {}, "left": {}, "right": {}},
    "edges": [["both", "__end__"]],
    "joins": [{"id": "both", "to": "both", "from": ["left", "right"], "mode": "all"}],
}
_STARVED = "join 'both' into 'both' waits for 'right', has 'left'"
_LANDED = "a limit cut the run off, and its landing node has run"
_NO_END = "end_not_reached: the graph names END, nothing is left to run, and END was not reached"

LAST_ROWS: dict[str, tuple[dict[str, Any], RunStatus, str | None, tuple[str, ...]]] = {
    "end": ({"source": "end", "marking": _DONE, "nodes": ()}, "completed", None, ()),
    "asked": ({"source": "interrupt", "questions": (_ASKED, _ANSWERED)}, "interrupted", None, ("approve",)),
    "breakpoint": (
        {"source": "interrupt", "questions": (replace(_ASKED, kind="before"),)}, "interrupted", None, ("approve",),
    ),
    "answered": ({"source": "interrupt", "questions": (_ANSWERED,)}, "unfinished", None, ()),
    "error": ({"source": "error", "note": {"error": "no Order 7", "type": "NodeError"}}, "failed", "no Order 7", ()),
    "error beside a question": (
        {"source": "error", "note": {"error": "no", "type": "E"}, "questions": (_ASKED,)}, "failed", "no", ("approve",),
    ),
    "migrated error": ({"source": "error", "note": {"migrated": []}}, "unfinished", None, ()),
    "limit": ({"source": "error", "note": {"limit": "steps: 9 are done"}}, "limit_reached", "steps: 9 are done", ()),
    "landed": ({"note": {"landing": True}}, "limit_reached", _LANDED, ()),
    "step": ({}, "unfinished", None, ()),
    "lone step": ({"marking": "work"}, "unfinished", None, ()),
    "eager step": ({"marking": {"m": _AT_WORK, "o": [[0, 0, 1]]}}, "unfinished", None, ()),
    "starved": ({"marking": _WAITING}, "stalled", _STARVED, ()),
    "eager starved": ({"marking": {"m": _WAITING, "o": []}}, "stalled", _STARVED, ()),
    "starved, graph unknown": (
        {"marking": _WAITING, "fingerprint": "unknown"}, "stalled", "join 'both' waits, has 'left'", (),
    ),
    "no end": ({"marking": {"f": []}}, "stalled", _NO_END, ()),
    "fork of an end": ({"source": "fork", "marking": _DONE}, "completed", None, ()),
    "edit of an end": ({"source": "edit", "marking": {"m": _DONE, "o": []}}, "completed", None, ()),
    "fork of a question": ({"source": "fork", "questions": (_ASKED,)}, "interrupted", None, ("approve",)),
    "fork on the way": ({"source": "fork"}, "unfinished", None, ()),
    "fork of a starved run": ({"source": "fork", "marking": _WAITING}, "stalled", _STARVED, ()),
    "fork without an end": ({"source": "fork", "marking": {"f": []}}, "stalled", _NO_END, ()),
    "fork without an end, graph unknown": (
        {"source": "fork", "marking": {"f": []}, "fingerprint": "unknown"}, "completed", None, (),
    ),
}  # fmt: skip
"""By name what the newest row of a frame is, and the status, error and questions of its run while nobody holds it."""


def searchable(store: CheckpointStore) -> SearchableRuns:
    """The store itself; skips a case for one whose runs can't be searched."""
    if not isinstance(store, SearchableRuns):
        raise unittest.SkipTest("the runs of this store can't be searched")
    return store


async def begun(store: CheckpointStore, lineage: str, rows: list[Row], namespace: str = "") -> Lease:
    """A lineage with these rows, that is still held."""
    await store.save_graph("shop-1", _DOCUMENT)
    lease = await store.acquire(lineage, "run-1")
    await write(store, lease, rows, namespace)
    return lease


def rows_with(last: dict[str, Any], updated: float = 1000.0, length: int = 3) -> list[Row]:
    """Rows of which the newest has the given values."""
    rows = [replace(row, marking=_AT_WORK, fingerprint="shop-1") for row in plain_rows(length, created_at=900.0)]
    rows[0] = replace(rows[0], nodes=())
    return [*rows[:-1], replace(rows[-1], **{"created_at": updated, "nodes": (), **last})]


async def names(store: CheckpointStore, query: RunQuery) -> list[str]:
    """The lineages of a search, without what all of a case begin with."""
    return [run.lineage.removeprefix(query.prefix) for run in await searchable(store).find_runs(query)]


async def the_status_is_that_of_the_newest_row(stores: Stores) -> None:
    """Each kind of newest row has its status, error and open questions, judged without the code of the graph; that
    status finds it, no other does."""
    async with stores() as store:
        searchable(store)
        prefix = fresh_id()
        for name, (last, status, error, waits) in LAST_ROWS.items():
            await store.release(await begun(store, prefix + name, rows_with(last)))
            [run] = await searchable(store).find_runs(RunQuery(prefix=prefix + name, text=name, limit=1))
            assert (name, run.status, run.error, run.waits) == (name, status, error, waits)
        for status in get_args(RunStatus):
            found = await names(store, RunQuery(prefix=prefix, status=frozenset({status})))
            assert sorted(found) == sorted(name for name, told in LAST_ROWS.items() if told[1] == status)
        both = RunQuery(prefix=prefix, status=frozenset({"failed", "limit_reached"}))
        assert sorted(await names(store, both)) == ["error", "error beside a question", "landed", "limit"]


async def a_run_is_told_with_all_that_a_list_shows(stores: Stores) -> None:
    """Rows, times, the nodes of the newest row that has some, the graph's name, who holds it."""
    async with stores() as store:
        lineage = fresh_id()
        searchable(store)
        lease = await begun(store, lineage, rows_with({}, updated=1007.5))
        [run] = await searchable(store).find_runs(RunQuery(prefix=lineage))
        holder = run.holder
        assert holder
        assert run == RunInfo(
            lineage=lineage, namespace="", status="running", source="step", step=2, rows=3, nodes=("work",), error=None,
            waits=(), began=900.0, updated=1007.5, run_id="run-1", fingerprint="shop-1", graph="shop", holder=holder,
        )  # fmt: skip
        await store.release(lease)
        [left] = await searchable(store).find_runs(RunQuery(prefix=lineage))
        assert left == replace(run, status="unfinished", holder=None)
        lease = await store.acquire(lineage, "run-2")
        again = replace(plain_rows(1, start=3)[0], source="end", marking=_DONE, nodes=(), fingerprint="print-2")
        await write(store, lease, [again])
        [ended] = await searchable(store).find_runs(RunQuery(prefix=lineage))
        assert (ended.status, ended.holder, ended.graph, ended.rows) == ("completed", holder, None, 4)
        assert await searchable(store).find_runs(RunQuery(prefix=lineage, status=frozenset({"running"}))) == []
        await store.delete(lineage)
        assert await searchable(store).find_runs(RunQuery(prefix=lineage)) == []


async def conditions_hold_together(stores: Stores) -> None:
    """Name, node, error and time, each by itself and with others; the bounds of a time are within it."""
    async with stores() as store:
        searchable(store)
        prefix = fresh_id()
        failed = {"source": "error", "note": {"error": "node 'Pay' failed: no card", "type": "CardError"}}
        for number, (name, last) in enumerate({"order-a": failed, "order-b": {}, "order-c": failed}.items()):
            lease = await begun(store, prefix + name, rows_with(last, updated=1000.0 + number))
            await store.release(lease)
        lease = await store.acquire(prefix + "order-b", "run-2")
        await write(store, lease, [replace(plain_rows(1)[0], nodes=("pay", 'say "hi"', 'or "ho'))], "work@2.0")
        for given, expected in (
            ({}, ["order-c", "order-b", "order-a"]),
            ({"text": "-b"}, ["order-b"]),
            ({"text": "ORDER"}, []),
            ({"error": "no CARD"}, ["order-c", "order-a"]),
            ({"error": "carderror"}, ["order-c", "order-a"]),
            ({"error": "work"}, []),
            ({"node": "work"}, ["order-c", "order-b", "order-a"]),
            ({"node": "pay"}, ["order-b"]),
            ({"node": 'say "hi"'}, ["order-b"]),
            ({"node": "pa"}, []),
            ({"node": "hi"}, []),
            ({"node": "ho"}, []),
            ({"since": 1001.0}, ["order-c", "order-b"]),
            ({"until": 1001.0}, ["order-b", "order-a"]),
            ({"since": 1001.0, "until": 1001.0}, ["order-b"]),
            ({"since": 1001.0, "error": "card"}, ["order-c"]),
            ({"node": "pay", "error": "card"}, []),
            ({"node": "work", "status": frozenset({"failed"}), "text": "order-a"}, ["order-a"]),
        ):
            query = RunQuery(prefix=prefix, **given)
            assert (given, await names(store, query)) == (given, expected)


async def frames_of_child_graphs_are_no_runs(stores: Stores) -> None:
    """A lineage has one run for the root and one for each agent's frame; those of child graphs are not listed."""
    async with stores() as store:
        searchable(store)
        lineage = fresh_id()
        lease = await begun(store, lineage, rows_with({}))
        for namespace in ("clerk", "work@1.0", "clerk/work@1.0"):
            await write(store, lease, rows_with({}, updated=2000.0, length=4), namespace)
        found = await searchable(store).find_runs(RunQuery(prefix=lineage))
        assert [(run.namespace, run.rows) for run in found] == [("clerk", 4), ("", 3)]
        other = await begun(store, lineage + "-2", rows_with({}), "work@1.0")
        assert await searchable(store).find_runs(RunQuery(prefix=other.lineage)) == []


async def pages_follow_one_another(stores: Stores) -> None:
    """The last changed come first, of those changed at once the last name; pages leave nothing out and repeat
    nothing, whatever is filtered."""
    rng = random.Random(6)
    async with stores() as store:
        searchable(store)
        prefix = fresh_id()
        made = []
        for name in ("b", "a", "Z", "ä", "a-1", "\U0001f600", "\uffee", "b-2"):
            updated = 1000.0 + rng.randrange(3)
            lease = await begun(store, prefix + name, rows_with({}, updated))
            await write(store, lease, rows_with({"source": "end", "marking": _DONE}, updated), "clerk")
            made += [(updated, prefix + name, ""), (updated, prefix + name, "clerk")]
            await store.release(lease)
        for query, expected in (
            (RunQuery(prefix=prefix, limit=3), made),
            (RunQuery(prefix=prefix, limit=2, status=frozenset({"completed"})), [m for m in made if m[2]]),
            (RunQuery(prefix=prefix, limit=16), made),
        ):
            got: list[RunInfo] = []
            while page := await searchable(store).find_runs(replace(query, after=got[-1].place if got else None)):
                assert len(page) <= query.limit
                got += page
            assert [run.place for run in got] == sorted(expected, reverse=True)
        behind = RunQuery(prefix=prefix, after=sorted(made)[-1][:2])
        assert len(await searchable(store).find_runs(behind)) == 14


async def a_pruned_run_is_judged_by_what_is_left(stores: Stores) -> None:
    """Rows are those that are stored, and the oldest of them says when the run began."""
    async with stores() as store:
        searchable(store)
        lineage = fresh_id()
        await store.release(await begun(store, lineage, rows_with({"nodes": ("work",)}, length=9)))
        await store.prune(Retention(keep_last=1), lineage=lineage)
        [run] = await searchable(store).find_runs(RunQuery(prefix=lineage))
        assert (run.rows, run.began, run.updated, run.nodes) == (1, 1000.0, 1000.0, ("work",))


async def a_question_that_makes_no_sense_is_refused(stores: Stores) -> None:
    """A status that there isn't, a page of nothing, a name that no store takes: typed errors with the mend."""
    async with stores() as store:
        searchable(store)
    for given, kind, said in (
        ({"status": frozenset({"done"})}, UsageError, "no status 'done'"),
        ({"limit": 0}, UsageError, "give 1 or more"),
        ({"text": "a\0b"}, CheckpointError, "NUL"),
    ):

        async def asked(given: dict[str, Any]) -> None:
            RunQuery(**given)

        assert said in await refused(kind, asked(given))


async def rows_of_this_machine_are_not_from_elsewhere(stores: Stores) -> None:
    """A store that only this machine has written to says so, during a run and after it."""
    async with stores() as store:
        lineage = fresh_id()
        searchable(store)
        lease = await begun(store, lineage, rows_with({}))
        assert await searchable(store).written_elsewhere() is None
        await store.release(lease)
        assert await searchable(store).written_elsewhere() is None


CASES: tuple[Callable[[Stores], Awaitable[None]], ...] = (
    the_status_is_that_of_the_newest_row,
    a_run_is_told_with_all_that_a_list_shows,
    conditions_hold_together,
    frames_of_child_graphs_are_no_runs,
    pages_follow_one_another,
    a_pruned_run_is_judged_by_what_is_left,
    a_question_that_makes_no_sense_is_refused,
    rows_of_this_machine_are_not_from_elsewhere,
)
