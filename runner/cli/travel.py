"""Commands that go back in stored runs: explain, replay, fork, edit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from graphagent import Executor
from graphagent.checkpoint.record import Header
from graphagent.engine.explain import Cause
from graphagent.engine.export import replay_exported
from graphagent.engine.replay import ReplayReport
from graphagent.errors import UsageError
from runner.cli.opening import known_lineage, stored_graph
from runner.cli.options import EditOptions, ExplainOptions, ForkOptions, ReplayOptions
from runner.cli.output import Output
from runner.cli.recorded import graph_of_run, read_run
from runner.cli.stored import header_data
from runner.cli.values import fitting, pairs


def explain(options: ExplainOptions, output: Output) -> int:
    """Say why a node ran."""
    causes = anyio.run(_explain, options)
    document = list(map(cause_data, causes))
    output.show({"lineage": options.lineage, "causes": document}, "\n".join(map(cause_text, causes)))
    return 0


def replay(options: ReplayOptions, output: Output) -> int:
    """Check that a graph still goes the way of a run; the exit status is 1 if it doesn't."""
    report = _from_file(options) if _is_file(options.lineage) else anyio.run(_replay, options)
    found = report.divergence
    names = ("checkpoint", "nodes", "recorded", "replayed", "message")
    document = {
        "lineage": report.lineage,
        "ok": report.ok,
        "steps": report.steps,
        "skipped": report.skipped,
        "divergence": None if found is None else {name: getattr(found, name) for name in names},
    }
    skipped = f", {report.skipped} could not be checked" if report.skipped else ""
    end = "no divergence" if found is None else f"diverges at {found.checkpoint}: {found.message}"
    output.show(document, f"{report.steps} step(s) checked{skipped}: {end}")
    return 0 if report.ok else 1


def fork(options: ForkOptions, output: Output) -> int:
    """Copy a point of a run."""
    _show_row(anyio.run(_fork, options), "forked", output)
    return 0


def edit(options: EditOptions, output: Output) -> int:
    """Change the state of a stored run."""
    if not options.assign:
        raise UsageError("nothing is changed: give --set FIELD=VALUE")
    _show_row(anyio.run(_edit, options), "edited", output)
    return 0


def _show_row(header: Header, what: str, output: Output) -> None:
    text = f"{what}: checkpoint {header.id} is the newest of '{header.lineage}'; 'graphagent resume' goes on from it"
    output.show(header_data(header), text)


async def _explain(options: ExplainOptions) -> list[Cause]:
    async with stored_graph(options) as executor:
        return await executor.explain(options.lineage, options.activation, namespace=options.namespace)


def _is_file(lineage: str) -> bool:
    return lineage.endswith(".json") and Path(lineage).is_file()


def _from_file(options: ReplayOptions) -> ReplayReport:
    """The report on an exported run, whose frames are all gone through."""
    document = read_run(options.lineage)
    return anyio.run(replay_exported, graph_of_run(document, options.lineage, options.graph), document)


async def _replay(options: ReplayOptions) -> ReplayReport:
    async with stored_graph(options) as executor:
        return await executor.replay(options.lineage, namespace=options.namespace)


async def _fork(options: ForkOptions) -> Header:
    async with stored_graph(options) as executor:
        await known_lineage(executor.store, options.lineage)
        return await executor.fork(
            options.lineage,
            options.checkpoint,
            new_lineage=options.new_lineage,
            keep_effects=options.keep_effects,
        )


async def _edit(options: EditOptions) -> Header:
    async with stored_graph(options) as executor:
        await known_lineage(executor.store, options.lineage)
        patch = _patch(executor, options)
        return await executor.edit(options.lineage, options.checkpoint, patch, as_node=options.as_node)


def _patch(executor: Executor, options: EditOptions) -> dict[str, Any]:
    """The values of `--set`, each as its field takes it; a field that isn't declared is left to the executor."""
    patch: dict[str, Any] = {}
    for name, text in pairs(options.assign or (), "--set"):
        field = executor.graph.schema.fields.get(name)
        if field is None:
            patch[name] = text
        else:
            patch[name] = fitting(text, field.validate_value if options.as_node is None else field.validate)
    return patch


def cause_data(cause: Cause) -> dict[str, Any]:
    """Why an activation ran, as JSON output has it."""
    names = ("activation", "node", "step", "checkpoint", "triggers", "join")
    return {name: getattr(cause, name) for name in names}


def cause_text(cause: Cause) -> str:
    """Why an activation ran, as a line of text."""
    if not cause.triggers:
        return f"  {cause.activation}  was started by the input ({cause.checkpoint})"
    how = f"join '{cause.join}' was filled by" if cause.join is not None else "was triggered by"
    return f"  {cause.activation}  {how} {', '.join(cause.triggers)} ({cause.checkpoint})"
