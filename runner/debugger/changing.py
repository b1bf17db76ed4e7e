"""Commands that change something: answers, edits, forks; and the one that tries a node out, which changes nothing."""

from __future__ import annotations

from typing import Any

from graphagent.debug.alone import Alone, Effects, run_alone
from graphagent.errors import UsageError, alternatives
from graphagent.graph.compiled import CompiledGraph
from runner.cli.output import short
from runner.cli.values import answer_value, fitting, pairs
from runner.debugger.desk import Desk
from runner.debugger.show import stopped
from runner.debugger.table import Reply, command


@command("answer", "a", usage="KEY VALUE", takes="key")
async def answer(desk: Desk, arguments: list[str]) -> Reply:
    """Answer a question of the run, by its key or id; the run takes it when it goes on. The value is JSON if it parses
    and fits, else text. With one question pending the key may be left out."""
    waits = [one for one in desk.moment.waits if one.kind == "ask"]
    keys = [name for one in waits for name in (one.key, one.id)]
    if len(arguments) == 1 and len(waits) == 1:
        arguments = [waits[0].key, *arguments]
    if len(arguments) < 2:
        raise UsageError(f"say what is answered: answer KEY VALUE; it waits for {', '.join(keys) or 'nothing'}")
    key, text = arguments[0], " ".join(arguments[1:])
    asked = next((one for one in waits if key in (one.key, one.id)), None)
    if asked is None:
        raise UsageError(f"no question '{key}' is pending: {alternatives(key, keys)}")
    value = answer_value(text, asked)
    await desk.session.answer(key, value)
    left = len(waits) - 1
    more = f"; {left} more to answer" if left else ""
    return Reply({"key": key, "value": value}, f"'{key}' is answered with {short(value)}{more}; 'continue' goes on")


@command("edit", "e", usage="FIELD=VALUE... [as NODE]", takes="field")
async def edit(desk: Desk, arguments: list[str]) -> Reply:
    """Change the state here and go on from that. With `as NODE` the values are that node's result: merge rules apply,
    and its edges fire. What came later stays stored."""
    words, node = list(arguments), None
    if len(words) > 1 and words[-2] == "as":
        node = await desk.node(words[-1])
        words = words[:-2]
    if not words:
        raise UsageError("nothing is changed: edit FIELD=VALUE")
    patch = _patch(await desk.graph(), words, as_update=node is not None)
    return await stopped(desk, await desk.session.edit(patch, as_node=node))


@command("fork", "f", usage="[LINEAGE]")
async def fork(desk: Desk, arguments: list[str]) -> Reply:
    """Go on from here, in this lineage or in a new one, whatever came later."""
    found = await desk.session.fork(arguments[0] if arguments else None)
    return await stopped(desk, found)


@command("alone", "al", usage="NODE [FIELD=VALUE...] [--reload] [--run-effects]", takes="node")
async def alone(desk: Desk, arguments: list[str]) -> Reply:
    """Run one node by itself on the state here, perhaps changed, and compare with what it wrote in the run. Nothing is
    stored. Side effects are taken from the record; with `--run-effects` those that aren't recorded are carried out.
    `--reload` takes the code as it is now in its file."""
    flags = {one for one in arguments if one.startswith("--")}
    if unknown := flags - {"--reload", "--run-effects"}:
        raise UsageError(f"alone doesn't take {', '.join(sorted(unknown))}")
    words = [one for one in arguments if not one.startswith("--")]
    if not words:
        raise UsageError("say which: alone NODE [FIELD=VALUE...]")
    executor = desk.executor
    if "--reload" in flags:
        executor = type(executor)(desk.again(), executor.checkpoints, executor.engine)
    activation, due = await desk.activation(words[0])
    patch = _patch(await desk.graph(), words[1:], as_update=False)
    effects: Effects = "missing" if "--run-effects" in flags else "recorded"
    found = await run_alone(executor, due, activation, patch=patch or None, effects=effects)
    return Reply(_document(found), _text(found))


def _patch(graph: CompiledGraph, words: list[str], *, as_update: bool) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for name, text in pairs(words, "edit"):
        field = graph.schema.fields.get(name)
        if field is None:
            raise UsageError(f"there is no field '{name}': {alternatives(name, graph.schema.names)}")
        patch[name] = fitting(text, field.validate if as_update else field.validate_value)
    return patch


def _document(found: Alone) -> dict[str, Any]:
    recorded = found.recorded
    return {
        "activation": found.activation,
        "update": found.update,
        "goto": found.goto,
        "sends": found.sends,
        "error": None if found.error is None else str(found.error),
        "handled": found.handled,
        "asked": [one.key for one in found.asked],
        "recorded": None if recorded is None else {name: part.value for name, part in recorded.fields.items()},
        "compared": found.compared,
    }


def _text(found: Alone) -> str:
    lines = [f"{found.activation}, by itself:"]
    lines += [f"  {name} = {short(value)}" for name, value in found.update.items()]
    if found.goto:
        lines.append(f"  goes to {', '.join(found.goto)}")
    if found.asked:
        lines.append(f"  asks {', '.join(one.key for one in found.asked)}")
    if found.error is not None:
        lines.append(f"  failed: {found.error}")
    if found.handled is not None:
        lines.append(f"  failed, and its error edge takes it: {found.handled}")
    if found.recorded is None or found.compared is None:
        return "\n".join([*lines, "  (nothing is recorded of it to compare with)"])
    for name, verdict in found.compared.items():
        part = found.recorded.fields.get(name)
        if verdict == "differs":
            lines.append(f"  differs: {name} was {short(None if part is None else part.value)} in the run")
        elif verdict == "unknown":
            lines.append(f"  {name}: what it wrote in the run isn't known")
    alike = all(verdict == "same" for verdict in found.compared.values())
    return "\n".join([*lines, "  as in the run"] if alike else lines)
