"""What a model node asks: which messages of the state, and how they are put so that every provider takes them.

Pure functions over values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from graphagent.messages import Message, MessageUpdate, ReplaceLastUser, ToolCall

if TYPE_CHECKING:
    from graphagent.agents.invocation import Invocation

NO_RESULT = "Error: there is no result: the call was not finished"
"""What a model is told of a call whose result is not in the history."""
_CALLS, _ID = attrgetter("tool_calls"), attrgetter("id")


class Asked(NamedTuple):
    """`messages`: what is asked. `update`: how the history changes by that. `cleared`: fields that are used up. `once`:
    it is not the history that is asked."""

    messages: tuple[Message, ...]
    update: tuple[MessageUpdate, ...] = ()
    cleared: Mapping[str, Any] = {}
    once: bool = False


def field(state: Any, name: str, default: Any) -> Any:
    """A field of the state; the default if the state doesn't declare it, or it isn't set."""
    try:
        return state[name] if isinstance(state, dict) else getattr(state, name)
    except (AttributeError, KeyError):
        return default


def first_asked(invocation: Invocation | None) -> str:
    """What an agent was asked in the first place; empty where there is nothing."""
    asked = invocation.message if invocation is not None else None
    return "" if asked is None else asked.text


def asked_of(node: str, state: Any, user_input_key: str) -> Asked:
    """The first that is there of: the one-shot messages for the node, the one-shot messages for any, the user's input
    on top of the history, the history."""
    own = field(state, "one_shot_messages_by_node", {}).get(node)
    if own:
        return Asked(tuple(own), cleared={"one_shot_messages_by_node": {node: []}}, once=True)
    once = field(state, "one_shot_messages", ())
    if once:
        return Asked(tuple(once), cleared={"one_shot_messages": []}, once=True)
    history = tuple(field(state, "messages", ()))
    text = field(state, user_input_key, "")
    if not text:
        return Asked(history)
    cleared = {user_input_key: ""}
    if not history or history[-1].role != "user":
        said = Message.user(text)
        return Asked((*history, said), (said,), cleared)
    if history[-1].text == text:
        return Asked(history, cleared=cleared)
    return Asked((*history[:-1], Message.user(text)), (ReplaceLastUser(last_user=text),), cleared)


def with_instruction(messages: Sequence[Message], instruction: str) -> tuple[Message, ...]:
    """The messages under an instruction: a system message before all, joined with one that is there already."""
    if not instruction:
        return tuple(messages)
    if not messages or messages[0].role != "system":
        return (Message.system(instruction), *messages)
    first = messages[0]
    if instruction in first.text:
        return tuple(messages)
    return (Message.system(f"{instruction}\n\n{first.text}"), *messages[1:])


def paired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with the results of each round of calls right behind it: a call without one gets `NO_RESULT`, a
    result without a call is left out, of two results for one call the first counts."""
    if _is_paired(messages):
        return tuple(messages)
    results = _results(messages)
    found: list[Message] = []
    for place, message in enumerate(messages):
        if message.role == "tool":
            continue
        found.append(message)
        if message.tool_calls:
            mine = results[place]
            found += [
                mine.get(call.id) or Message.tool(NO_RESULT, call.id, name=call.name) for call in message.tool_calls
            ]
    return tuple(found)


def _is_paired(messages: Sequence[Message]) -> bool:
    """True if they are paired already, as in nearly every request: one look at each message, nothing is made."""
    due: Sequence[ToolCall] = ()  # calls whose results have to come next
    for message in messages:
        if message.role == "tool":
            if not due or message.tool_call_id != due[0].id:
                return False
            due = due[1:]
        elif due:
            return False
        elif calls := message.tool_calls:
            if len(calls) > 1 and len({call.id for call in calls}) < len(calls):
                return False
            due = calls
    return not due


def _results(messages: Sequence[Message]) -> dict[int, dict[str, Message]]:
    """Per place of a round of calls its results by call id; it ends where a later round uses one of its ids again."""
    results: dict[int, dict[str, Message]] = {}
    owner: dict[str, int] = {}
    for place, message in enumerate(messages):
        if message.role == "tool":
            mine = owner.get(message.tool_call_id or "")
            if mine is not None:
                results[mine].setdefault(message.tool_call_id or "", message)
        elif message.tool_calls:
            ids = [call.id for call in message.tool_calls]
            over = {owner[id] for id in ids if id in owner}
            if over:
                owner = {id: place for id, place in owner.items() if place not in over}
            results[place] = {}
            owner.update(dict.fromkeys(ids, place))
    return results


def call_ids(messages: Iterable[Message]) -> Iterator[str]:
    """The ids of all tool calls in the messages."""
    return map(_ID, chain.from_iterable(map(_CALLS, messages)))


class OpenRound(NamedTuple):
    """The latest answer that asks for tools, and how many of its calls have no result yet."""

    message: Message
    answered: frozenset[str]


def open_round(messages: Sequence[Message]) -> OpenRound | None:
    """The latest answer with tool calls, if no user message came after it."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role == "user":
            return None
        if message.tool_calls:
            return OpenRound(message, frozenset(answered))
        if message.role == "tool" and message.tool_call_id is not None:
            answered.add(message.tool_call_id)
    return None
