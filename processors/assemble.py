"""The messages of a projection: what comes before the history, the texts beside it, and the history."""

from __future__ import annotations

from collections.abc import Sequence

from graphagent.messages import Message
from processors.projection import Block, Mode, Projection
from processors.retell import as_parts

_ORDER = ("memory", "summary", "recall")


def assemble(projection: Projection) -> tuple[Message, ...]:
    """All messages, in order.

    System messages, examples, context, history. Texts beside it go into the first system message (a new one if there
    is none), or before the first message of the user; memories first, then the summary, then evidence. Late messages
    come right before the last one of the user. Source: spec/context, 6.2.
    """
    head, history = list(projection.head), [line.message for line in projection.lines]
    leading = _leading(head)
    head[leading:leading] = projection.given.examples
    head += projection.given.context
    text = _joined(projection.blocks, "system")
    if text:
        head = _into_system(head, text)
    text = _joined(projection.blocks, "user")
    if text:
        _before_user(head, history, text)
    messages = [*head, *history]
    if projection.given.late:
        users = [at for at, message in enumerate(messages) if message.role == "user"]
        at = users[-1] if users else _leading(messages)
        messages[at:at] = projection.given.late
    return tuple(messages)


def _joined(blocks: Sequence[Block], mode: Mode) -> str:
    ordered = sorted((block for block in blocks if block.mode == mode), key=lambda block: _ORDER.index(block.kind))
    return "\n\n".join(block.text for block in ordered)


def _leading(messages: Sequence[Message]) -> int:
    """How many system messages come first."""
    return next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))


def _into_system(head: Sequence[Message], text: str) -> list[Message]:
    at = next((at for at, message in enumerate(head) if message.role == "system"), None)
    if at is None:
        return [Message.system(text), *head]
    return [*head[:at], with_text(head[at], text, after=True), *head[at + 1 :]]


def _before_user(head: list[Message], history: list[Message], text: str) -> None:
    """Put the text before the first message of the user, else behind the last one before the history, else alone."""
    at = next((at for at, message in enumerate(history) if message.role == "user"), None)
    if at is not None:
        history[at] = with_text(history[at], text)
    elif head and head[-1].role == "user":
        head[-1] = with_text(head[-1], text, after=True)
    else:
        head.append(Message.user(text))


def with_text(message: Message, text: str, *, after: bool = False) -> Message:
    """The message with a text before or after its content, a blank line between."""
    if not message.content:
        return message.model_copy(update={"content": text})
    if isinstance(message.content, str):
        both = (message.content, text) if after else (text, message.content)
        return message.model_copy(update={"content": "\n\n".join(both)})
    part = {"type": "text", "text": text}
    parts = as_parts(message)
    return message.model_copy(update={"content": [*parts, part] if after else [part, *parts]})
