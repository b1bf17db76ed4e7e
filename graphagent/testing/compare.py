"""All that is stored of a lineage as plain values, so that two runs can be compared.

What differs from run to run by intent is left out: the name of the lineage, run ids and times.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from graphagent.checkpoint.store import CheckpointStore

OMITTED = ("run_id", "created_at", "finished")
LINEAGE = "<lineage>"
"""Stands for the name of the lineage, wherever that is stored."""


async def content(store: CheckpointStore, lineage: str) -> dict[str, Any]:
    """Every row of a lineage with its state, activations of open steps and effects, by `frame/number`.

    Frames and rows come in order; the root frame is `root`. A persistent store gives plain data, the memory store the
    values themselves. An unknown lineage has no content.
    """
    found: dict[str, Any] = {}
    for namespace in await store.namespaces(lineage):
        frame = namespace or "root"
        bases = set()
        for header in reversed(await store.history(lineage, namespace)):
            loaded = await store.load(lineage, namespace, header.seq)
            assert loaded is not None
            row = {**_plain(loaded.row), **_plain(loaded), "header": _plain(header)}
            found[f"{frame}/{header.seq}"] = _nameless(row, lineage)
            bases.add(loaded.row.base)
        for base in sorted(bases):
            activations = await store.activations(lineage, namespace, base, None)
            beside = {
                "activations": [_plain(row) for _, row in sorted(activations.items())],
                "effects": [_plain(row) for row in await store.effects(lineage, namespace, base)],
            }
            found[f"{frame}/{base} beside"] = _nameless(beside, lineage)
    return found


def differences(one: Mapping[str, Any], other: Mapping[str, Any], *, limit: int = 10) -> list[str]:
    """Where two contents differ, as lines such as `root/3: 'values': {...} instead of {...}`; at most `limit`."""
    lines = []
    for place in dict.fromkeys([*other, *one]):
        if place not in one or place not in other:
            lines.append(f"{place}: only in the {'first' if place in one else 'second'}")
            continue
        for name in one[place]:
            if one[place][name] != other[place].get(name):
                lines.append(f"{place}: '{name}': {one[place][name]!r:.300} instead of {other[place].get(name)!r:.300}")
    return lines[:limit]


def _plain(record: Any) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(record) if field.name not in OMITTED]
    return {name: getattr(record, name) for name in names if name != "row"}


def _nameless(value: Any, lineage: str) -> Any:
    if isinstance(value, str):
        if value == lineage or value.startswith(f"{lineage}:"):
            return LINEAGE + value[len(lineage) :]
        return value
    if isinstance(value, Mapping):
        return {_nameless(key, lineage): _nameless(item, lineage) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_nameless(item, lineage) for item in value)
    return value
