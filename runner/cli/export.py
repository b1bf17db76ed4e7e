"""The command that writes a stored run to a file: export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from graphagent.checkpoint.portable import to_text
from graphagent.engine.export import export_lineage
from graphagent.errors import UsageError
from runner.cli.coverage_options import ExportOptions
from runner.cli.opening import stored_graph
from runner.cli.output import Output


def export(options: ExportOptions, output: Output) -> int:
    """Write a stored run to a file, or to standard output."""
    document = anyio.run(_document, options)
    text = to_text(document)
    if options.output is None:
        print(text, end="", file=output.stream, flush=True)
        return 0
    try:
        Path(options.output).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"'{options.output}' can't be written: {error.strerror}; give another --output") from error
    rows = sum(len(frame["rows"]) for frame in document["frames"].values())
    told = {"file": options.output, "lineage": options.lineage, "frames": len(document["frames"]), "rows": rows}
    output.show(told, f"wrote {options.output}: {rows} row(s) of '{options.lineage}'")
    return 0


async def _document(options: ExportOptions) -> dict[str, Any]:
    async with stored_graph(options) as executor:
        return await export_lineage(executor.store, executor.graph, options.lineage, target=options.graph or "")
