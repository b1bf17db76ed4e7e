"""The code of a node, as it stands in its file."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

from graphagent.graph.compiled import CompiledGraph


class Source(NamedTuple):
    """The source of a function. `what`: of which node, as what; `place`: file and line; `text`: the code, or in
    parentheses why there is none."""

    what: str
    place: str
    text: str


def sources_of(graph: CompiledGraph, node: str) -> Iterator[Source]:
    """The function of a node, then its routers."""
    declared = graph.nodes[node]
    functions: list[tuple[str, Any]] = [(f"node '{node}'", declared.fn)]
    functions += [(f"router of '{node}'", route.router) for route in graph.routes if route.source == node]
    for what, function in functions:
        if function is None:
            yield Source(what, str(declared.place), f"(a node of kind '{declared.kind}', declared there)")
            continue
        plain: Any = inspect.unwrap(function.func if isinstance(function, partial) else function)
        if not inspect.isroutine(plain):
            plain = type(plain)
        try:
            lines, first = inspect.getsourcelines(plain)
            place = f"{_nearby(inspect.getsourcefile(plain))}:{first}"
            yield Source(what, place, dedent("".join(lines)).rstrip())
        except (OSError, TypeError):
            yield Source(what, str(declared.place), f"(the source of {function!r:.60} can't be read)")


def _nearby(file: str | None) -> str:
    """A file's path, from the current directory on if it is below."""
    path = Path(file or "").resolve()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
