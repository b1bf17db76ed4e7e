"""Whether a run that another version of the graph has stored may go on in this one: the rules of `graphagent compat`,
asked before anything runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from graphagent.checkpoint.record import Loaded
from graphagent.checkpoint.store import CheckpointStore
from graphagent.engine.called import SetupOf, called_frames
from graphagent.engine.due import child_of, origins, parts, places
from graphagent.engine.frame import Setup
from graphagent.engine.restore import load_row
from graphagent.errors import IncompatibleCheckpoint, UsageError
from graphagent.graph.compiled import CompiledGraph
from graphagent.unset import UNSET

if TYPE_CHECKING:
    from graphagent.validation.in_flight import Judge
    from graphagent.validation.report import Diagnostic
    from graphagent.validation.standing import Standing
    from graphagent.validation.version import Version

Find = Callable[[str], Awaitable[Mapping[str, Any] | None]]
MOST_STATES, MOST_SECONDS = 20_000, 2.0
"""Where the search for bad ends gives up, since a resume waits for it; it is a warning then."""


async def admit(setup: Setup, setup_of: SetupOf, store: CheckpointStore, loaded: Loaded) -> tuple[str, ...]:
    """Raise IncompatibleCheckpoint if a stored run can't go on in this graph, or an agent that a tool of it has in
    flight in its own; returns warnings.

    A row that this graph wrote, and the end of a run, are admitted without a look.
    """
    warnings = await _admitted(setup, setup_of, store, loaded)
    async for inner, inside in called_frames(setup, setup_of, store, loaded):
        warnings += await admit(inner, setup_of, store, inside)
    return warnings


async def _admitted(setup: Setup, setup_of: SetupOf, store: CheckpointStore, loaded: Loaded) -> tuple[str, ...]:
    row = loaded.row
    if row.fingerprint == setup.graph.fingerprint or row.source == "end":
        return ()
    judge = await _judge(setup, store, row.fingerprint)
    verdict = judge.judge(await stored_standing(setup, setup_of, store, loaded))
    errors = [finding for finding in verdict.findings if finding.severity == "error"]
    if errors:
        raise _refusal(setup.graph, loaded, judge.old, errors)
    warnings = [f"{finding.code} {finding.message}" for finding in verdict.findings if finding.severity == "warning"]
    if not verdict.complete:
        warnings.append("whether the run can end well in this version of the graph was not decided: it is too large")
    return tuple(warnings)


async def _judge(setup: Setup, store: CheckpointStore, fingerprint: str) -> Judge:
    """The judge of runs of one earlier version, kept: after a deploy many runs ask the same."""
    from graphagent.validation.facts import Bounds
    from graphagent.validation.in_flight import Judge
    from graphagent.validation.version import Version

    known: Judge | None = setup.judges.get(fingerprint)
    if known is None:
        old = await old_graph(store, fingerprint)
        known = Judge(Version.of(setup.graph), old, bounds=Bounds(MOST_STATES, MOST_SECONDS))
        setup.judges[fingerprint] = known
    return known


async def old_graph(store: CheckpointStore, fingerprint: str) -> Version | None:
    """The graph that wrote rows with a fingerprint, if the store knows it and its document can be read."""
    from graphagent.validation.version import Version

    find = getattr(store, "graph", None)
    doc = None if find is None else await _with_children(find, fingerprint)
    with suppress(UsageError):
        return None if doc is None else Version.read(doc)
    return None


async def _with_children(find: Find, fingerprint: str) -> Mapping[str, Any] | None:
    """A stored document with those of its child graphs in it."""
    doc = await find(fingerprint)
    if doc is None:
        return None
    nodes = {name: dict(spec) for name, spec in doc["nodes"].items()}
    for spec in nodes.values():
        if "graph" in spec and "child" not in spec:
            spec["child"] = await _with_children(find, spec["graph"])
    return {**doc, "nodes": nodes}


def _refusal(
    graph: CompiledGraph, loaded: Loaded, old: Version | None, errors: list[Diagnostic]
) -> IncompatibleCheckpoint:
    reasons = "; ".join(f"{finding.message} ({finding.code})" for finding in errors)
    mends = " or ".join(dict.fromkeys(finding.fix for finding in errors if finding.fix))
    label = old.label if old is not None else f"'{loaded.row.fingerprint}'"
    where = f"child '{loaded.namespace}' of " if loaded.namespace else ""
    return IncompatibleCheckpoint(
        f"{where}lineage '{loaded.lineage}' was stored by {label} and can't go on in graph '{graph.name}' "
        f"({graph.fingerprint}): {reasons}; resume it with the graph that wrote it, or {mends}",
        changes=tuple(f"{finding.code} {finding.message}" for finding in errors),
    )


async def stored_standing(setup: Setup, setup_of: SetupOf, store: CheckpointStore, loaded: Loaded) -> Standing:
    """Where a stored run stands, with the child graphs that are in flight in it.

    Its state has been read in the types of the graph already. Raises IncompatibleCheckpoint if that of a child can't.
    """
    from graphagent.validation.standing import OpenGroup, Pending, Standing, Token, Waiting

    row = loaded.row
    plain, due = parts(row)
    joins = {
        name: Waiting({source: len(queue) for source, queue in arrived}, fired)
        for name, (arrived, fired) in plain.get("j", {}).items()
    }
    groups = tuple(
        OpenGroup(number, count, tuple((node, target) for node, target in exits))
        for number, count, exits, _, _ in plain.get("g", ())
    )
    asked = [q for q in row.questions if q.kind == "ask" and q.frame is None]
    return Standing(
        tuple(Token(one.node, one.group) for one in due),
        joins,
        groups,
        bool(plain.get("e")),
        tuple(Pending(q.node, q.key, q.schema) for q in asked),
        fields=dict.fromkeys(loaded.values, UNSET),
        decoded=True,
        decided=tuple([pair async for pair in _decided(store, loaded)]),
        frames=tuple(await _frames(setup, setup_of, store, loaded)),
    )


async def _decided(store: CheckpointStore, loaded: Loaded) -> Any:
    """What finished activations of the open step chose by a jump."""
    row = loaded.row
    bases: Iterable[int] = {base for base, _ in origins(row, parts(row)[1])}
    for base in sorted(bases):
        kept = await store.activations(loaded.lineage, loaded.namespace, base, None)
        for done in kept.values():
            for target in (*(done.goto or ()), *(node for node, _ in done.sends or ())):
                yield done.node, target


async def _frames(
    setup: Setup, setup_of: SetupOf, store: CheckpointStore, loaded: Loaded
) -> list[tuple[str, Standing]]:
    """The child graphs in flight, by the (old) id of their node."""
    spaces = set(await store.namespaces(loaded.lineage))
    found = []
    for place in places(loaded):
        child = child_of(setup.graph, place.node)
        if place.space not in spaces or child is None:
            continue
        inside = await load_row(store, setup_of(child), loaded.lineage, place.space)
        if inside is not None and inside.row.source != "end":
            found.append((place.node, await stored_standing(setup_of(child), setup_of, store, inside)))
    return found
