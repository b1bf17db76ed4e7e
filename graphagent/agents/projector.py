"""What a model node asks for: the messages that a model sees, made from the session. `processors` supplies one."""

from __future__ import annotations

from typing import Protocol

from graphagent.agents.invocation import Invocation
from graphagent.messages import Message


class Projector(Protocol):
    """Makes a request's messages from a session, without changing it."""

    async def messages(self, invocation: Invocation) -> tuple[Message, ...]:
        """History, summary and recalled evidence as messages, the current user message always among them. Instructions
        are not in it: they are the model node's own."""
        ...
