"""Where a node may jump: what its function can be seen to name in a goto or a Send.

Read from the compiled function (constants, closure, defaults), not from its source, so that it works for lambdas and
in a shell. It sees too much rather than too little: any constant that is a node id counts.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Collection, Iterator
from typing import Any


def visible_jumps(fn: Callable[..., Any] | None, nodes: Collection[str]) -> tuple[bool, tuple[str, ...]]:
    """Whether a function jumps (names `Send`, or `Command` with a goto), and the node ids it can be seen to name."""
    target = _function(fn)
    if target is None:
        return False, ()
    names, constants = _mentioned(target)
    if not _kinds(names, constants):
        return False, ()
    cells = [cell.cell_contents for cell in target.__closure__ or () if _filled(cell)]
    seen = [*constants, *_flat([*cells, *(target.__defaults__ or ()), *(target.__kwdefaults__ or {}).values()])]
    return True, tuple(dict.fromkeys(x for x in seen if isinstance(x, str) and x in nodes))


def jump_kinds(fn: Callable[..., Any] | None) -> tuple[str, ...]:
    """How a function can be seen to jump: `goto`, `send`, both or neither."""
    target = _function(fn)
    return () if target is None else _kinds(*_mentioned(target))


def _mentioned(target: types.FunctionType) -> tuple[set[str], list[Any]]:
    names: set[str] = set()
    constants: list[Any] = []
    for code in _codes(target.__code__):
        names.update(code.co_names, code.co_freevars)
        constants += _flat(code.co_consts)
    return names, constants


def _kinds(names: set[str], constants: list[Any]) -> tuple[str, ...]:
    goto = ("goto",) if "Command" in names and "goto" in constants else ()
    return (*goto, "send") if "Send" in names else goto


def _function(fn: Any) -> types.FunctionType | None:
    while isinstance(fn, functools.partial):
        fn = fn.func
    fn = getattr(fn, "__func__", fn)
    if not isinstance(fn, types.FunctionType) and hasattr(fn, "__call__"):  # noqa: B004
        fn = getattr(type(fn).__call__, "__func__", type(fn).__call__)
    return fn if isinstance(fn, types.FunctionType) else None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _flat(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, tuple | list | frozenset | set):
            found += _flat(value)
        elif isinstance(value, str):
            found.append(value)
    return found


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
