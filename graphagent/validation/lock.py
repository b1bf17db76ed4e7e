"""The lock file: what every graph is, committed, so that a change of a graph is seen in review and by `check --locked`.

Source code, comments, descriptions and the order of declaration enter no hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from graphagent.errors import UsageError, alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.validation.changes import changes
from graphagent.validation.mapping import Mapper
from graphagent.validation.reasons import Reasons
from graphagent.validation.report import Diagnostic, Severity
from graphagent.validation.version import Version

LOCK_FILE = "graphs.lock.json"
_HASHES = ("topology", "state", "policy")
_SHAPE = ("kind", "destinations", "interrupts", "answer", "graph", "over", "item_key")
_POLICY = ("inputs", "outputs", "limits", "interrupt_before", "interrupt_after", "must_pass")


def lock_entry(graph: CompiledGraph) -> dict[str, Any]:
    """What is locked of a graph: name, version, fingerprint, three hashes, and the document without descriptions.

    `topology`: what leads where; `state`: fields, types, merge rules, defaults; `policy`: effects, limits, breakpoints,
    inputs and outputs, `must_pass`.
    """
    doc = _bare(Version.of(graph).doc)
    nodes = doc["nodes"]
    parts = {
        "topology": [
            doc["entry"],
            {name: _only(spec, _SHAPE) for name, spec in nodes.items()},
            *(doc.get(part) for part in ("edges", "routes", "joins", "errors")),
        ],
        "state": doc["state"],
        "policy": [_only(doc, _POLICY), _effects(nodes)],
    }
    return {
        "name": graph.name,
        "version": graph.definition.version,
        "fingerprint": graph.fingerprint,
        **{part: _hash(content) for part, content in parts.items()},
        "document": doc,
    }


def _bare(doc: Mapping[str, Any]) -> dict[str, Any]:
    nodes = {}
    for name, spec in doc["nodes"].items():
        nodes[name] = {key: value for key, value in spec.items() if key != "description"}
        if "child" in spec:
            nodes[name]["child"] = _bare(spec["child"])
    return {**doc, "nodes": nodes}


def _only(doc: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: doc[name] for name in names if name in doc}


def _effects(nodes: Mapping[str, Any]) -> dict[str, Any]:
    """Of nodes that have effects, or whose repetition does no harm."""
    named = {name: [spec.get("effects") or [], bool(spec.get("idempotent"))] for name, spec in nodes.items()}
    return {name: said for name, said in named.items() if any(said)}


def _hash(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def lock_text(graphs: Iterable[CompiledGraph]) -> str:
    """The lock file of these graphs: JSON with sorted keys, a value a line. Raises UsageError for two of one name."""
    entries: dict[str, Any] = {}
    for graph in graphs:
        entry = lock_entry(graph)
        if entries.get(graph.name, entry) != entry:
            raise UsageError(f"two graphs are called '{graph.name}', and a lock file goes by name; rename one of them")
        entries[graph.name] = entry
    return json.dumps({"schema": 1, "graphs": entries}, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def read_lock(path: str | Path) -> Mapping[str, Mapping[str, Any]]:
    """The entries of a lock file by name of the graph. Raises UsageError."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        graphs: Mapping[str, Mapping[str, Any]] = content["graphs"]
        if content["schema"] != 1 or not isinstance(graphs, dict):
            raise ValueError(f"its schema is {content['schema']!r}, known is 1")
    except FileNotFoundError as error:
        raise UsageError(f"there is no lock file '{path}'; make one with 'graphagent lock'") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"'{path}' can't be read as a lock file: {error}; make it anew with 'graphagent lock'"
        ) from error
    return graphs


def locked_version(path: str | Path, name: str) -> Version:
    """The version of a graph that a lock file has. Raises UsageError, with the nearest name, if it has none."""
    graphs = read_lock(path)
    if name not in graphs:
        raise UsageError(f"lock file '{path}' has no graph '{name}': {alternatives(name, graphs)}")
    return Version.read(graphs[name]["document"], path=str(path))


def compare(locked: Mapping[str, Mapping[str, Any]], graphs: Iterable[CompiledGraph]) -> list[Diagnostic]:
    """GA719 for each graph that is not what the lock file says, with what has changed; `locked` comes from `read_lock`.

    Another order of declaration alone is GA718, which is information.
    """
    found = []
    for graph in graphs:
        entry = locked.get(graph.name)
        if entry is None:
            text = f"graph '{graph.name}' is not in the lock file: {alternatives(graph.name, locked)}"
            found.append(_finding(graph, "GA719", "error", text))
            continue
        now = lock_entry(graph)
        parts = [part for part in _HASHES if entry.get(part) != now[part]]
        if parts:
            text = f"graph '{graph.name}' has another {' and '.join(parts)} than the lock file says"
            found.append(_finding(graph, "GA719", "error", text, _told(entry, graph)))
        elif entry["document"].get("order") != now["document"]["order"]:
            text = f"graph '{graph.name}' declares its nodes in another order than the lock file says"
            found.append(_finding(graph, "GA718", "info", text))
    return found


def _told(entry: Mapping[str, Any], graph: CompiledGraph) -> tuple[str, ...]:
    old, new = Version.read(entry["document"]), Version.of(graph)
    listed = changes(Reasons(new), Mapper(old, new), old, new)
    return tuple(f"{finding.code} {finding.message}" for finding in listed)


def _finding(
    graph: CompiledGraph, code: str, severity: Severity, message: str, related: tuple[str, ...] = ()
) -> Diagnostic:
    fix = "look at it with 'graphagent compat', then run 'graphagent lock'"
    return Diagnostic(code, severity, message, graph.name, (graph.name,), fix=fix, related=related)
