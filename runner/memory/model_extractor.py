"""Asks a model what is to be remembered.

Source: spec/context, 17.5 and 17.6.
"""

from __future__ import annotations

import logging
import math

import anyio

from graphagent.agents.assembler import Assembler
from graphagent.agents.closing import closing
from graphagent.agents.model import Model, ModelRequest
from graphagent.ledger import TokenUsage
from graphagent.messages import Message
from runner.memory.answer import read, schema
from runner.memory.assistant_episodes import as_episode, pairs_of
from runner.memory.extraction import Extracted, ExtractionError, ExtractionInput
from runner.memory.prompt import ASSISTANT_PROMPT, PROMPT, conversation, request_text
from runner.outcome import total

_log = logging.getLogger(__name__)

RESERVED = 5.0
"""Seconds before the deadline that are kept for storing what was found."""


class ModelExtractor:
    """An Extractor that asks a model. `prompt`: instead of the default instruction. `attempts`: how often it is asked
    for an answer that can be read. `assistant_episodes`: another call makes episodes of what the assistant answered, of
    which facts about the user say nothing; if that call fails, or has no time left, the rest counts all the same."""

    def __init__(
        self, model: Model, *, prompt: str = PROMPT, attempts: int = 2, assistant_episodes: bool = False
    ) -> None:
        self.model = model
        self._prompt = prompt
        self._attempts = max(attempts, 1)
        self._episodes = assistant_episodes

    async def extract(self, given: ExtractionInput) -> Extracted:
        """The changes that the model asks for. Raises ModelError, ExtractionError."""
        text = request_text(conversation(given.messages), given.existing, given.now)
        found = await self._asked(self._prompt, text, given.allowed)
        if not self._episodes or "add" not in given.allowed:
            return found
        more = await self._of_the_assistant(given)
        return Extracted(
            (*found.operations, *more.operations), total(usage for usage in (found.usage, more.usage) if usage)
        )

    async def _of_the_assistant(self, given: ExtractionInput) -> Extracted:
        pairs, left = pairs_of(given.messages)
        if left:
            _log.info("session '%s': %s answers are too many for episodes at once", given.key.session, left)
        if not pairs:
            return Extracted(())
        text = request_text(conversation(said for pair in pairs for said in pair), (), given.now)
        left_time = _time_left()
        try:
            if left_time is not None and left_time <= 0:
                raise TimeoutError("what was found already has to be stored now")
            with anyio.fail_after(left_time):
                found = await self._asked(ASSISTANT_PROMPT, text, frozenset({"add"}))
        except Exception as error:
            _log.warning("session '%s': no episodes of answers: %s: %s", given.key.session, type(error).__name__, error)
            return Extracted(())
        made = (as_episode(operation, pairs) for operation in found.operations if operation.kind == "add")
        return Extracted(tuple(made), found.usage)

    async def _asked(self, prompt: str, text: str, allowed: frozenset[str]) -> Extracted:
        messages = [Message.system(prompt), Message.user(text)]
        spent: list[TokenUsage] = []
        for _ in range(self._attempts):
            request = ModelRequest(messages=tuple(messages), output_schema=schema(allowed))
            assembler = Assembler()
            async with closing(self.model.stream(request)) as deltas:
                async for delta in deltas:
                    assembler.add(delta)
            reply = assembler.reply()
            spent.append(reply.usage)
            try:
                return Extracted(read(reply.message.text), total(spent))
            except ValueError as error:
                wrong = f"the answer (finish reason '{reply.finish_reason}') is not as the schema asks for: {error}"
            messages += [Message.assistant(reply.message.text or "(nothing)"), Message.user(f"Write it anew: {wrong}")]
        raise ExtractionError(f"model '{self.model.name}': {wrong}")


def _time_left() -> float | None:
    deadline = anyio.current_effective_deadline()
    return None if deadline == math.inf else deadline - RESERVED - anyio.current_time()
