"""The command that walks a graph through its declared outcomes: simulate."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import anyio

from graphagent.errors import GraphDefinitionError, UsageError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Marking
from graphagent.testing.scripted import Engine, Played, play
from graphagent.validation import Facts, TraceStep
from graphagent.validation.coverage import coverage_text
from graphagent.validation.outcomes import Choices, choices
from graphagent.validation.script import Followed, follow, parse_script
from graphagent.validation.walk import Simulation, ends_text
from graphagent.validation.walk import simulate as walks
from runner.check.find import find
from runner.check.text import trace_lines
from runner.cli.coverage_options import SimulateOptions
from runner.cli.exits import Exit, exit_of
from runner.cli.output import Output


def simulate(options: SimulateOptions, output: Output) -> int:
    """Walk at random, or follow a script."""
    graph, facts = _graph(options.target)
    if options.script is not None:
        engine: Engine = options.engine.value if options.engine is not None else "eager"
        return _scripted(graph, options.script, engine, output)
    own: Engine = "eager" if facts.engine == "eager" else "superstep"
    engine = options.engine.value if options.engine is not None else own
    done = walks(graph, options.runs, options.seed, engine=engine, max_activations=options.max_activations)
    output.show(_document(done), "\n".join(_lines(done, options.target)))
    return Exit.STOPPED if done.went_wrong else Exit.COMPLETED


def _graph(target: str) -> tuple[CompiledGraph, Facts]:
    """The one graph that a target names, as `check` finds it. Raises UsageError, GraphDefinitionError."""
    found = find((target,))
    if found.failures:
        raise UsageError(found.failures[0].message)
    if len(found.candidates) != 1:
        names = ", ".join(f"'{candidate.target}'" for candidate in found.candidates)
        raise UsageError(f"'{target}' has {len(found.candidates)} graphs: name one of {names}")
    candidate = found.candidates[0]
    if isinstance(candidate.graph, GraphDefinitionError):
        raise candidate.graph
    graph = candidate.graph
    return graph if isinstance(graph, CompiledGraph) else graph.compile(strict=False), candidate.facts


# -- at random -----------------------------------------------------------------------------------


def _document(done: Simulation) -> dict[str, Any]:
    return {
        "schema": 1,
        "graph": done.coverage.graph,
        "engine": done.engine,
        "seed": done.seed,
        "runs": done.runs,
        "activations": done.activations,
        "ended": dict(done.coverage.ended),
        "examples": done.examples,
        "undeclared": list(done.undeclared),
        "cut": list(done.cut),
        "coverage": done.coverage.to_json(),
    }


def _lines(done: Simulation, target: str) -> list[str]:
    lines = [
        f"{done.runs} walk(s) with seed {done.seed}, {done.engine} engine, {done.activations} activation(s): "
        f"{ends_text(done.coverage.ended)}"
    ]
    for end, script in done.examples.items():
        if end.startswith(("stalled", "END")):
            words = ["graphagent", "simulate", target, "--engine", done.engine, "--script", script]
            lines.append(f"  {end}, for example: {shlex.join(words)}")
    lines.append(coverage_text(done.coverage))
    for names, said in ((done.undeclared, "targets are not declared, so any node was taken"),
                        (done.cut, "alternatives are too many; the first 1024 were drawn from")):  # fmt: skip
        lines += [f"note: of {', '.join(map(repr, names))} the {said}"] if names else []
    return lines


# -- by a script ---------------------------------------------------------------------------------


def _scripted(graph: CompiledGraph, script: str, engine: Engine, output: Output) -> int:
    options = choices(graph)
    followed = follow(graph, options, parse_script(script, graph, options), supersteps=engine != "eager")
    played = anyio.run(lambda: play(graph, script, engine=engine))
    steps = _steps(graph, options, followed, engine)
    live = _live(graph, followed.end)
    document = {
        "schema": 1,
        "graph": graph.name,
        "engine": engine,
        "script": script,
        "status": played.result.status if played.ended else "unfinished",
        "reason": played.result.reason if played.ended else _left(live),
        "steps": [
            {"step": s.step, "node": s.node, "outcome": s.outcome, "live": list(s.live),
             "joins": {name: list(have) for name, have in s.joins.items()}}
            for s in steps
        ],
    }  # fmt: skip
    output.show(document, "\n".join([*trace_lines(steps), _ended(played, live)]))
    return exit_of(played.result.status) if played.ended else Exit.STOPPED


def _ended(played: Played, live: Sequence[str]) -> str:
    if not played.ended:
        return f"unfinished: {_left(live)}"
    status, reason = played.result.status, played.result.reason
    return status if reason == status else f"{status}: {reason}"


def _left(live: Sequence[str]) -> str:
    return f"the script is over before the run; {', '.join(map(repr, live))} would be next"


def _steps(graph: CompiledGraph, options: Choices, followed: Followed, engine: Engine) -> tuple[TraceStep, ...]:
    """What ran and chose what, and where the run stood before it."""
    steps: list[TraceStep] = []
    for number, marking in enumerate(followed.markings[:-1]):
        count = 1 if engine == "eager" else len(marking.frontier)
        for pick in followed.picks[len(steps) : len(steps) + count]:
            text = options.of[pick.node][pick.outcome].text
            live = _live(graph, marking)
            steps.append(TraceStep(number, graph.names[pick.node], text, live, _arrived(graph, marking)))
    return tuple(steps)


def _live(graph: CompiledGraph, marking: Marking) -> tuple[str, ...]:
    return tuple(graph.names[activation.node] for activation in marking.frontier)


def _arrived(graph: CompiledGraph, marking: Marking) -> dict[str, tuple[str, ...]]:
    return {
        table.id: tuple(graph.names[table.sources[slot]] for slot, _ in join.arrived)
        for table, join in zip(graph.join_tables, marking.joins, strict=True)
        if join is not None
    }
