"""Python source to its syntax tree, undisturbed by the garbage collector."""

from __future__ import annotations

import ast
import gc


def parsed(source: str) -> ast.Module:
    """The tree of a module's source. Raises SyntaxError or ValueError where it is none."""
    return _undisturbed(source, "exec")  # type: ignore[return-value]


def expression(source: str) -> ast.expr:
    """The tree of one expression. Raises SyntaxError or ValueError where it is none."""
    return _undisturbed(source, "eval").body  # type: ignore[attr-defined, no-any-return]


def _undisturbed(source: str, mode: str) -> ast.AST:
    # CPython 3.11 counts the depth of a tree under construction in one place for the whole interpreter. A collection
    # in between runs finalizers, and one that formats a traceback parses as well: "recursion depth mismatch".
    collecting = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source, mode=mode)
    finally:
        if collecting:
            gc.enable()
