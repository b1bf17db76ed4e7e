"""Node results kept for a second use."""

from __future__ import annotations

import copy
import hashlib
import json
import time
from collections.abc import Iterable
from typing import Any, Protocol

from pydantic_core import to_jsonable_python

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.policies import CachePolicy
from graphagent.unset import UNSET


class NodeCache(Protocol):
    """Where results are kept. `namespace` is made of the graph's version and the node."""

    def get(self, namespace: str, key: str) -> Any:
        """The kept result, or UNSET."""
        ...

    def set(self, namespace: str, key: str, value: Any, ttl: float | None) -> None:
        """Keep a result for `ttl` seconds (None or not above 0: for ever)."""
        ...

    def clear(self, namespaces: Iterable[str] | None = None) -> None:
        """Forget the results of some namespaces, or of all."""
        ...


class MemoryCache:
    """A cache in this process. Values are copied on the way in and out."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[float | None, Any]] = {}

    def get(self, namespace: str, key: str) -> Any:
        """The kept result, or UNSET."""
        until, value = self._kept.get((namespace, key), (None, UNSET))
        if until is not None and time.monotonic() >= until:
            del self._kept[namespace, key]
            return UNSET
        return copy.deepcopy(value)

    def set(self, namespace: str, key: str, value: Any, ttl: float | None) -> None:
        """Keep a result for `ttl` seconds (None or not above 0: for ever)."""
        until = time.monotonic() + ttl if ttl is not None and ttl > 0 else None
        self._kept[namespace, key] = (until, copy.deepcopy(value))

    def clear(self, namespaces: Iterable[str] | None = None) -> None:
        """Forget the results of some namespaces, or of all."""
        gone = None if namespaces is None else set(namespaces)
        self._kept = {} if gone is None else {k: v for k, v in self._kept.items() if k[0] not in gone}


def cache_namespace(graph: CompiledGraph, node: str) -> str:
    """`<graph>:<version>:<node>`: another version of the graph has its own results."""
    return f"{graph.name}:{graph.definition.version}:{node}"


def cache_key(policy: CachePolicy, state: Any, values: dict[str, Any]) -> str | None:
    """The key of an activation's input: a SHA-256 of its canonical JSON; None (a miss) if it can't be made."""
    try:
        if policy.key is not None:
            wanted = policy.key(state)
        else:
            names = values if policy.fields is None else policy.fields
            wanted = {name: values[name] for name in names if name in values}
        text = json.dumps(to_jsonable_python(wanted), sort_keys=True)
    except Exception:
        return None
    return hashlib.sha256(text.encode()).hexdigest()
