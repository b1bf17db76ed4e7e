"""Random histories of checkpoints with the state that each row must load as: the yardstick for stores.

The rows are made as an engine makes them: deltas, snapshots, self-contained rows that go on from an older one,
interrupts that change nothing. The expected state is kept in full for each row, so nothing here folds.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphagent.checkpoint.codec import decode_any, encode_any
from graphagent.checkpoint.record import ListDelta, Question, Row, Source

NASTY = ("", "\0", "a\0b", "\ud800", "é\u0301 \U0001f600", "'; DROP TABLE rows; --", "%s ? {} \\", "line\nline\r\n")
"""Texts that stores have stumbled over."""


class AnyCodec:
    """A codec for values of any type that `encode_any` takes."""

    def encode_part(self, field: str, part: Any) -> Any:
        """Plain data of a value, a patch or list items."""
        return encode_any(part, field)

    def decode_part(self, field: str, plain: Any) -> Any:
        """The value of `encode_part`."""
        return decode_any(plain, field)

    def encode_update(self, field: str, update: Any) -> Any:
        """Plain data of a node's update."""
        return encode_any(update, field)

    def decode_update(self, field: str, plain: Any) -> Any:
        """The update of `encode_update`."""
        return decode_any(plain, field)


@dataclass(slots=True)
class History:
    """Rows of one frame, and the state that each must load as."""

    rows: list[Row] = field(default_factory=list)
    states: list[dict[str, Any]] = field(default_factory=list)

    def add(self, row: Row, state: dict[str, Any]) -> None:
        """One more row."""
        self.rows.append(row)
        self.states.append(copy.deepcopy(state))


LISTS = ("log", "items")
"""The append-like fields of a random history; `count` is a number, `data` a mapping that is patched."""


def random_history(seed: int, length: int, *, run_id: str = "run-1") -> History:
    """A history of `length` rows; the same seed makes the same one."""
    rng = random.Random(seed)
    history = History()
    first = {"count": 0, "data": {"a": 1, 2: "b"}, "log": [], "items": ["first"]}
    for seq in range(length):
        if seq == 0:
            row, state = _self_contained(rng, 0, None, first)
        elif rng.random() < 0.08:
            parent = rng.randrange(seq)
            row, state = _self_contained(rng, seq, parent, history.states[parent])
        elif rng.random() < 0.1:
            row, state = _interrupt(rng, history.rows[-1]), history.states[-1]
        else:
            row, state = _step(rng, history.rows[-1], history.states[-1])
        row.run_id, row.fingerprint, row.created_at = run_id, f"print-{rng.randrange(2)}", 1000.0 + seq / 7
        row.nodes, row.note = _nodes(rng), rng.choice([None, None, {"why": rng.choice(NASTY)}])
        history.add(row, state)
    return history


def _nodes(rng: random.Random) -> tuple[str, ...]:
    return tuple(rng.choice(["plan", "act", "späh\"'"]) for _ in range(rng.randrange(3)))


def _value(rng: random.Random) -> Any:
    return rng.choice([rng.randrange(1 << 40), rng.choice(NASTY), None, True, 1.5, (1, b"\0"), {"deep": [1, {3: 4}]}])


def _row(rng: random.Random, seq: int, parent: int | None, source: Source, snap: int, root: int) -> Row:
    marking = {"frontier": [["plan", rng.randrange(9)]], "joins": {}}
    return Row(seq=seq, parent=parent, source=source, step=seq, base=seq, snap=snap, root=root, marking=marking)


def _self_contained(
    rng: random.Random, seq: int, parent: int | None, state: Mapping[str, Any]
) -> tuple[Row, dict[str, Any]]:
    row = _row(rng, seq, parent, "input" if parent is None else "fork", snap=seq, root=seq)
    row.values = {name: value for name, value in state.items() if name not in LISTS}
    if parent is not None and rng.random() < 0.6:
        row.pointer = parent
        row.lists = _list_changes(rng, state)
        return row, {**state, **{name: delta.apply(state[name]) for name, delta in row.lists.items()}}
    row.lists = {name: ListDelta(state[name]) for name in LISTS if name in state}
    return row, dict(state)


def _interrupt(rng: random.Random, last: Row) -> Row:
    row = _row(rng, last.seq + 1, last.seq, "interrupt", last.snap, last.root)
    row.base, row.marking = last.base, last.marking
    row.questions = (
        Question("q", "key", "plan", 0, 0, prompt=rng.choice(NASTY), schema={"type": "string"}),
        Question("r", "key", "plan", 0, 1, kind="before", frame=("child", 3), answered=True, answer=False),
    )
    row.overlays = {0: {"data": {1: (2, 3)}}, 2: {}}
    return row


def _step(rng: random.Random, last: Row, before: Mapping[str, Any]) -> tuple[Row, dict[str, Any]]:
    row = _row(rng, last.seq + 1, last.seq, rng.choice(["step", "step", "end", "edit"]), last.snap, last.root)
    state = dict(before)
    if rng.random() < 0.5:
        row.values = {"count": _value(rng)} if rng.random() < 0.8 else {"late": _value(rng), "data": {}}
    state.update(row.values)
    if rng.random() < 0.4 and "data" not in row.values:
        row.patches = {"data": {rng.choice(["a", "b", 2, (1, 2), "$"]): _value(rng) for _ in range(2)}}
        state["data"] = {**state["data"], **row.patches["data"]}
    if rng.random() < 0.1:
        row.snap, row.patches = row.seq, {}
        row.values = {name: value for name, value in state.items() if name not in LISTS}
    row.lists = _list_changes(rng, state)
    state.update({name: delta.apply(state[name]) for name, delta in row.lists.items()})
    return row, state


def _list_changes(rng: random.Random, state: Mapping[str, Any]) -> dict[str, ListDelta]:
    changes = {}
    for name in LISTS:
        if rng.random() < 0.5:
            continue
        places = list(range(len(state[name])))
        rng.shuffle(places)
        change = rng.random() < 0.2
        put = tuple((place, _value(rng)) for place in places[:2]) if change else ()
        changes[name] = ListDelta(
            items=[_value(rng) for _ in range(rng.randrange(3))], put=put, drop=tuple(places[2:4]) if change else ()
        )
    return changes


def plain_rows(length: int, *, start: int = 0, created_at: float = 1000.0) -> list[Row]:
    """Simple rows: each sets `count` to its seq and appends it to `log`; row `start` is complete if it is 0."""
    return [
        Row(
            seq=seq,
            parent=seq - 1 if seq else None,
            source="step" if seq else "input",
            step=seq,
            base=seq,
            snap=0,
            root=0,
            marking=[["work"]],
            nodes=("work",),
            values={"count": seq},
            lists={"log": ListDelta([seq])},
            run_id="run-1",
            fingerprint="print-1",
            created_at=created_at,
        )
        for seq in range(start, start + length)
    ]
