"""The command that writes the lock file: lock."""

from __future__ import annotations

from pathlib import Path

from graphagent.errors import GraphDefinitionError, UsageError
from graphagent.graph.builder import StateGraph
from graphagent.graph.compiled import CompiledGraph
from graphagent.validation.lock import lock_text
from runner.check.find import Candidate, find
from runner.check.settings import find_table, placed
from runner.cli.change_options import LockOptions
from runner.cli.output import Output


def lock(options: LockOptions, output: Output) -> int:
    """Write the lock file of all graphs that the targets name."""
    graphs = [_compiled(candidate) for candidate in _candidates(options)]
    path = Path(options.lock_file)
    text = lock_text(graphs)
    before = path.read_text("utf-8") if path.is_file() else None
    if before != text:
        try:
            path.write_text(text, "utf-8")
        except OSError as error:
            raise UsageError(f"'{path}' can't be written: {error.strerror}; give another --lock-file") from error
    names = sorted({graph.name for graph in graphs})
    said = "wrote" if before != text else "nothing has changed in"
    document = {"file": str(path), "graphs": names, "changed": before != text}
    output.show(document, f"{said} {path}: {', '.join(names)}")
    return 0


def _candidates(options: LockOptions) -> list[Candidate]:
    """What the targets lead to. Raises UsageError if any of them can't be looked at, or there is none."""
    root, table = find_table(Path.cwd())
    targets = options.targets or [placed(target, root) for target in table.get("targets", ())]
    if not targets:
        raise UsageError("nothing to lock: name a target, or 'targets' in [tool.graphagent.check] of pyproject.toml")
    found = find(tuple(targets))
    if found.failures:
        failed = "; ".join(f"{failure.target}: {failure.message}" for failure in found.failures)
        raise UsageError(f"nothing was locked, since not all could be looked at: {failed}")
    return found.candidates


def _compiled(candidate: Candidate) -> CompiledGraph:
    if isinstance(candidate.graph, GraphDefinitionError):
        raise candidate.graph
    return candidate.graph.compile() if isinstance(candidate.graph, StateGraph) else candidate.graph
