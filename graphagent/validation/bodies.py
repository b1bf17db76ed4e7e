"""What the function of a node asks and does through its context, read from its source.

Only calls on the context parameter itself are seen; a helper that is handed the context is not followed. Where there
is no source, or it can't be told apart (two lambdas on one line), the compiled function still shows whether it asks.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from graphagent.graph.signature import wants_context
from graphagent.validation.inference.find import body_of

_PLAIN = {
    "dict",
    "list",
    "set",
    "tuple",
    "str",
    "int",
    "float",
    "bool",
    "len",
    "sorted",
    "min",
    "max",
    "range",
    "enumerate",
}


@dataclass(frozen=True, slots=True)
class Body:
    """`asks`: keys of its questions, in order of the source; None for one that isn't a constant. `steps`: names that
    it gives to `ctx.step`, likewise. `keyed`: it takes an idempotency key. `acts_first`: something other than the
    context is called before a question, so that it is called again after the answer."""

    asks: tuple[str | None, ...] = ()
    steps: tuple[str | None, ...] = ()
    keyed: bool = False
    acts_first: bool = False


NOTHING = Body()


def read_body(fn: Callable[..., Any] | None) -> Body:
    """What a node function does with its context; nothing for one that takes none."""
    found = function_of(fn)
    if found is None or fn is None or not wants_context(fn):
        return NOTHING
    source = body_of(found.__code__)
    if source is None:
        return Body(asks=(None,), acts_first=True) if _mentions(found.__code__, "interrupt") else NOTHING
    context = _context(fn, source.arguments)
    return NOTHING if context is None else _read(source.statements, context)


def function_of(fn: Any) -> types.FunctionType | None:
    """The function behind partials, decorators and callable objects; None if there is none written in Python."""
    while isinstance(fn, partial):
        fn = fn.func
    if not inspect.isroutine(fn) and not isinstance(fn, type) and callable(fn):
        fn = fn.__call__
    fn = inspect.unwrap(getattr(fn, "__func__", fn))
    return fn if isinstance(fn, types.FunctionType) else None


def _context(fn: Callable[..., Any], arguments: ast.arguments) -> str | None:
    """The name of the second positional parameter, as the caller of `fn` sees them."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    seen = [p.name for p in inspect.signature(fn).parameters.values() if p.kind in kinds]
    own = {argument.arg for argument in (*arguments.posonlyargs, *arguments.args)}
    return seen[1] if seen[1] in own else None


def _read(statements: list[ast.stmt], context: str) -> Body:
    inside = ast.Module(statements, [])
    asks: list[str | None] = []
    steps: list[str | None] = []
    keyed = acts = acts_first = False
    for call in _calls(inside):
        method = _method(call, context)
        if method == "interrupt":
            asks.append(_constant(call, 0, "key"))
            acts_first = acts_first or acts
        elif method == "step":
            steps.append(_constant(call, 0, "name"))
        elif method == "idempotency_key":
            keyed = True
        elif _acts(call, context):
            acts = True
    return Body(tuple(asks), tuple(steps), keyed, acts_first or _in_turns(inside, context))


def _in_turns(tree: ast.AST, context: str) -> bool:
    """True if a loop asks and acts, so that some question comes after an act whatever their order in the text."""
    for loop in ast.walk(tree):
        if isinstance(loop, ast.For | ast.AsyncFor | ast.While):
            calls = list(_calls(loop))
            if any(_method(call, context) == "interrupt" for call in calls) and any(_acts(c, context) for c in calls):
                return True
    return False


def _acts(call: ast.Call, context: str) -> bool:
    """True if the call could do something outside: it is none of the context's, nor of a plain built-in."""
    if isinstance(call.func, ast.Name):
        return call.func.id not in _PLAIN
    return _method(call, context) is None


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls of a body in order of evaluation: arguments before the call they are for."""
    for child in ast.iter_child_nodes(tree):
        yield from _calls(child)
    if isinstance(tree, ast.Call):
        yield tree


def _method(call: ast.Call, context: str) -> str | None:
    called = call.func
    owned = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == context
    return called.attr if owned and isinstance(called, ast.Attribute) else None


def _constant(call: ast.Call, place: int, name: str) -> str | None:
    given = next((word.value for word in call.keywords if word.arg == name), None)
    if given is None and len(call.args) > place:
        given = call.args[place]
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else None


def _mentions(code: types.CodeType, name: str) -> bool:
    return name in code.co_names or any(
        _mentions(constant, name) for constant in code.co_consts if isinstance(constant, types.CodeType)
    )
