"""Rows of checkpoints as columns of the table `ga_rows`, and back.

Columns that can be told from others are NULL: `base` where it is the row's own seq, `parent` where it is the row
before. `delta` is JSON `[values, patches]` without empty ends, `lists` maps a field to `[items]` or
`[items, put, drop]`, `extra` has what most rows lack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, get_args

from graphagent.checkpoint.fold import Change
from graphagent.checkpoint.plain_json import dumps, loads
from graphagent.checkpoint.record import ActivationRow, ListDelta, Question, Row, Source
from graphagent.checkpoint.sql.plain import loads_each
from graphagent.checkpoint.store import PartCodec, encoded_fields, encoded_overlays

FRAME_SHIFT = 32
"""The id of a row is `frame << FRAME_SHIFT | seq`: one integer key, in which the rows of a frame lie together."""

COLUMNS = (
    "source", "step", "base", "snap", "root", "pointer", "parent", "created_at",
    "nodes", "marking", "delta", "lists", "extra",
)  # fmt: skip
SOURCES: tuple[Source, ...] = ("step", "input", "interrupt", "end", "edit", "fork", "error")
_SOURCE_CODES = {name: code for code, name in enumerate(SOURCES)}
_NO_PARENT = -1
_dumps_names = lru_cache(maxsize=1024)(dumps)  # of the same few nodes step after step
_DEFAULTS = {field.name: field.default for field in fields(Question)}
assert set(SOURCES) == set(get_args(Source))


def row_id(frame: int, seq: int) -> int:
    """The id of a row, from the id of its frame and its seq."""
    return frame << FRAME_SHIFT | seq


def seq_of(row_id: int) -> int:
    """The seq in a row's id."""
    return row_id & (1 << FRAME_SHIFT) - 1


def encode_row(row: Row, codec: PartCodec) -> tuple[Any, ...]:
    """The values of `COLUMNS`. Raises EncodeError."""
    seq = row.seq
    return (
        _SOURCE_CODES[row.source],
        row.step,
        None if row.base == seq else row.base,
        row.snap,
        row.root,
        row.pointer,
        None if row.parent == seq - 1 else _NO_PARENT if row.parent is None else row.parent,
        row.created_at,
        _dumps_names(row.nodes),
        _dumps_names(row.marking) if type(row.marking) is str else dumps(row.marking),
        _encode_delta(row, codec) if row.values or row.patches else None,
        _encode_lists(row.lists, codec) if row.lists else None,
        _encode_extra(row, codec) if row.overlays or row.questions or row.note is not None else None,
    )


def _encode_delta(row: Row, codec: PartCodec) -> bytes:
    values = encoded_fields(codec.encode_part, row.values)
    if not row.patches:
        return dumps([values])
    return dumps([values, encoded_fields(codec.encode_part, row.patches)])


def _encode_lists(lists: Mapping[str, ListDelta], codec: PartCodec) -> bytes:
    plain: dict[str, list[Any]] = {}
    for name, delta in lists.items():
        items = codec.encode_part(name, delta.items)
        plain[name] = [items]
        if delta.put or delta.drop:
            values = codec.encode_part(name, [value for _, value in delta.put])
            put = [[index, value] for (index, _), value in zip(delta.put, values, strict=True)]
            plain[name] = [items, put, delta.drop]
    return dumps(plain)


def _encode_extra(row: Row, codec: PartCodec) -> bytes:
    extra: dict[str, Any] = {}
    if row.overlays:
        extra["overlays"] = encoded_overlays(codec, row.overlays)
    if row.questions:
        extra["questions"] = [_plain_question(question) for question in row.questions]
    if row.note is not None:
        extra["note"] = row.note
    return dumps(extra)


def _plain_question(question: Question) -> dict[str, Any]:
    values = {name: getattr(question, name) for name in _DEFAULTS}
    return {name: value for name, value in values.items() if value != _DEFAULTS[name]}


def questions_of(extra: bytes | None) -> tuple[Question, ...]:
    """The questions in the column `extra`."""
    return () if extra is None else _questions(loads(extra))


def _questions(extra: Mapping[str, Any]) -> tuple[Question, ...]:
    plain = extra.get("questions", ())
    return tuple(Question(**{**q, "frame": tuple(q["frame"]) if q.get("frame") else None}) for q in plain)


