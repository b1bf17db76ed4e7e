"""Commands that look at where the run stands."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from graphagent.debug.effects import EffectSeen, effects_of
from graphagent.debug.expression import Expression
from graphagent.debug.joins import JoinProgress, joins_of
from graphagent.debug.writes import WrittenPart, writes_of
from graphagent.graph.draw import Line, lines
from runner.cli.output import columns, compact, fields, jsonable, short
from runner.cli.stored import header_data, interrupt_data, interrupt_text
from runner.debugger.desk import Desk
from runner.debugger.show import place, stopped
from runner.debugger.table import Reply, command
from runner.sources import sources_of

HISTORY = 20
"""Checkpoints that are listed unless another number is said."""


@command("where", "w", "info")
async def where(desk: Desk, arguments: list[str]) -> Reply:
    """Where the run stands: the frames from the root down, what ran, what comes next, what it waits for."""
    reply = await stopped(desk, desk.last) if desk.last is not None else Reply({}, "")
    spaces = await desk.executor.store.namespaces(desk.session.lineage)
    here = desk.moment.namespace
    document = {**reply.document, "frames": spaces, "breakpoints": len(list(desk.session.breakpoints))}
    frames = [f"  {'>' if space == here else ' '} {space or '(root)'}" for space in spaces]
    how = "held by this debugger" if desk.session.live else "stored"
    text = f"lineage {desk.session.lineage}, {how}\n{reply.text}\n  frames:\n" + "\n".join(frames)
    return Reply(document, text)


@command("print", "p", "pp", usage="EXPR", takes="field")
async def print_(desk: Desk, arguments: list[str]) -> Reply:
    """The value of an expression over the state: `p state.severity`, `p len(state.findings)`, `p state.items[0]`. The
    name of a field alone will do."""
    text = " ".join(arguments)
    if not text:
        return await state(desk, arguments)
    moment = desk.moment
    view = await desk.session.state()
    names: dict[str, Any] = {"state": view, "step": moment.step, "error": moment.error}
    names["node"] = moment.coming[0].node if len(moment.coming) == 1 else ""
    names |= {name: value for name, value in (await desk.values()).items() if name not in names}
    value = Expression(text).value(names)
    shown = value if isinstance(value, str) else compact(value)
    return Reply(jsonable(value), shown)


@command("state", "st", usage="[FIELD]", takes="field")
async def state(desk: Desk, arguments: list[str]) -> Reply:
    """The state at this point, or one field of it in full."""
    values = await desk.values()
    if not arguments:
        return Reply({"checkpoint": desk.moment.id, "state": values}, fields(values))
    declared = (await desk.graph()).schema.fields
    if arguments[0] not in values and arguments[0] in declared:
        return Reply(None, f"'{arguments[0]}' is not set")
    return await print_(desk, arguments)


@command("list", "l", usage="[NODE]", takes="node")
async def list_(desk: Desk, arguments: list[str]) -> Reply:
    """The graph around a node, or around those that come next: what leads there, and where it goes on."""
    graph = await desk.graph()
    moment = desk.moment
    names = [await desk.node(arguments[0])] if arguments else [one.node for one in moment.coming] or list(moment.ran)
    document, text = [], []
    for name in dict.fromkeys(names):
        coming = [line for line in lines(graph) if line.target == name]
        going = [line for line in lines(graph) if line.source == name]
        text += [f"  {line.source} {_edge(line)}> [{name}]" for line in coming]
        text += [f"  [{name}] {_edge(line)}> {line.target}" for line in going]
        document.append({"node": name, "from": [one._asdict() for one in coming], "to": [o._asdict() for o in going]})
    return Reply(document, "\n".join(text) or "nothing is left to run: give a node")


@command("source", "src", usage="NODE", takes="node")
async def source(desk: Desk, arguments: list[str]) -> Reply:
    """The code of a node and of its routers, with file and line."""
    name = await desk.node(arguments[0] if arguments else next((one.node for one in desk.moment.coming), ""))
    graph = await desk.graph()
    parts = list(sources_of(graph, name))
    text = "\n".join(f"# {one.what}  {one.place}\n{one.text}" for one in parts)
    return Reply([one._asdict() for one in parts], text)


@command("joins", "j")
async def joins(desk: Desk, arguments: list[str]) -> Reply:
    """The joins of the graph: who has arrived, who is missing."""
    found = await joins_of(desk.executor, desk.moment)
    document = list(map(asdict, found))
    return Reply(document, "\n".join(map(_join, found)) or "the graph has no joins")


@command("writes", "wr", usage="[NODE]", takes="node")
async def writes(desk: Desk, arguments: list[str]) -> Reply:
    """What each node of the last step wrote."""
    found = await writes_of(desk.executor, desk.moment)
    wanted = arguments[0] if arguments else None
    document, text = [], []
    for one in found:
        if wanted is not None and wanted not in (one.node, one.activation):
            continue
        parts = {name: {"kind": part.kind, "value": part.value} for name, part in one.fields.items()}
        document.append({"activation": one.activation, "node": one.node, "fields": parts})
        told = [f"    {name} {_part(part)}" for name, part in one.fields.items()]
        text += [f"  {one.activation}{'' if told else '  wrote nothing'}", *told]
    return Reply(document, "\n".join(text) or "no step ended here: 'back' and 'goto' go to one that did")


@command("effects", "ef")
async def effects(desk: Desk, arguments: list[str]) -> Reply:
    """The side effects of the activations that start from here, as the ledger has them."""
    found = await effects_of(desk.executor, desk.moment)
    document = list(map(asdict, found))
    text = [f"  {one.activation}  {one.name}  {_outcome(one)}" for one in found]
    return Reply(document, "\n".join(text) or "no effects are recorded here")


@command("history", "h", usage="[N]")
async def history(desk: Desk, arguments: list[str]) -> Reply:
    """The newest checkpoints of this frame, with a mark where the cursor is."""
    count = int(arguments[0]) if arguments and arguments[0].isdigit() else HISTORY
    moment = desk.moment
    headers = (await desk.session.timeline(moment.namespace))[-count:]
    rows = [
        (">" if one.seq == moment.seq else "", one.step, one.id, one.source, ", ".join(one.nodes[:6]))
        for one in headers
    ]
    return Reply([header_data(one) for one in headers], columns(("", "STEP", "CHECKPOINT", "SOURCE", "NODES"), rows))


@command("interrupts", "i")
async def interrupts(desk: Desk, arguments: list[str]) -> Reply:
    """What the run waits for."""
    waits = desk.moment.waits
    return Reply(
        [interrupt_data(one) for one in waits], "\n".join(map(interrupt_text, waits)) or "it waits for nothing"
    )


@command("moment", usage="")
async def moment(desk: Desk, arguments: list[str]) -> Reply:
    """This point of the run as data."""
    return Reply(place(desk.moment), compact(place(desk.moment)))


def _edge(line: Line) -> str:
    """The shaft of the arrow: joins, jumps and errors by their kind, routes by their label."""
    told = line.label if line.kind == "route" else "" if line.kind == "edge" else f"{line.kind} {line.label}".strip()
    return f"--({told})--" if told else "--"


def _join(one: JoinProgress) -> str:
    sign = "!" if one.starved else "x" if one.fired else " "
    have = ", ".join(one.have) or "none"
    missing = ", ".join(one.missing) or "none"
    told = "  it can't fire any more" if one.starved else ""
    return f"  {sign} {one.id} into '{one.target}' ({one.mode}): has {have}; misses {missing}{told}"


def _outcome(one: EffectSeen) -> str:
    if not one.committed:
        return "begun, and its outcome is unknown"
    return f"done, and its result was not kept: {one.lost}" if one.lost else short(one.result)


def _part(part: WrittenPart) -> str:
    match part.kind:
        case "items":
            return "+ " + short(part.value)
        case "keys":
            return "| " + short(part.value)
        case "unknown":
            return "(one of several writers, and the row doesn't say what of it is its own)"
        case _:
            return "= " + short(part.value)
