"""A proof that a graph is sound without a search, where the theory has one: reduction first, then the rank theorem."""

from __future__ import annotations

from typing import Literal, NamedTuple

from graphagent.graph.compiled import CompiledGraph
from graphagent.validation.net import OutOfClassError, image
from graphagent.validation.outcomes import Choices
from graphagent.validation.rank import sound
from graphagent.validation.reduce import reduce

MOST = 5000
"""Places and transitions of a core that the rank theorem is asked about; a larger one is left to the search."""


class Proof(NamedTuple):
    """Why a graph is sound: every run ends at END with nothing left, no join waits or gets two arrivals of one
    source, every node can run, none outside a loop runs twice. `log`: the reductions that were made."""

    stage: Literal["reduction", "rank"]
    log: tuple[str, ...] = ()


def prove(graph: CompiledGraph, choices: Choices) -> Proof | None:
    """The proof, or None if there is none of this kind: then only a search can tell.

    A graph whose net is free-choice (see `net.image`) gets one exactly if it is sound, unless what reduction leaves of
    it is larger than MOST. The net is then safe: no place ever holds two tokens (Desel and Esparza 1995, theorem 5.9,
    with one token in every S-component), so triggers never meet, and supersteps are one of the interleavings that the
    proof speaks of.
    """
    try:
        net = image(graph, choices)
    except OutOfClassError:
        return None
    if not all(net.after):  # a way ends elsewhere than at END
        return None
    core, log = reduce(net)
    if not core.before and len(core.places) == 1:
        return Proof("reduction", log)
    small = len(core.places) + len(core.before) <= MOST
    return Proof("rank", log) if small and sound(core) else None
