"""Graphs of other frameworks as targets: converted to the document of a graph, then checked like one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphagent.errors import UsageError
from graphagent.validation import load_document
from runner.check.find import Candidate
from runner.cli.options import Origin
from runner.cli.target import load_module, load_value, split_target
from runner.convert.langgraph import documents


def converter(origin: Origin | None) -> Callable[[str], list[Candidate]] | None:
    """What makes a candidate of a target of that framework; None for graphs of graphagent."""
    return None if origin is None else {Origin.langgraph: _langgraph}[origin]


def _langgraph(target: str) -> list[Candidate]:
    """A compiled graph of LangGraph, a builder, a function that makes one, or a file with its `get_graph().to_json()`;
    and every graph inside it. Raises UsageError.
    """
    file, value = _read(target) if target.endswith(".json") else _called(target)
    found = []
    for document in documents(value).values():
        source = load_document(document, path=file)
        found.append(Candidate(target, source.builder, file, source.facts, replayable=False))
    return found


def _read(path: str) -> tuple[str, Any]:
    try:
        return path, json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' can't be read as the JSON of a LangGraph graph: {error}") from error


def _called(target: str) -> tuple[str, Any]:
    place, name = split_target(target)
    if not name:
        raise UsageError(f"'{target}' doesn't say which graph; write module:name, such as 'app.agent:graph'")
    module = load_module(place)
    value = load_value(module, target)
    if callable(value) and not hasattr(value, "get_graph") and not hasattr(value, "compile"):
        try:
            value = value()
        except Exception as error:
            raise UsageError(f"making the graph '{target}' failed: {type(error).__name__}: {error}") from error
    return module.__file__ or "", value
