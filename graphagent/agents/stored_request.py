"""What a stored activation asked its model, and how each part of that is known. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from graphagent.agents.model import ModelRequest
from graphagent.agents.model_call import Turn
from graphagent.agents.requests import Asked
from graphagent.agents.stored_calls import StoredCall
from graphagent.ledger import TokenUsage
from graphagent.messages import Message

Known = Literal["recorded", "rebuilt", "unknown"]
"""How a part of a request is known: as it was stored, made again from what was, or not at all."""
PARTS = ("graph", "instruction", "messages", "tools", "output_schema", "config", "model", "hooks", "answer", "usage")
"""What a request is made by and of, what may have changed it (`hooks`: callbacks and plugins), and what came of it."""
GUARD = "a guard of the run may have shortened results in it"
"""The doubt that the notes of a session's event settle."""


@dataclass(frozen=True, slots=True)
class Part:
    """How a part is known. `doubts`: by what it may differ from what was sent; none if by nothing that is known, the
    code being what it was."""

    known: Known
    doubts: tuple[str, ...] = ()

    @property
    def doubt(self) -> str:
        """The doubts in a line."""
        return "; ".join(self.doubts)

    def doubted(self, *doubts: str) -> Part:
        """The same with more doubts."""
        return replace(self, doubts=(*self.doubts, *doubts))

    def without(self, doubt: str) -> Part:
        """The same without a doubt that is settled."""
        return replace(self, doubts=tuple(one for one in self.doubts if one != doubt))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRequest:
    """What an activation asked its model.

    `requests`: in order; there are several if an answer didn't satisfy its schema. `asked`: the history that the first
    is made of; `instruction`: the text before it. `parts`: how each of `PARTS` is known. `turns`: the answers that
    the ledger has, as the model gave them; `answer`: what the step wrote of the last one (None: it has not ended).
    `answer_id`: the id of that message, and of the event of it in a session. `calls`: the tool calls that it asked
    for, and what became of them. `secrets`: texts of the state that are not to be shown. `checkpoint`: the row in
    which the activation was due; `ended`: that of its end, empty if there is none.
    """

    lineage: str
    namespace: str
    checkpoint: str
    ended: str
    activation: str
    node: str
    model: str
    requests: tuple[ModelRequest, ...]
    asked: Asked
    instruction: str
    parts: Mapping[str, Part]
    turns: tuple[Turn, ...] = ()
    answer: Message | None = None
    answer_id: str = ""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    calls: tuple[StoredCall, ...] = ()

    @property
    def request(self) -> ModelRequest | None:
        """The last request; None if none could be made."""
        return self.requests[-1] if self.requests else None

    @property
    def usage(self) -> tuple[TokenUsage, ...]:
        """What each of the answers took."""
        return tuple(turn.reply.usage for turn in self.turns)

    @property
    def doubts(self) -> dict[str, str]:
        """By part, by what it may differ from what was sent."""
        return {
            name: part.doubt or part.known for name, part in self.parts.items() if part.doubt or part.known == "unknown"
        }

    @property
    def exact(self) -> bool:
        """True if nothing is known by which the requests could differ from what was sent."""
        return bool(self.requests) and not self.doubts.keys() - {"answer", "usage"}
