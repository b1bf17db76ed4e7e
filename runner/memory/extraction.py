"""What is to be remembered of a conversation: the port that an extractor fills.

Source: spec/context, 17.5.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from graphagent.errors import GraphAgentError
from graphagent.ledger import SessionKey, TokenUsage
from graphagent.services import Memory
from runner.memory.operations import ALL, Operation


class ExtractionError(GraphAgentError):
    """An extractor has no usable answer; nothing was stored, and the messages are read again next time."""


class Said(NamedTuple):
    """A message. `role`: `user` or `assistant`; `at`: when, in seconds since the epoch; `seq`: its event's number."""

    role: str
    text: str
    at: float = 0.0
    seq: int = 0


class ExtractionInput(NamedTuple):
    """What is extracted from. `messages`: what was said since the last time; `existing`: memories that may be about
    the same; `allowed`: the operations that will be made; `now`: seconds since the epoch."""

    key: SessionKey
    messages: tuple[Said, ...]
    existing: tuple[Memory, ...] = ()
    allowed: frozenset[str] = ALL
    now: float = 0.0


class Extracted(NamedTuple):
    """What to change, and what the calls for it took (None: no model was asked)."""

    operations: tuple[Operation, ...]
    usage: TokenUsage | None = None


class Extractor(Protocol):
    """Decides what is remembered of what was said."""

    async def extract(self, given: ExtractionInput) -> Extracted:
        """The changes to make, in order. Whatever it raises leaves the messages to the next time."""
        ...
