"""A trace as text, `plan; fork; b=END; a`, and where it leads: each pick a node and, where it has several, its
outcome."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from graphagent.errors import UsageError, alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Marking
from graphagent.graph.transitions import fire, start
from graphagent.validation.explore import Pick
from graphagent.validation.outcomes import Choices

_PICK = re.compile(r"(?:[^\\;\n]|\\.)+")
_ESCAPED = re.compile(r"\\(.)")


class Followed(NamedTuple):
    """Where a script leads: the markings before each pick (or superstep) and the last one."""

    picks: tuple[Pick, ...]
    markings: tuple[Marking, ...]

    @property
    def end(self) -> Marking:
        """Where the run stands after the last pick."""
        return self.markings[-1]


def parse_script(text: str, graph: CompiledGraph, choices: Choices) -> tuple[Pick, ...]:
    """The picks that a script names. A node with one outcome needs none said. Raises UsageError for an unknown name."""
    picks = []
    for part in _parts(text):
        name, outcome = _split(part, graph)
        if name not in graph.index:
            raise UsageError(f"the script names '{name}', which is not a node: {alternatives(name, graph.names)}")
        picks.append(Pick(graph.index[name], _outcome(name, outcome, graph, choices)))
    return tuple(picks)


def _parts(text: str) -> list[str]:
    """The picks of a script; after a backslash a semicolon belongs to a name, and `n` is a new line."""
    parts = [_ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], part) for part in _PICK.findall(text)]
    return [part.strip() for part in parts if part.strip()]


def _split(part: str, graph: CompiledGraph) -> tuple[str, str]:
    """Node and outcome; a node's id may have an equals sign of its own."""
    if part in graph.index:
        return part, ""
    for place in (i for i, letter in enumerate(part) if letter == "="):
        if part[:place] in graph.index:
            return part[:place], part[place + 1 :].strip()
    name, _, outcome = part.partition("=")
    return name, outcome


def _outcome(name: str, text: str, graph: CompiledGraph, choices: Choices) -> int:
    listed = choices.of[graph.index[name]]
    known = [outcome.text.strip() for outcome in listed]
    if text in known:
        return known.index(text)
    if not text and len(listed) == 1:
        return 0
    shown = f"outcome '{text}' for" if text else "no outcome for"
    raise UsageError(f"the script names {shown} '{name}': {alternatives(text, known)}; write '{name}={known[0]}'")


def follow(graph: CompiledGraph, choices: Choices, picks: Sequence[Pick], *, supersteps: bool = False) -> Followed:
    """Fire the picks one after the other (or superstep by superstep). Raises UsageError for a pick that isn't due."""
    marking = start(graph)
    markings, left, done = [marking], list(picks), []
    while left:
        count = max(len(marking.frontier), 1) if supersteps else 1
        for pick in left[:count]:
            _check_due(graph, marking, pick)
        places = _spread(marking, left[:count])
        if len(places) < count:
            raise UsageError("the script ends in the middle of a superstep, or names a node twice in one")
        taken = dict(zip(places, left, strict=False))
        completions = [
            choices.of[pick.node][pick.outcome].completion(position) for position, pick in sorted(taken.items())
        ]
        done += [
            pick._replace(grouped=bool(marking.frontier[position].group)) for position, pick in sorted(taken.items())
        ]
        marking = fire(graph, marking, completions)
        markings.append(marking)
        left = left[len(taken) :]
    return Followed(tuple(done), tuple(markings))


def _check_due(graph: CompiledGraph, marking: Marking, pick: Pick) -> None:
    if any(activation.node == pick.node for activation in marking.frontier):
        return
    due = [graph.names[activation.node] for activation in marking.frontier]
    name = graph.names[pick.node]
    raise UsageError(f"the script runs '{name}', which is not due there: {alternatives(name, due)}")


def _spread(marking: Marking, picks: Sequence[Pick]) -> list[int]:
    """The frontier position of each pick of one superstep; activations of one node in their order."""
    free = list(range(len(marking.frontier)))
    places = []
    for pick in picks:
        place = next((p for p in free if marking.frontier[p].node == pick.node), None)
        if place is None:
            break
        free.remove(place)
        places.append(place)
    return places
