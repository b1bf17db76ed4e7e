"""Loads a graph anew after its source was changed, while the process goes on."""

from __future__ import annotations

import importlib
import linecache
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from graphagent.engine.nested import graphs_within
from graphagent.graph.compiled import CompiledGraph
from runner.cli.target import load_graph


def load_again(target: str, graph: CompiledGraph) -> CompiledGraph:
    """The graph that a target names, from the files as they are now.

    The modules below the current directory that the present graph's functions come from are imported again; others
    (the framework, installed packages) stay. Where that fails the old modules are put back, and the error is raised.
    """
    here = Path.cwd().resolve()
    names = {name for name in _modules(graph) if _is_below(name, here)}
    old = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    importlib.invalidate_caches()
    linecache.checkcache()
    try:
        return load_graph(target)
    except BaseException:
        sys.modules.update(old)
        raise


def _modules(graph: CompiledGraph) -> Iterator[str]:
    for one in graphs_within(graph):
        functions: list[Any] = [node.fn for node in one.defs]
        functions += [route.router for route in one.routes]
        functions.append(one.schema.state)
        for function in functions:
            plain = function.func if isinstance(function, partial) else function
            if plain is not None:
                yield getattr(plain, "__module__", "")
        yield from (name for name, module in list(sys.modules.items()) if _holds(module, one))


def _holds(module: Any, graph: CompiledGraph) -> bool:
    """True for a module in which the graph is named: that which the target is in."""
    return any(value is graph for value in list(getattr(module, "__dict__", {}).values()))


def _is_below(name: str, folder: Path) -> bool:
    if name == "__main__" or name.partition(".")[0] in ("graphagent", "processors", "runner"):
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    if not file:
        return False
    path = Path(file).resolve()
    return folder in path.parents and "site-packages" not in path.parts