def parent_of(seq: int, parent: int | None) -> int | None:
    """The parent that the column `parent` of row `seq` means."""
    if parent is None:
        return seq - 1 if seq else None
    return None if parent == _NO_PARENT else parent


def source_of(code: int) -> Source:
    """The source that the column `source` means."""
    return SOURCES[code]


def decode_row(seq: int, columns: Sequence[Any], codec: PartCodec | None) -> Row:
    """The row without its changes; `columns` are `COLUMNS`, then run id and fingerprint."""
    source, step, base, snap, root, pointer, parent, created_at, nodes, marking, _, _, extra, run_id, print_ = columns
    more = {} if extra is None else loads(extra)
    overlays = more.get("overlays", {})
    return Row(
        seq=seq,
        parent=parent_of(seq, parent),
        source=SOURCES[source],
        step=step,
        base=seq if base is None else base,
        snap=snap,
        root=root,
        marking=loads(marking),
        pointer=pointer,
        nodes=tuple(loads(nodes)),
        overlays={int(position): decoded_fields(overlay, codec) for position, overlay in overlays.items()},
        questions=_questions(more),
        note=more.get("note"),
        run_id=run_id,
        fingerprint=print_,
        created_at=created_at,
    )


def decoded_fields(plain: Mapping[str, Any], codec: PartCodec | None) -> dict[str, Any]:
    """Every entry decoded under its own name; plain data as it is without a codec. Raises DecodeError."""
    if codec is None:
        return dict(plain)
    return {name: codec.decode_part(name, value) for name, value in plain.items()}


def decode_deltas(blobs: Sequence[bytes | None]) -> list[Change]:
    """Plain data of the column `delta` of many rows."""
    return [
        Change(delta[0], delta[1] if len(delta) > 1 else {})
        for delta in loads_each([blob for blob in blobs if blob is not None])
    ]


def decode_lists(blobs: Sequence[bytes]) -> list[dict[str, ListDelta]]:
    """Plain data of the column `lists` of many rows."""
    return [{name: _list_delta(*parts) for name, parts in row.items()} for row in loads_each(blobs)]


def fold_list_blobs(blobs: Sequence[bytes]) -> dict[str, list[Any]]:
    """`fold_lists(decode_lists(blobs))`, without an object for each of thousands of rows."""
    state: dict[str, list[Any]] = {}
    for row in loads_each(blobs):
        for name, parts in row.items():
            old = state.get(name)
            if old is None:
                state[name] = parts[0]
            elif len(parts) == 1:
                old.extend(parts[0])
            else:
                state[name] = _list_delta(*parts).apply(old)
    return state


def _list_delta(items: list[Any], put: Sequence[Sequence[Any]] = (), drop: Sequence[int] = ()) -> ListDelta:
    return ListDelta(items, tuple((index, value) for index, value in put), tuple(drop))


def encode_plain_lists(lists: Mapping[str, ListDelta]) -> bytes:
    """The column `lists` from plain data (`prune` rewrites it without a codec)."""
    return dumps(
        {
            name: [delta.items, delta.put, delta.drop] if delta.put or delta.drop else [delta.items]
            for name, delta in lists.items()
        }
    )


def encode_activation(done: ActivationRow, codec: PartCodec) -> bytes:
    """The column `body` of `ga_activations`. Raises EncodeError."""
    body: dict[str, Any] = {"node": done.node}
    if done.update:
        body["update"] = encoded_fields(codec.encode_update, done.update)
    if done.goto is not None:
        body["goto"] = done.goto
    if done.sends is not None:
        body["sends"] = [[node, encoded_fields(codec.encode_part, overlay)] for node, overlay in done.sends]
    if done.note is not None:
        body["note"] = done.note
    return dumps(body)


def decode_activation(position: int, blob: bytes, codec: PartCodec | None) -> ActivationRow:
    """The activation of `encode_activation`. Raises DecodeError."""
    body = loads(blob)
    update = body.get("update", {})
    if codec is not None:
        update = {name: codec.decode_update(name, value) for name, value in update.items()}
    goto, sends = body.get("goto"), body.get("sends")
    return ActivationRow(
        position=position,
        node=body["node"],
        update=update,
        goto=None if goto is None else tuple(goto),
        sends=None if sends is None else tuple((node, decoded_fields(overlay, codec)) for node, overlay in sends),
        note=body.get("note"),
    )
