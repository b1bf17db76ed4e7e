"""The graph as lines of text, with the way that a trace takes marked."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.draw import Line, lines
from graphagent.graph.names import END, START
from graphagent.validation import TraceStep
from graphagent.validation.outcomes import Outcome, choices

MOST = 40
"""Lines of a drawing; of a larger graph only what touches the way is drawn."""

Mark = Literal["taken", "missing", ""]
_ARROWS = {"edge": "->", "route": "->", "join": "=>", "jump": "~>", "map": "~>", "error": "!>"}
_SIGNS: dict[Mark, str] = {"taken": ">", "missing": "?", "": " "}


class Drawn(NamedTuple):
    """A line of the drawing. `mark`: the trace takes it, or a join still waits for it when the trace is over."""

    text: str
    mark: Mark


def graph_named(graph: CompiledGraph, name: str) -> CompiledGraph | None:
    """The graph, or the one inside it, at any depth, that is called so."""
    if graph.name == name:
        return graph
    inner = (graph_named(node.child, name) for node in graph.defs if isinstance(node.child, CompiledGraph))
    return next((found for found in inner if found is not None), None)


def drawing(graph: CompiledGraph, trace: Sequence[TraceStep]) -> list[Drawn]:
    """Every transition of the graph as a line: `>` where the trace takes it, `?` where a join waits for it in vain."""
    taken = set(_taken(graph, trace))
    waiting = _waiting(graph, trace)
    ran = {step.node for step in trace if step.node}
    marked = [(line, _mark(line, taken, waiting)) for line in lines(graph)]
    left_out = 0
    if len(marked) > MOST:
        near = [item for item in marked if item[1] or item[0].source in ran][:MOST]
        left_out, marked = len(marked) - len(near), near
    most = max((columns_of(_ends(line)) for line, _ in marked), default=0)
    drawn = [
        Drawn(f"{_SIGNS[mark]} {_padded(_ends(line), most)}  {_note(line)}".rstrip(), mark) for line, mark in marked
    ]
    return [*drawn, Drawn(f"  and {left_out} more line(s)", "")] if left_out else drawn


def columns_of(text: str) -> int:
    """Columns that a text takes on a terminal; letters of East Asian scripts take two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def _padded(text: str, columns: int) -> str:
    return text + " " * (columns - columns_of(text))


def _ends(line: Line) -> str:
    names = {START: "START", END: "END"}
    return f"{names.get(line.source, line.source)} {_ARROWS[line.kind]} {names.get(line.target, line.target)}"


def _note(line: Line) -> str:
    kind = "" if line.kind in ("edge", "route") else line.kind
    return f"{kind} {line.label}".strip()


def _mark(line: Line, taken: set[tuple[str, str]], waiting: set[tuple[str, str]]) -> Mark:
    if (line.source, line.target) in taken:
        return "taken"
    return "missing" if line.kind == "join" and (line.source, line.target) in waiting else ""


def _taken(graph: CompiledGraph, trace: Sequence[TraceStep]) -> Iterator[tuple[str, str]]:
    """Source and target of what the picks of a trace fire."""
    yield from ((START, name) for name in graph.entry_points)
    listed = choices(graph)
    for step in trace:
        index = graph.index.get(step.node)
        outcome = None if index is None else _outcome(listed.of[index], step.outcome)
        if index is None or outcome is None:
            continue
        targets = list(outcome.targets())
        if outcome.goto is None and outcome.sends is None:
            targets += [*graph.plain[index], *(graph.join_tables[join].target for join, _ in graph.arrivals[index])]
        yield from ((step.node, graph.name_of(target)) for target in targets)


def _outcome(listed: Sequence[Outcome], text: str) -> Outcome | None:
    return next((outcome for outcome in listed if outcome.text == text or len(listed) == 1), None)


def _waiting(graph: CompiledGraph, trace: Sequence[TraceStep]) -> set[tuple[str, str]]:
    """Source and target of what has not arrived at joins that hold something when the trace is over."""
    held = trace[-1].joins if trace and not trace[-1].node else {}
    return {
        (source, join.target)
        for join in graph.joins
        if held.get(join.id)
        for source in join.sources
        if source not in held[join.id]
    }
