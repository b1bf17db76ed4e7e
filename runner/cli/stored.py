"""Commands that look at stored runs: history, state, diff, interrupts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import anyio

from graphagent.checkpoint.record import Header
from graphagent.engine.result import Interrupt, public
from graphagent.engine.timetravel import Change, changes_between
from graphagent.graph.view import values_of
from graphagent.ids import checkpoint_id
from graphagent.unset import UNSET
from runner.cli.opening import known_lineage, load_plain, load_plain_id, stored_graph, stored_runs
from runner.cli.options import DiffOptions, HistoryOptions, InterruptsOptions, StateOptions
from runner.cli.output import Output, columns, compact, declared, fields, short


def history(options: HistoryOptions, output: Output) -> int:
    """List checkpoints, or lineages."""
    if options.lineage is None:
        names = anyio.run(_lineages, options)
        output.show({"lineages": names}, "\n".join(names) if names else "nothing is stored here")
        return 0
    headers, spaces = anyio.run(_history, options)
    document = {
        "lineage": options.lineage,
        "namespace": options.namespace,
        "namespaces": spaces,
        "checkpoints": [header_data(header) for header in headers],
    }
    rows = [
        (h.step, h.id, h.source, ", ".join(h.nodes), _time(h), "pinned" if h.pinned else _follows(h)) for h in headers
    ]
    text = columns(("STEP", "CHECKPOINT", "SOURCE", "NODES", "TIME", ""), rows)
    children = [space for space in spaces if space]
    if children and not options.namespace:
        text += f"\nchild graphs (--namespace): {', '.join(children)}"
    output.show(document, text)
    return 0


def state(options: StateOptions, output: Output) -> int:
    """Show the state at a checkpoint."""
    place, values = anyio.run(_state, options)
    output.show({"checkpoint": place, "typed": options.graph is not None, "state": values}, fields(values))
    return 0


def diff(options: DiffOptions, output: Output) -> int:
    """Show the fields that differ."""
    changes = anyio.run(_diff, options)
    lines = [line for name, change in changes.items() for line in change_lines(name, change)]
    document = {name: change_data(change) for name, change in changes.items()}
    shown = {"before": options.before, "after": options.after, "changes": document}
    output.show(shown, "\n".join(lines) if lines else "no field differs")
    return 0


def interrupts(options: InterruptsOptions, output: Output) -> int:
    """Show what a run waits for."""
    asked = anyio.run(_interrupts, options)
    text = "\n".join(map(interrupt_text, asked)) if asked else f"'{options.lineage}' waits for nothing"
    output.show({"lineage": options.lineage, "interrupts": [interrupt_data(one) for one in asked]}, text)
    return 0


async def _lineages(options: HistoryOptions) -> list[str]:
    async with stored_runs(options) as store:
        return await store.lineages(limit=options.limit)


async def _history(options: HistoryOptions) -> tuple[list[Header], list[str]]:
    async with stored_runs(options) as store:
        lineage = await known_lineage(store, str(options.lineage))
        headers = await store.history(lineage, options.namespace, limit=options.limit)
        if not headers:
            await load_plain(store, lineage, None, options.namespace)  # says which children there are
        return headers, await store.namespaces(lineage)


async def _state(options: StateOptions) -> tuple[str, Mapping[str, Any]]:
    if options.graph is None:
        async with stored_runs(options) as store:
            loaded = await load_plain(store, options.lineage, options.checkpoint, options.namespace)
            return checkpoint_id(loaded.lineage, loaded.namespace, loaded.row.seq), loaded.values
    async with stored_graph(options) as executor:
        loaded = await load_plain(executor.store, options.lineage, options.checkpoint, options.namespace)
        view = await executor.state(options.lineage, loaded.row.seq, namespace=loaded.namespace)
        return checkpoint_id(loaded.lineage, loaded.namespace, loaded.row.seq), declared(
            executor.graph.schema.names, values_of(view)
        )


async def _diff(options: DiffOptions) -> dict[str, Change]:
    if options.graph is not None:
        async with stored_graph(options) as executor:
            return await executor.diff(options.before, options.after)
    async with stored_runs(options) as store:
        before, after = [(await load_plain_id(store, text)).values for text in (options.before, options.after)]
        return changes_between(list({**before, **after}), before, after)


async def _interrupts(options: InterruptsOptions) -> list[Interrupt]:
    async with stored_runs(options) as store:
        loaded = await load_plain(store, options.lineage, None, options.namespace)
        return [public(question) for question in loaded.row.questions if not question.answered]


def header_data(header: Header) -> dict[str, Any]:
    """A checkpoint as JSON output has it."""
    return {
        "id": header.id,
        "parent": header.parent_id,
        "source": header.source,
        "step": header.step,
        "nodes": header.nodes,
        "created_at": datetime.fromtimestamp(header.created_at, UTC),
        "run_id": header.run_id,
        "pinned": header.pinned,
    }


def interrupt_data(asked: Interrupt) -> dict[str, Any]:
    """An interrupt as JSON output has it."""
    names = ("id", "key", "node", "prompt", "schema", "kind", "path")
    return {name: getattr(asked, name) for name in names}


def interrupt_text(asked: Interrupt) -> str:
    """An interrupt as text: key, id, node, what it asks and what it takes."""
    if asked.kind != "ask":
        return f"  {asked.key}  ({asked.id})  stopped here; resume to go on"
    prompt = asked.prompt if isinstance(asked.prompt, str) else short(asked.prompt)
    return f"  {asked.key}  ({asked.id}) at node '{asked.node}'\n    asks: {prompt}\n    takes: {wanted(asked)}"


def wanted(asked: Interrupt) -> str:
    """What an answer may be, in a few words: choices, the name of a JSON type, or the schema itself."""
    schema = asked.schema
    return _wanted(schema) if isinstance(schema, dict) else "anything"


def _wanted(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return "|".join(value if isinstance(value, str) else compact(value) for value in schema["enum"])
    if "anyOf" in schema:
        return "|".join(dict.fromkeys(map(_wanted, schema["anyOf"])))
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if set(schema) <= {"type", "title", "description"}:
        return str(schema.get("type", "anything"))
    return compact(schema)


def _time(header: Header) -> str:
    return datetime.fromtimestamp(header.created_at).astimezone().isoformat(" ", "seconds")


def _follows(header: Header) -> str:
    usual = header.parent is None or header.parent == header.seq - 1
    return "" if usual else f"follows {header.parent_id}"


def change_data(change: Change) -> dict[str, Any]:
    """How a field differs, as JSON output has it."""
    data = {name: value for name, value in (("before", change.before), ("after", change.after)) if value is not UNSET}
    return data if change.added is None else {**data, "added": change.added}


def change_lines(name: str, change: Change) -> Sequence[str]:
    """How a field differs, in lines of text."""
    if change.added is not None:
        return [f"  {name}", *(f"    + {short(item)}" for item in change.added)]
    before, after = [("unset" if value is UNSET else short(value)) for value in (change.before, change.after)]
    return [f"  {name}", f"    - {before}", f"    + {after}"]
