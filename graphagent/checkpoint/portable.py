"""A lineage as one JSON document, free of any store, and back into a store.

Every row is there, with what it changed; so are results of open steps, side effects and the documents of the graphs
that wrote the rows. State is in its stored form: what a codec makes of it, never an object.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from graphagent.checkpoint.plain_json import dumps
from graphagent.checkpoint.record import ActivationRow, EffectRow, ListDelta, Loaded, Question, Row, Unencoded
from graphagent.checkpoint.store import CheckpointStore, PartCodec, encoded_fields, encoded_overlays
from graphagent.errors import UsageError, alternatives

SCHEMA = 1
_BARE = ("parent", "source", "step", "base", "nodes", "note", "run_id", "fingerprint", "created_at")
_QUESTION = {field.name for field in fields(Question)}


class PlainCodec:
    """Passes on what is plain data already."""

    def encode_part(self, field: str, part: Any) -> Any:
        """The part itself."""
        return part

    def decode_part(self, field: str, plain: Any) -> Any:
        """The data itself."""
        return plain

    def encode_update(self, field: str, update: Any) -> Any:
        """The update itself."""
        return update

    def decode_update(self, field: str, plain: Any) -> Any:
        """The data itself."""
        return plain


async def read_frame(
    store: CheckpointStore, lineage: str, namespace: str, codec: PartCodec, lists: Collection[str]
) -> dict[str, Any]:
    """The document of one frame.

    `codec`: for a store that keeps objects. `lists`: the fields that grow by appending. Raises CheckpointError.
    """
    plain = PlainCodec() if store.persistent else codec
    rows: list[dict[str, Any]] = []
    beside: dict[str, Any] = {}
    before: tuple[int, Mapping[str, Any]] | None = None
    for header in reversed(await store.history(lineage, namespace)):
        loaded = await store.load(lineage, namespace, header.seq)
        if loaded is None:  # pruned meanwhile
            continue
        values = encoded_fields(plain.encode_part, loaded.values)
        rows.append(_row_document(loaded, values, before, plain, lists))
        before = header.seq, values
        done = await store.activations(lineage, namespace, header.seq, None)
        effects = await store.effects(lineage, namespace, header.seq)
        if done or effects:
            beside[str(header.seq)] = {
                "results": [_activation_document(one, plain) for one in done.values()],
                "effects": [_effect_document(one) for one in effects],
            }
    return {"lists": sorted(lists), "rows": rows, "beside": beside}


def _effect_document(effect: EffectRow) -> dict[str, Any]:
    kept = effect.result
    return asdict(replace(effect, result=kept.plain()) if isinstance(kept, Unencoded) else effect)


def _row_document(
    loaded: Loaded,
    values: Mapping[str, Any],
    before: tuple[int, Mapping[str, Any]] | None,
    codec: PartCodec,
    lists: Collection[str],
) -> dict[str, Any]:
    row = loaded.row
    bare = {name: getattr(row, name) for name in _BARE}
    asked = [{**asdict(question), "frame": question.frame} for question in row.questions]
    overlays = encoded_overlays(codec, row.overlays)
    changes = _changes(values, before[1], lists) if before is not None and before[0] == row.parent else None
    if changes is None:
        changes = (
            {name: value for name, value in values.items() if name not in lists},
            {name: value for name, value in values.items() if name in lists},
        )
        bare["whole"] = True
    more = {"questions": asked, "overlays": overlays, "values": changes[0], "appended": changes[1]}
    return {"seq": row.seq, **bare, "marking": row.marking, **{name: value for name, value in more.items() if value}}


def _changes(
    values: Mapping[str, Any], before: Mapping[str, Any], lists: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Changed values and appended items; None if that can't say it."""
    if before.keys() - values.keys():
        return None
    changed: dict[str, Any] = {}
    appended: dict[str, Any] = {}
    for name, value in values.items():
        old = before.get(name)
        if name in before and dumps(value) == dumps(old):  # equality of values would mix up 1, 1.0 and True
            continue
        if name not in lists:
            changed[name] = value
        elif old is None or (len(value) > len(old) and dumps(value[: len(old)]) == dumps(old)):
            appended[name] = value[len(old or ()) :]
        else:
            return None
    return changed, appended


def _activation_document(done: ActivationRow, codec: PartCodec) -> dict[str, Any]:
    sends = None
    if done.sends is not None:
        sends = [[node, encoded_fields(codec.encode_part, overlay)] for node, overlay in done.sends]
    update = encoded_fields(codec.encode_update, done.update)
    return {"position": done.position, "node": done.node, "update": update, "goto": done.goto, "sends": sends,
            "note": done.note}  # fmt: skip


