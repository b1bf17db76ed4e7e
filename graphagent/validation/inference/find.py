"""The syntax tree of a function that exists: found in the file it was compiled from, by line and name."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from graphagent.graph.syntax import parsed

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Body(NamedTuple):
    """Parameters and statements of a function; that of a lambda is one return. `generator`: it yields."""

    arguments: ast.arguments
    statements: list[ast.stmt]
    generator: bool


_files: dict[str, tuple[list[str], dict[tuple[int, str], list[Function]]]] = {}
"""Per file the lines it was parsed from (those that `linecache` keeps, to see that they are the same) and its
functions by first line and name."""


@lru_cache(maxsize=4096)
def body_of(code: types.CodeType) -> Body | None:
    """The tree of what was compiled to `code`; None where there is no source, or more than one function fits."""
    try:
        lines, _ = inspect.findsource(code)
        functions = _functions(code.co_filename, lines)
    except (OSError, TypeError, SyntaxError, ValueError, IndexError):
        return None
    found = [node for node in functions.get((code.co_firstlineno, code.co_name), ()) if _fits(node, code)]
    if len(found) > 1:
        found = _by_columns(found, code)
    if len(found) != 1:
        return None
    node = found[0]
    if isinstance(node, ast.Lambda):
        statements: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
    else:
        statements = node.body
    return Body(node.args, statements, any(isinstance(x, ast.Yield | ast.YieldFrom) for x in _own(statements)))


def _functions(filename: str, lines: list[str]) -> dict[tuple[int, str], list[Function]]:
    known = _files.get(filename)
    if known is None or known[0] is not lines:
        found: dict[tuple[int, str], list[Function]] = {}
        for node in ast.walk(parsed("".join(lines))):
            if isinstance(node, Function):
                name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
                found.setdefault((first, name), []).append(node)
        known = _files[filename] = (lines, found)
    return known[1]


def _fits(node: Function, code: types.CodeType) -> bool:
    """The parameters are the same: the file has not changed since it was compiled, or not here."""
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return names == list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def _by_columns(found: list[Function], code: types.CodeType) -> list[Function]:
    """Of several lambdas on one line the innermost that all instructions lie in."""
    spots = [(line, column) for line, _, column, _ in code.co_positions() if line is not None and column]
    if not spots:
        return found
    first, last = min(spots), max(spots)
    lambdas = [node for node in found if isinstance(node, ast.Lambda)]
    around = [node for node in lambdas if _start(node.body) <= first and last < _end(node.body)]
    return [*sorted(around, key=_start, reverse=True)[:1]]


def _start(node: ast.expr) -> tuple[int, int]:
    return (node.lineno, node.col_offset)


def _end(node: ast.expr) -> tuple[int, int]:
    return (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)


def _own(nodes: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes inside, but not those of functions and classes within."""
    todo: list[ast.AST] = list(nodes)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            todo += ast.iter_child_nodes(node)
