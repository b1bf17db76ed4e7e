"""Exported runs as commands and the pytest plugin take them: read from a file, with the graph they are of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphagent.checkpoint.portable import from_text
from graphagent.errors import UsageError
from graphagent.graph.compiled import CompiledGraph
from runner.cli.target import load_graph


def read_text(path: str) -> str:
    """The text of a file. Raises UsageError for one that can't be read."""
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"'{path}' can't be read: {error}") from error


def read_run(path: str) -> dict[str, Any]:
    """The document of an exported run. Raises UsageError."""
    return from_text(read_text(path), path)


def graph_of_run(document: dict[str, Any], path: str, said: str | None = None) -> CompiledGraph:
    """The graph to go through a run: the one that is said, else the one that the file names. Raises UsageError."""
    target = said or document["target"]
    if not target:
        raise UsageError(f"'{path}' does not say which graph it is of: give --graph module:name")
    return load_graph(str(target))
