"""Small graphs for tests: a state that records which nodes ran, and edges written as text."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel

from graphagent import END, START, StateGraph, append


class Trail(BaseModel):
    """`log`: the nodes that ran, in merge order; the other fields are for what a test wants to pass along."""

    log: Annotated[list[str], append] = []
    item: str = ""
    n: int = 0


def says(text: str, **update: Any) -> Callable[[Any], Any]:
    """A node that writes `text` to the log, and the update."""

    async def node(state: Any) -> dict[str, Any]:
        return {"log": [text], **update}

    return node


def flow(*chains: str, state: type = Trail, **functions: Callable[..., Any]) -> StateGraph:
    """A builder with the plain edges of chains such as `"START -> a -> b, c -> END"`, in which a comma means each.

    Nodes are declared in the order in which they are named first, those of `functions` that no chain names at the
    end; a node without a function of its own writes its name to the log.
    """
    ends = {"START": START, "END": END}
    rows = [
        [[ends.get(name.strip(), name.strip()) for name in part.split(",")] for part in c.split("->")] for c in chains
    ]
    named = [name for row in rows for part in row for name in part if name not in (START, END)]
    builder = StateGraph(state)
    for name in dict.fromkeys([*named, *functions]):
        builder.add_node(name, functions.get(name) or says(name))
    for row in rows:
        for sources, targets in itertools.pairwise(row):
            for source, target in itertools.product(sources, targets):
                builder.add_edge(source, target)
    return builder
