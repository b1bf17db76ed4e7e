"""Commands that explain: why a node ran, who wrote a field, how two runs differ, what a model was asked."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from graphagent.debug.compare import Comparison, compare_runs
from graphagent.debug.provenance import provenance
from graphagent.engine.explain import Cause, causes
from graphagent.engine.timetravel import changes_between
from graphagent.errors import CheckpointNotFound, UsageError, alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.ids import parse_checkpoint_id
from graphagent.validation.coverage import label_text
from runner.cli.output import short
from runner.cli.stored import change_data, change_lines
from runner.cli.travel import cause_data, cause_text
from runner.debugger.desk import Desk, node_of
from runner.debugger.show import named
from runner.debugger.table import Reply, command, one_of
from runner.studio.requests import Explained, explained

_PARTED = {
    "nodes": "other nodes ran",
    "state": "the same nodes made another state of it",
    "route": "they went another way from the same state",
    "length": "one of them ends here",
}


@command("why", "y", usage="[NODE|ACTIVATION]", takes="node")
async def why(desk: Desk, arguments: list[str]) -> Reply:
    """Why a node ran, or is about to: the chain of triggers back to the input."""
    moment = desk.moment
    wanted = arguments[0] if arguments else ""
    if not wanted:
        if not moment.coming and not moment.ran:
            raise UsageError("say which: why NODE, or why NODE#STEP")
        wanted = moment.coming[0].activation if moment.coming else moment.ran[0]
    name, due = await desk.activation(wanted)
    graph = await desk.graph()
    found = await causes(desk.executor.store, graph, desk.session.lineage, due.namespace, name)
    document = [{**cause_data(one), "labels": _labels(graph, one)} for one in found]
    return Reply(document, "\n".join(cause_text(one) + _routed(_labels(graph, one)) for one in found))


@command("who", usage="FIELD", takes="field")
async def who(desk: Desk, arguments: list[str]) -> Reply:
    """Which activation wrote a field, part by part."""
    name = one_of(arguments, "who FIELD")
    graph = await desk.graph()
    if name not in graph.schema.fields:
        raise UsageError(f"there is no field '{name}': {alternatives(name, graph.schema.names)}")
    parts = await provenance(desk.executor, desk.moment, name)
    secret = name in graph.schema.secret
    document = [
        {"what": one.what, "checkpoint": one.checkpoint, "by": one.activation, "value": None if secret else one.value}
        for one in parts
    ]
    width = max((len(one.what) for one in parts), default=0)
    text = [
        f"  {one.what:<{width}}  by {one.activation}  ({one.checkpoint})  {'' if secret else short(one.value)}".rstrip()
        for one in parts
    ]
    return Reply(document, "\n".join(text) or f"'{name}' is not set: nobody has written it")


@command("diff", "d", usage="[A] [B]", takes="checkpoint")
async def diff(desk: Desk, arguments: list[str]) -> Reply:
    """What differs between two checkpoints; with one, between it and here; without, between the one before and here."""
    moment = desk.moment
    if len(arguments) > 1:
        before, after = _full(desk, arguments[0]), _full(desk, arguments[1])
    elif arguments:
        before, after = _full(desk, arguments[0]), moment.id
    elif moment.parent is not None:
        before, after = _full(desk, str(moment.parent)), moment.id
    else:
        raise UsageError("there is no checkpoint before this one: diff A B")
    old, new = await _state(desk, before), await _state(desk, after)
    changes = changes_between((await desk.graph()).schema.names, old, new)
    document = {name: change_data(change) for name, change in changes.items()}
    lines = [line for name, change in changes.items() for line in change_lines(name, change)]
    return Reply(
        {"before": before, "after": after, "changes": document}, "\n".join(lines) if lines else "no field differs"
    )


@command("compare", "cmp", usage="LINEAGE")
async def compare(desk: Desk, arguments: list[str]) -> Reply:
    """Go through this run and another step by step: where do they part, and how do they differ there?"""
    other = one_of(arguments, "compare LINEAGE")
    found = await compare_runs(desk.executor, desk.session.lineage, other)
    return Reply(_compared_data(found), _compared(found))


@command("requests", "rq", usage="[NODE]", takes="node")
async def requests(desk: Desk, arguments: list[str]) -> Reply:
    """What a model was asked by a node, message by message, with where each comes from, and what came of it."""
    wanted = arguments[0] if arguments else next((one.node for one in desk.moment.coming), "")
    if not wanted and desk.moment.ran:
        wanted = desk.moment.ran[0]
    name, due = await desk.activation(wanted)
    coming = next(one for one in due.coming if one.activation == name)
    found = await explained(
        desk.executor,
        desk.session.lineage,
        due.id,
        coming.node,
        namespace=due.namespace,
        branch=coming.branch,
        around=desk.services,
    )
    return Reply(_request_data(found), _request(found))


def _labels(graph: CompiledGraph, cause: Cause) -> list[str]:
    """The labels by which a route of the trigger leads to the node; none where no route does."""
    if len(cause.triggers) != 1:
        return []
    name = node_of(cause.triggers[0])
    found = []
    for route in graph.routes:
        if route.source == name:
            found += [label_text(label) for label, target in (route.labels or {}).items() if target == cause.node]
            found += ["otherwise"] if route.default == cause.node else []
    return found


def _routed(labels: list[str]) -> str:
    return f", by its route: {' or '.join(labels)}" if labels else ""


def _full(desk: Desk, text: str) -> str:
    return f"{desk.moment.id.rpartition(':')[0]}:{text}" if text.isdigit() else text


async def _state(desk: Desk, checkpoint: str) -> dict[str, Any]:
    found = parse_checkpoint_id(checkpoint, desk.session.lineage)
    if found is None:
        raise CheckpointNotFound(f"'{checkpoint}' is no checkpoint of '{desk.session.lineage}': 'history' lists them")
    return await desk.session.stored.values(*found)


def _compared_data(found: Comparison) -> dict[str, Any]:
    parting = found.parting
    return {
        "a": found.a,
        "b": found.b,
        "shared": found.shared,
        "steps": [asdict(one) for one in found.steps],
        "parting": None
        if parting is None
        else {
            "index": parting.index,
            "why": parting.why,
            "changes": {name: change_data(change) for name, change in parting.changes.items()},
            "labels": parting.labels,
        },
    }


def _compared(found: Comparison) -> str:
    shared = f"they have {found.shared} checkpoint(s) in common; " if found.shared else ""
    if found.parting is None:
        return f"{shared}{found.a} and {found.b} are alike, step by step"
    parting = found.parting
    at = found.steps[parting.index]
    lines = [
        f"* {shared}{parting.index} step(s) are alike, then {_PARTED[parting.why]}",
        f"  {at.a or found.a}  {named(at.nodes_a) or 'nothing more'}",
        f"  {at.b or found.b}  {named(at.nodes_b) or 'nothing more'}",
    ]
    lines += [f"  route of '{node}': {one} here, {other} there" for node, (one, other) in parting.labels.items()]
    lines += [line for name, change in parting.changes.items() for line in change_lines(name, change)]
    return "\n".join(lines)


def _request_data(found: Explained) -> dict[str, Any]:
    return {
        "messages": [asdict(one) for one in found.rows],
        "parts": {name: asdict(part) for name, part in found.parts.items()},
        "answer": None if found.answer is None else asdict(found.answer),
        "calls": [asdict(one) for one in found.calls],
    }


def _request(found: Explained) -> str:
    lines = []
    for one in found.rows:
        text = " ".join(one.text.split())
        lines.append(f"  {one.place:>3} {one.role:<9} {short(text)}")
        lines.append(f"      from {one.origin}: {one.reason}")
    if found.answer is not None:
        lines.append(f"  answer: {short(' '.join(found.answer.text.split()))}")
    lines += [f"  called {one.name}({short(one.arguments)}): {short(one.result)}" for one in found.calls]
    doubts = [f"  ({name}: {part.known})" for name, part in found.parts.items() if part.known == "unknown"]
    return "\n".join([*lines, *doubts]) or "no model was asked there"
