"""Plain data of rows as they lie in the database: many blobs read at once, patches merged without decoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphagent.checkpoint.containers import TAG
from graphagent.checkpoint.plain_json import loads, plain_text


def loads_each(blobs: Sequence[bytes]) -> list[Any]:
    """`loads` of every blob, in one go: one call of the parser costs less than hundreds."""
    if any(blob[:1] == b"#" for blob in blobs):  # the marked form of plain_json can't be joined
        return [loads(blob) for blob in blobs]
    return list(loads(b"[" + b",".join(blobs) + b"]"))


def merge_plain(old: Any, patch: Any) -> Any:
    """The plain data of a mapping after a patch, both as `encode_mapping` writes them; neither is changed."""
    if TAG not in old and TAG not in patch:
        return {**old, **patch}
    tag = old[TAG][0] if TAG in old else patch[TAG][0]
    entries = {plain_text(key): [key, value] for mapping in (old, patch) for key, value in _pairs(mapping)}
    return {TAG: [tag, list(entries.values())]}


def _pairs(mapping: dict[str, Any]) -> Sequence[Sequence[Any]]:
    pairs: Sequence[Sequence[Any]] = mapping[TAG][1] if TAG in mapping else list(mapping.items())
    return pairs
