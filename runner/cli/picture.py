"""The command that draws a graph: graph."""

from __future__ import annotations

import json
from pathlib import Path

from graphagent.errors import UsageError
from graphagent.graph.compiled import CompiledGraph
from runner.cli.options import GraphOptions, PictureFormat
from runner.cli.output import Output, jsonable
from runner.cli.target import load_graph
from runner.picture.svg import picture


def graph(options: GraphOptions, output: Output) -> int:
    """Draw a graph in the asked format."""
    compiled = load_graph(options.target)
    text = drawn(compiled, options.format).rstrip("\n")
    if options.output is None:
        plain = options.format is PictureFormat.json
        output.show(compiled.to_json() if plain else {"format": options.format, "text": text}, text)
        return 0
    try:
        Path(options.output).write_text(text + "\n", "utf-8")
    except OSError as error:
        raise UsageError(f"'{options.output}' can't be written: {error.strerror}; give another --output") from error
    output.show({"format": options.format, "file": options.output}, f"wrote {options.output}")
    return 0


def drawn(compiled: CompiledGraph, format: PictureFormat) -> str:
    """The graph as text of that format."""
    match format:
        case PictureFormat.mermaid:
            return compiled.to_mermaid()
        case PictureFormat.dot:
            return compiled.to_dot()
        case PictureFormat.svg:
            return picture(compiled)
        case PictureFormat.json:
            return json.dumps(jsonable(compiled.to_json()), indent=2, ensure_ascii=False)