async def write_lineage(store: CheckpointStore, document: Mapping[str, Any], *, lineage: str | None = None) -> str:
    """Put an exported lineage into a store, as it was or under another name; returns the name.

    The store must be persistent, since the document has state in its stored form. Raises UsageError for a malformed
    document or a store that keeps objects, CheckpointError for a lineage that has rows already.
    """
    if not store.persistent:
        raise UsageError("an exported run goes into a store that encodes, such as SqlCheckpoints('sqlite://')")
    name = lineage or str(document["lineage"])
    try:
        frames = {namespace: (_rows(frame), _beside(frame)) for namespace, frame in document["frames"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        text = f"the exported run '{name}' is malformed: {type(error).__name__}: {error}; export it again"
        raise UsageError(text) from error
    for fingerprint, graph in document["graphs"].items():
        await store.save_graph(fingerprint, graph)
    codec = PlainCodec()
    lease = await store.acquire(name, "import")
    try:
        for namespace, (rows, beside) in frames.items():
            await store.append(lease, namespace, rows, codec)
            for base, done, effects in beside:
                if done:
                    await store.put_activations(lease, namespace, base, done, codec)
                for effect in effects:
                    await store.claim_effect(lease, namespace, effect)
    finally:
        await store.release(lease)
    return name


def _beside(frame: Mapping[str, Any]) -> list[tuple[int, list[ActivationRow], list[EffectRow]]]:
    """Per row what is kept beside it: results of its open step, side effects."""
    return [
        (int(base), [_activation(one) for one in beside["results"]], [EffectRow(**one) for one in beside["effects"]])
        for base, beside in frame["beside"].items()
    ]


def _rows(frame: Mapping[str, Any]) -> list[Row]:
    rows: list[Row] = []
    snap = 0
    for one in frame["rows"]:
        seq = int(one["seq"])
        snap = seq if one.get("whole") else snap
        bare: dict[str, Any] = {name: tuple(one[name]) if name == "nodes" else one[name] for name in _BARE}
        rows.append(
            Row(
                seq=seq,
                snap=snap,
                root=snap,
                marking=one["marking"],
                values=one.get("values", {}),
                lists={name: ListDelta(items) for name, items in one.get("appended", {}).items()},
                overlays={int(place): overlay for place, overlay in one.get("overlays", {}).items()},
                questions=tuple(_question(asked) for asked in one.get("questions", ())),
                **bare,
            )
        )
    return rows


def _question(plain: Mapping[str, Any]) -> Question:
    given = {name: value for name, value in plain.items() if name in _QUESTION}
    return Question(**{**given, "frame": None if plain.get("frame") is None else tuple(plain["frame"])})


def _activation(plain: Mapping[str, Any]) -> ActivationRow:
    goto, sends = plain["goto"], plain["sends"]
    return ActivationRow(
        plain["position"],
        plain["node"],
        plain["update"],
        None if goto is None else tuple(goto),
        None if sends is None else tuple((node, overlay) for node, overlay in sends),
        plain["note"],
    )


def to_text(document: Mapping[str, Any]) -> str:
    """The document as text, a line for each row. Raises UsageError for an integer too long for JSON."""
    frames = document["frames"]
    head = {name: value for name, value in document.items() if name != "frames"}
    try:
        parts = [f"{_text(name)}: {_text(value)}" for name, value in head.items()]
        parts.append('"frames": {\n' + ",\n".join(f"{_text(n)}: {_frame_text(f)}" for n, f in frames.items()) + "\n}")
    except ValueError as error:
        raise UsageError(f"lineage '{document['lineage']}' can't be written as JSON: {error}") from error
    return "{\n" + ",\n".join(parts) + "\n}\n"


def from_text(text: str, path: str) -> dict[str, Any]:
    """The document in a text. Raises UsageError for one that isn't there; `path` says where the text is from."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' is not an exported run: {error}") from error
    wanted = ("schema", "lineage", "target", "graphs", "frames")
    missing = [name for name in wanted if not isinstance(document, dict) or name not in document]
    if missing:
        raise UsageError(f"'{path}' is not an exported run: it has no '{missing[0]}'; 'graphagent export' writes one")
    if document["schema"] != SCHEMA:
        shown = alternatives(str(document["schema"]), [str(SCHEMA)])
        raise UsageError(f"'{path}' has schema {document['schema']!r:.20} ({shown}); export the run again")
    return dict(document)


def _frame_text(frame: Mapping[str, Any]) -> str:
    rows: Sequence[Any] = frame["rows"]
    body = ",\n".join(map(_text, rows))
    return f'{{"lists": {_text(frame["lists"])}, "rows": [\n{body}\n], "beside": {_text(frame["beside"])}}}'


def _text(value: Any) -> str:
    """JSON that any reader of UTF-8 takes: a lone surrogate, which has no bytes there, is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
