"""Handing the conversation over inside a family of agents: to whom one may, and how the one that takes over is told.

An agent that hands over to a sub-agent jumps to its node. One that hands over to a peer, or back to the agent above it,
ends with a `Handed` in its state; the node that ran it, in the graph of the agent above, makes that a jump.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphagent.errors import AgentError

HANDED = "handed_over"
"""The key of `metadata` under which an agent leaves to whom it has handed over."""
HANDOVERS = "handovers"
"""The key of `metadata` that counts how often agents below this one have handed over in this turn."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """To whom an LLMAgent may hand the conversation over; False forbids it.

    `sub_agents`: to those below it. `peers`, `parent`: when another LLMAgent has it as a sub-agent, to the others that
    this one has, and to this one itself; its state needs the field `metadata` for that. `most`: how often agents below
    it may hand over to each other and back, in one turn; one more is LimitReached.
    """

    sub_agents: bool = True
    peers: bool = True
    parent: bool = True
    most: int = 20

    def __post_init__(self) -> None:
        if self.most < 0:
            raise AgentError(f"most hand-overs of a turn is {self.most}; it has to be a count")


TO_ALL = HandOver()


class Place(NamedTuple):
    """An agent that can take over, as the one that hands over knows it."""

    name: str
    description: str = ""


class Handed(NamedTuple):
    """`agent` takes over; `asked`: what it is to do, empty for what was asked in the first place."""

    agent: str
    asked: str = ""

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Handed | None:
        """What an agent has left in its state."""
        found = metadata.get(HANDED)
        return None if found is None else cls(**found)

    def left(self) -> dict[str, Any]:
        """As it is left in the state."""
        return {HANDED: self._asdict()}


@dataclass(frozen=True, slots=True)
class Ways:
    """Where an agent node goes on when its agent hands over: the node, by the name of the agent that takes over.
    `most`: how often in a turn."""

    nodes: Mapping[str, str] = field(default_factory=dict)
    most: int = TO_ALL.most
