"""Commands that run a graph: run and resume."""

from __future__ import annotations

import os
import shlex
import traceback
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

import anyio

from graphagent import Executor, Limits, RunResult, SqlCheckpoints
from graphagent.engine.result import public
from graphagent.errors import AnswerError, InterruptedRunError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.view import values_of
from graphagent.ids import fresh_id
from runner.cli.drive import Driver
from runner.cli.exits import exit_of
from runner.cli.opening import load_plain, stored_runs
from runner.cli.options import DB_VARIABLE, Engine, ResumeOptions, Running, RunOptions
from runner.cli.output import Output, declared, fields
from runner.cli.progress import watcher_for
from runner.cli.stored import interrupt_data, interrupt_text, wanted
from runner.cli.target import load_graph
from runner.cli.values import Answers, read_input

Where = tuple[str, str]
"""Lineage and target, as the command that resumes needs them."""


def run(options: RunOptions, output: Output) -> int:
    """Run a graph until it ends."""
    graph = load_graph(options.target)
    given = read_input(options.input)
    if not options.db:
        output.note(f"note: no --db and no {DB_VARIABLE}: nothing is stored, nothing can be resumed later")
    where = (options.lineage or fresh_id(), options.target)
    return _told(graph, anyio.run(_run, graph, given, options, where, output), options, where, output)


def resume(options: ResumeOptions, output: Output) -> int:
    """Go on with a stored run."""
    graph = load_graph(options.target)
    where = (options.lineage, options.target)
    return _told(graph, anyio.run(_resume, graph, options, where, output), options, where, output)


async def _run(
    graph: CompiledGraph, given: dict[str, Any] | None, options: RunOptions, where: Where, output: Output
) -> RunResult:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(SqlCheckpoints(options.db)) if options.db else None
        answers = Answers(options.answer or ())
        driver = _driver(graph, store, options, where, answers, output)
        try:
            result = await driver.go(input=given, abandon=options.abandon)
        except InterruptedRunError as error:
            error.add_note(f"here: {resume_command(where, options, ())}\nor the same command with --abandon")
            raise
        except AnswerError as error:
            if store is not None:
                error.add_note(f"the run waits: {resume_command(where, options, error.pending)}")
            raise
        _say_unused(answers, output)
        return result


async def _resume(graph: CompiledGraph, options: ResumeOptions, where: Where, output: Output) -> RunResult:
    async with stored_runs(options) as store:
        loaded = await load_plain(store, options.lineage, options.checkpoint)
        asked = [public(question) for question in loaded.row.questions if not question.answered]
        answers = Answers(options.answer or ())
        driver = _driver(graph, store, options, where, answers, output)
        first = answers.take(asked, all_keys=True)
        seq = None if options.checkpoint is None else loaded.row.seq
        result = await driver.go(resume=True, answers=first, checkpoint=seq)
        _say_unused(answers, output)
        return result


def _driver(
    graph: CompiledGraph,
    store: SqlCheckpoints | None,
    options: Running,
    where: Where,
    answers: Answers,
    output: Output,
) -> Driver:
    executor = Executor(graph, store, options.engine.value, limits=Limits(max_steps=options.max_steps))
    title = f"{graph.name}  {where[0]}"
    return Driver(executor, where[0], answers, output, lambda: watcher_for(output, title, stream=options.stream))


def _say_unused(answers: Answers, output: Output) -> None:
    for key in answers.unused():
        output.note(f"note: --answer {key}=... was not used: nothing asked for it")


def _told(graph: CompiledGraph, result: RunResult, options: Running, where: Where, output: Output) -> int:
    """Show how the run ended; returns the exit status."""
    if options.debug and result.error is not None:
        traceback.print_exception(result.error)
    for warning in result.warnings:
        output.note(f"warning: {warning}")
    command = None
    if options.db and result.status != "completed":
        command = resume_command(where, options, result.interrupts)
    state = declared(graph.schema.names, values_of(result.state))
    document = result_data(result, state, command)
    text = result_text(result, _outputs(graph, result, state), len(state), command)
    if options.stream:
        output.line({"mode": "result", **document}, text)
    else:
        output.show(document, text)
    return exit_of(result.status)


def result_data(result: RunResult, state: dict[str, Any], command: str | None) -> dict[str, Any]:
    """A result as JSON output has it; `command` goes on with it, if anything can."""
    error = result.error
    return {
        "status": result.status,
        "reason": result.reason,
        "lineage": result.lineage,
        "run_id": result.run_id,
        "checkpoint": result.checkpoint,
        "steps": result.steps,
        "state": state,
        "interrupts": [interrupt_data(one) for one in result.interrupts],
        "error": None if error is None else {"type": type(error).__name__, "message": str(error)},
        "usage": {
            name: getattr(result.usage, name) for name in ("steps", "input_tokens", "output_tokens", "cost", "calls")
        },
        "warnings": result.warnings,
        "resume": command,
    }


def _outputs(graph: CompiledGraph, result: RunResult, state: dict[str, Any]) -> dict[str, Any]:
    """What a person wants to see of the state: of a completed run its outputs, where the graph declares some."""
    outputs = graph.definition.outputs
    return declared(outputs, state) if outputs is not None and result.ok else state


def result_text(result: RunResult, shown: dict[str, Any], fields_in_all: int, command: str | None) -> str:
    """A result as text: how it ended, the shown part of the state, what it waits for, and how to go on."""
    place = f", checkpoint {result.checkpoint}" if result.checkpoint else ""
    reason = "" if result.reason in (result.status, "interrupt") else f": {result.reason}"
    lines = [f"{result.status}{reason}", f"lineage {result.lineage}{place}, {result.steps} step(s)"]
    hidden = fields_in_all - len(shown)
    lines += [f"outputs ({hidden} more field(s) with --json):" if hidden else "state:", fields(shown)]
    if result.interrupts:
        lines += ["waits for:", *map(interrupt_text, result.interrupts)]
    if command is not None:
        lines += ["go on with:", f"  {command}"]
    return "\n".join(lines)


def resume_command(where: Where, options: Running, asked: Sequence[Any]) -> str:
    """The command that goes on with a run, with a place for the answer to every interrupt in `asked`.

    A url that has a password in it is not repeated.
    """
    words = ["graphagent", "resume", *where]
    if options.db and os.environ.get(DB_VARIABLE) != options.db:
        words += ["--db", "<the same as before>" if _has_password(options.db) else options.db]
    if options.engine is not Engine.superstep:
        words += ["--engine", options.engine.value]
    keys = [one.key for one in asked]
    for one in asked:
        if one.kind == "ask":
            words += ["--answer", f"{one.key if keys.count(one.key) == 1 else one.id}=<{wanted(one)}>"]
    return shlex.join(words)


def _has_password(url: str) -> bool:
    try:
        return urlsplit(url).password is not None
    except ValueError:
        return True
