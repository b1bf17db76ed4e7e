"""The command that says which parts of a graph recorded runs never took: cover."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anyio

from graphagent import Executor, SqlCheckpoints
from graphagent.checkpoint import CheckpointStore
from graphagent.checkpoint.portable import write_lineage
from graphagent.engine.cover import Recorded
from graphagent.errors import UsageError, alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.validation.coverage import SCHEMA, coverage_text, percent
from graphagent.validation.walk import ends_text
from runner.cli.coverage_options import CoverOptions
from runner.cli.opening import known_lineage, stored_runs
from runner.cli.output import Output
from runner.cli.recorded import read_run, read_text
from runner.cli.target import load_graph

ENOUGH, TOO_LITTLE = 0, 1


def cover(options: CoverOptions, output: Output) -> int:
    """Count what was seen, list what was not."""
    if options.lineage and not options.db:
        raise UsageError("--lineage names a run of a store: give --db URL too")
    if not (options.db or options.run or options.merge):
        raise UsageError("no run is named: give --db URL (or set GRAPHAGENT_DB), --run FILE or --merge FILE")
    graph = load_graph(options.target)
    recorded = Recorded(graph)
    others, gone = anyio.run(_gather, options, graph, recorded), 0
    for path in options.merge or ():
        gone += _merged(recorded, path)
    share = percent(recorded.coverages)
    document = {
        "schema": SCHEMA,
        "percent": round(share, 2),
        "lineages": recorded.lineages,
        "steps": recorded.steps,
        "untold": recorded.untold,
        "why": recorded.why,
        "others": others,
        "gone": gone,
        "graphs": [coverage.to_json() for coverage in recorded.coverages],
    }
    output.show(document, "\n".join(_lines(recorded, others, gone)))
    if options.fail_under is not None and share < options.fail_under:
        output.note(f"graphagent: {share:.1f} % is below --fail-under {options.fail_under:g}")
        return TOO_LITTLE
    return ENOUGH


def _lines(recorded: Recorded, others: int, gone: int) -> list[str]:
    lines = [coverage_text(coverage) for coverage in recorded.coverages]
    ended = ends_text(recorded.coverages[0].ended)
    counted = f"{recorded.lineages} lineage(s), {recorded.steps} step(s)" + (f"; ended: {ended}" if ended else "")
    lines.append(f"{percent(recorded.coverages):.1f} % of all by {counted}")
    if recorded.untold:
        lines.append(f"of {recorded.untold} step(s) only the nodes could be counted:")
        lines += [f"  {reason}" for reason in recorded.why]
        lines += ["  ..."] if recorded.untold > len(recorded.why) else []
    lines += [f"{others} lineage(s) of other graphs were left out"] if others else []
    lines += [f"{gone} part(s) in what was merged are not in this graph (any more)"] if gone else []
    return lines


async def _gather(options: CoverOptions, graph: CompiledGraph, recorded: Recorded) -> int:
    """Count the stored and the exported runs; returns how many lineages of other graphs the store has."""
    others = 0
    if options.db:
        async with stored_runs(options) as store:
            chosen = [await known_lineage(store, lineage) for lineage in options.lineage or ()]
            if not options.lineage:
                every = await store.lineages()
                chosen = [lineage for lineage in every if await _is_of(store, lineage, graph)]
                others = len(every) - len(chosen)
            await Executor(graph, store).cover(chosen, recorded)
    for path in options.run or ():
        document = read_run(path)
        if document.get("graph") != graph.name:
            raise UsageError(f"'{path}' is a run of graph '{document.get('graph')}', not of '{graph.name}'")
        async with SqlCheckpoints("sqlite://") as store:
            await Executor(graph, store).cover([await write_lineage(store, document)], recorded)
    return others


async def _is_of(store: CheckpointStore, lineage: str, graph: CompiledGraph) -> bool:
    """True if the graph, or another version of it, has written a lineage."""
    for namespace in await store.namespaces(lineage):
        for header in await store.history(lineage, namespace, limit=1):
            if header.fingerprint == graph.fingerprint:
                return True
            written_by = await store.graph(header.fingerprint)
            if written_by is not None and "@" not in namespace and written_by.get("name") == graph.name:
                return True
    return False


def _merged(recorded: Recorded, path: str) -> int:
    """Add a coverage that was printed before; returns how many of its parts are gone."""
    try:
        content = json.loads(read_text(path))
    except ValueError as error:
        raise UsageError(f"'{path}' is not JSON: {error}") from error
    parts = content.get("graphs") if isinstance(content, dict) else None
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise UsageError(f"'{path}' is no coverage: 'graphagent cover --json' prints one")
    by_name = {coverage.graph: coverage for coverage in recorded.coverages}
    names = [str(part.get("graph")) for part in parts]
    if not set(names) & set(by_name):
        raise UsageError(f"'{path}' covers other graphs: {alternatives(next(iter(by_name)), names)}")
    _count_more(recorded, content)
    return sum(by_name[name].add(part) for name, part in zip(names, parts, strict=True) if name in by_name)


def _count_more(recorded: Recorded, content: Mapping[str, Any]) -> None:
    for name in ("lineages", "steps", "untold"):
        setattr(recorded, name, getattr(recorded, name) + int(content.get(name, 0)))
