"""What the source of a function shows of how it ends: whether it may name nowhere to go, and what it names at once.

Only what is written there counts: an empty list, None, a mapping, the end of the body. What a call, a name or a
comprehension comes to isn't known, and is not taken for nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from graphagent.graph.names import END
from graphagent.validation.bodies import function_of
from graphagent.validation.inference.find import Function, body_of

_NEVER_RETURN = {"assert_never", "exit", "quit", "_exit", "abort"}


@lru_cache(maxsize=1024)
def may_choose_none(router: Callable[..., Any] | None) -> bool:
    """True if a router that may name several targets is seen to return none of them."""
    return _may_return(router, _is_empty)


@lru_cache(maxsize=1024)
def may_stay(fn: Callable[..., Any] | None) -> bool:
    """True if a node function that jumps is also seen to return without a jump."""
    return _may_return(fn, _is_no_jump)


def _may_return(fn: Callable[..., Any] | None, wanted: Callable[[ast.expr], bool]) -> bool:
    found = function_of(fn)
    body = None if found is None else body_of(found.__code__)
    if body is None:
        return False
    returned = [node.value for node in _returns(body.statements)]
    return any(value is None or _some(value, wanted) for value in returned) or (
        bool(returned) and not _leaves(body.statements)
    )


def _returns(body: Iterable[ast.AST]) -> Iterator[ast.Return]:
    """The returns of a function, without those of functions inside it."""
    for node in body:
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, Function | ast.ClassDef):
            yield from _returns(ast.iter_child_nodes(node))


def _some(value: ast.expr, wanted: Callable[[ast.expr], bool]) -> bool:
    """True if the value, or what a conditional expression makes of it, is as wanted."""
    if isinstance(value, ast.IfExp):
        return _some(value.body, wanted) or _some(value.orelse, wanted)
    return wanted(value)


def _is_empty(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return _called(value) in ("list", "tuple", "set") and not value.args
    empty = isinstance(value, ast.List | ast.Tuple) and not value.elts
    return empty or (isinstance(value, ast.Constant) and value.value in (None, ""))


def _is_no_jump(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):  # a `**` has no name, and may bring a goto along
        return (
            _called(value) == "Command" and not value.args and {"goto", None}.isdisjoint(k.arg for k in value.keywords)
        )
    return isinstance(value, ast.Dict) or (isinstance(value, ast.Constant) and value.value is None)


def _called(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """True if control surely doesn't come to the end of these statements."""
    return any(map(_is_left, body))


def _is_left(node: ast.stmt) -> bool:
    match node:
        case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.Expr(value=ast.Call() as call):
            return _called(call) in _NEVER_RETURN
        case ast.If(body=then, orelse=other):
            return _leaves(then) and _leaves(other)
        case ast.With(body=inner) | ast.AsyncWith(body=inner):
            return _leaves(inner)
        case ast.While(test=ast.Constant(value=asked), body=inner):
            return bool(asked) and not any(isinstance(each, ast.Break) for each in ast.walk(ast.Module(inner, [])))
        case ast.Try(body=inner, handlers=handlers, orelse=other, finalbody=last):
            done = _leaves(inner) or _leaves(other)
            return _leaves(last) or (done and all(_leaves(handler.body) for handler in handlers))
        case ast.Match(cases=cases):
            return all(_leaves(case.body) for case in cases) and any(_takes_all(case) for case in cases)
    return False


def _takes_all(case: ast.match_case) -> bool:
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


class Gotos(NamedTuple):
    """The gotos that are written out in a function, each as the ids or labels it names; `open`: there may be others."""

    sets: tuple[tuple[str, ...], ...] = ()
    open: bool = True


@lru_cache(maxsize=1024)
def gotos(fn: Callable[..., Any] | None) -> Gotos:
    """What a node function jumps to, as far as its source says so: `Command(goto=...)` takes one id, or several."""
    found = function_of(fn)
    body = None if found is None else body_of(found.__code__)
    if body is None:
        return Gotos()
    sets: dict[tuple[str, ...], None] = {}
    unclear = False
    inside = ast.Module(body.statements, [])
    calls = [node for node in ast.walk(inside) if isinstance(node, ast.Call) and _called(node) == "Command"]
    for call in calls:
        for value in _goto(call):
            named = _named(value)
            unclear = unclear or named is None
            sets.update(dict.fromkeys(named or ()))
    return Gotos(tuple(sets), unclear or not sets)


def _goto(call: ast.Call) -> list[ast.expr]:
    """What a Command is given as its goto; several if it can't be told which it is."""
    given = [keyword.value for keyword in call.keywords if keyword.arg in ("goto", None)]
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    return [*given, *(call.args if starred else call.args[1:2])]


def _named(value: ast.expr) -> list[tuple[str, ...]] | None:
    """The alternatives of a goto, Sends left out; None if they can't be seen."""
    match value:
        case ast.Constant(value=None):
            return []
        case ast.IfExp(body=one, orelse=other) | ast.BoolOp(values=[one, other]):
            first, second = _named(one), _named(other)
            return None if first is None or second is None else [*first, *second]
        case ast.ListComp(elt=ast.Call() as call) | (ast.Call() as call):
            return [] if _called(call) == "Send" else None
        case ast.List(elts=items) | ast.Tuple(elts=items):
            if items and all(isinstance(item, ast.Call) and _called(item) == "Send" for item in items):
                return []
            names = [_name(item) for item in items]
            known = tuple(dict.fromkeys(name for name in names if name is not None))
            return None if None in names or not known else [known]
    name = _name(value)
    return None if name is None else [(name,)]


def _name(value: ast.expr) -> str | None:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    return END if getattr(value, "id", getattr(value, "attr", None)) == "END" else None
