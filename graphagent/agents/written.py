"""Which row of a frame brought each message of a history into it, and which activation wrote it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from graphagent.agents.requests import field
from graphagent.agents.stored_frames import Frames
from graphagent.checkpoint.record import Header, Source
from graphagent.engine.context import NodeContext
from graphagent.engine.frame import Frame, Origin
from graphagent.graph.marking import Activation, Marking
from graphagent.messages import Message

Key = tuple[object, ...]


class Written(NamedTuple):
    """Where a message comes from. `checkpoint`, `source`: of the row that brought it; `activations`: ids of those in
    whose step it came, one if it is known which; none if no step did. `since`: it was there before the oldest row that
    there is."""

    checkpoint: str
    source: Source
    activations: tuple[str, ...] = ()
    since: bool = False


async def written_by(frames: Frames, header: Header, history: Sequence[Message]) -> list[Written | None]:
    """For each message of the history at a row where it comes from; None for one that isn't in it.

    An answer tells by its id which activation made it, and the results of its calls are looked for behind it; for the
    others rows are looked at by halves, so that a long lineage costs its logarithm for each step that wrote. In a frame
    of a Runner a turn begins with a new history, and what was there before it isn't looked at.
    """
    return await _Search(frames, header).of(history)


class _Search:
    """The rows up to one, oldest first, each loaded once at most."""

    def __init__(self, frames: Frames, header: Header) -> None:
        self.frames = frames
        chain: list[Header] = []
        for one in frames.back_from(header):
            chain.append(one)
            if one.source == "input" and frames.of_a_runner:
                break
        self.chain = chain[::-1]
        self._loaded: dict[int, Frame | None] = {}
        self._keys: dict[int, frozenset[Key]] = {}
        self._found: dict[Key, int] = {}
        wide = any(len(one.nodes) > 1 for one in self.chain)
        self._lone = frames.setup.engine == "superstep" and not wide  # no activation has a branch

    async def of(self, history: Sequence[Message]) -> list[Written | None]:
        """See `written_by`."""
        keys = _keyed(history)
        last = len(self.chain) - 1
        there = await self._at(last)
        await self._hit(keys, history, there)
        await self._find(-1, last, (set(keys) & there) - self._found.keys())
        return [
            await self._written(self._found[key], message) if key in self._found else None
            for key, message in zip(keys, history, strict=True)
        ]

    async def _hit(self, keys: Sequence[Key], history: Sequence[Message], there: frozenset[Key]) -> None:
        """The answers that are found by their ids, and the results of their calls right behind them."""
        answers = self._answers({message.id for message in history if message.role == "assistant" and message.id})
        calls: dict[str, int] = {}
        for key, message in zip(keys, history, strict=True):
            if message.role == "assistant" and message.id in answers and key in there:
                self._found[key] = answers[message.id]
                calls |= dict.fromkeys((call.id for call in message.tool_calls), answers[message.id] + 1)
            elif message.role == "tool" and key in there:
                place = calls.get(message.tool_call_id or "", len(self.chain))
                if place < len(self.chain) and key in await self._at(place):
                    self._found[key] = place

    def _answers(self, ids: set[str]) -> dict[str, int]:
        """By the ids of answers the places of the rows that brought them, as far as they are found without a look."""
        found: dict[str, int] = {}
        frame, graph = self._loaded.get(self.chain[-1].seq), self.frames.graph
        if frame is None or not ids:
            return found
        base = self.chain[0].seq
        for place, header in enumerate(self.chain[1:], start=1):
            if self.chain[place - 1].source not in ("interrupt", "error"):
                base = self.chain[place - 1].seq
            for position, node in enumerate(header.nodes):
                if node in graph.index and graph.nodes[node].kind == "llm":
                    key = _answer_id(frame, Origin(base, position, header.step, node))
                    if key in ids:
                        found.setdefault(key, place)
        return found

    async def _find(self, low: int, high: int, wanted: set[Key]) -> None:
        """Those that row `high` has and row `low` has not (-1: before all) came in between."""
        if not wanted:
            return
        if high - low == 1:
            self._found.update(dict.fromkeys(wanted, high))
            return
        middle = (low + high) // 2
        there = wanted & await self._at(middle)
        await self._find(low, middle, there)
        await self._find(middle, high, wanted - there)

    async def _at(self, place: int) -> frozenset[Key]:
        if place not in self._keys:
            frame = await self._load(self.chain[place].seq)
            self._keys[place] = frozenset(() if frame is None else _keyed(messages_of(frame)))
        return self._keys[place]

    async def _load(self, seq: int) -> Frame | None:
        if seq not in self._loaded:
            self._loaded[seq] = await self.frames.load(seq)
        return self._loaded[seq]

    async def _written(self, place: int, message: Message) -> Written:
        header = self.chain[place]
        since = place == 0 and header.parent is not None and header.source != "input"
        if since or header.source not in ("step", "interrupt", "error", "end"):
            return Written(header.id, header.source, since=since)
        if self._lone and len(header.nodes) == 1:
            return Written(header.id, header.source, (f"{header.nodes[0]}#{header.step}",))
        before = None if header.parent is None else await self._load(header.parent)
        ran = header.nodes if before is None else tuple(_ran(before, header.nodes, message))
        return Written(header.id, header.source, ran)


def messages_of(frame: Frame) -> tuple[Message, ...]:
    """The history at a row; empty where the state declares none."""
    return tuple(field(frame.graph.schema.view(frame.values), "messages", ()))


def said(message: Message) -> Key:
    """What tells messages apart, whatever store they come from."""
    calls = tuple((call.id, call.name) for call in message.tool_calls)
    return message.role, repr(message.content), message.id, message.tool_call_id, calls


def _keyed(messages: Iterable[Message]) -> list[Key]:
    """A key for each message; equal ones are told apart by their number."""
    counts: Counter[Key] = Counter()
    keys = []
    for message in messages:
        key = said(message)
        counts[key] += 1
        keys.append((*key, counts[key]))
    return keys


def _answer_id(frame: Frame, origin: Origin) -> str:
    """The id of the answer that an activation with this origin writes."""
    node = Activation(frame.graph.index[origin.node])
    alone = replace(frame, marking=Marking((node,)), origins=[origin])
    return NodeContext(alone, 0, node).idempotency_key("message")


def _ran(before: Frame, nodes: Sequence[str], message: Message) -> list[str]:
    """The activations of a step that may have written a message: by the id of an answer, by the kind of the node for a
    result, else all that ran in it."""
    frontier, names = before.marking.frontier, before.graph.names
    ran = [place for place, one in enumerate(frontier) if names[one.node] in nodes]
    for place in ran if message.id else ():
        if NodeContext(before, place, frontier[place]).idempotency_key("message") == message.id:
            return [before.activation_id(place)]
    if message.role == "tool":
        ran = [place for place in ran if before.graph.defs[frontier[place].node].kind == "tools"] or ran
    return [before.activation_id(place) for place in ran] or list(nodes)
