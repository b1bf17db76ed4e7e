"""An abstract run of a whole function, and of those that it hands the state to."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Collection, Mapping
from functools import reduce
from typing import Any

from graphagent.validation.inference.find import body_of
from graphagent.validation.inference.reads import UNSEEN, Inferred, Reads
from graphagent.validation.inference.scope import Scope
from graphagent.validation.inference.statements import Statements
from graphagent.validation.inference.values import (
    ANY_KEYS,
    NOTHING,
    OTHER,
    PACK,
    STATE,
    Value,
    as_result,
    either,
    known,
)

DEEPEST = 5
"""Calls within calls that are followed."""


def infer(fn: Callable[..., Any], state: type, fields: Collection[str]) -> Inferred:
    """What a node function, a router or a predicate does with the state that it gets as its first argument.

    `state`: the class of the state, `fields`: its fields. Where the source can't be had, or the state goes where it
    can't be followed, the result says so. Nothing of the function is executed.
    """
    reads = Reads(state, fields)
    value = _run(fn, [STATE], {}, reads)
    if value is None:
        return UNSEEN
    needs = reads.needs - reads.guarded
    return Inferred(
        frozenset(reads.reads),
        frozenset(needs),
        reads.open or value.holds_state,
        as_result(value),
        value.sends,
        frozenset(reads.undeclared - reads.guarded),
    )


class _Run(Statements):
    """Follows the state into functions that are known."""

    def follow(self, callee: Any, positional: list[Value], keywords: Mapping[str, Value]) -> Value:
        """What a function gives that gets the state; if it can't be looked into, anything may have been read."""
        found = _run(callee, positional, keywords, self.reads)
        if found is None:
            self.reads.open = True
            return OTHER
        return found


def _run(fn: Any, positional: list[Value], keywords: Mapping[str, Value], reads: Reads) -> Value | None:
    """What a function returns; None if it can't be looked into."""
    while isinstance(fn, functools.partial):
        positional = [*map(known, fn.args), *positional]
        keywords = {**{name: known(item) for name, item in fn.keywords.items()}, **keywords}
        fn = fn.func
    if not isinstance(fn, types.FunctionType | types.MethodType | type):
        fn = getattr(fn, "__call__", fn)  # noqa: B004 - an object that can be called
    if isinstance(fn, types.MethodType):
        positional = [known(fn.__self__), *positional]
        fn = fn.__func__
    if not isinstance(fn, types.FunctionType) or fn.__code__ in reads.active or len(reads.active) >= DEEPEST:
        return None
    body = body_of(fn.__code__)
    env = None if body is None else _bound(fn, positional, keywords)
    if body is None or env is None or body.generator:
        return None
    run = _Run(reads, Scope(fn), env)
    run.setup()
    reads.active.append(fn.__code__)
    if run.run(body.statements):
        run.returned.append(NOTHING)
    reads.active.pop()
    return reduce(either, run.returned) if run.returned else Value("result", ANY_KEYS)


def _bound(fn: types.FunctionType, positional: list[Value], keywords: Mapping[str, Value]) -> dict[str, Value] | None:
    """Parameters and their arguments; None if the state is among arguments that have no parameter of their own."""
    code = fn.__code__
    names = code.co_varnames[: code.co_argcount]
    env = dict.fromkeys((*code.co_varnames, *code.co_cellvars), OTHER)
    defaults = fn.__defaults__ or ()
    env.update(zip(names[len(names) - len(defaults) :], map(known, defaults), strict=True))
    env.update((name, known(item)) for name, item in (fn.__kwdefaults__ or {}).items())
    env.update(zip(names, positional, strict=False))
    rest = positional[len(names) :]
    at = code.co_argcount + code.co_kwonlyargcount
    if code.co_flags & 0x04:  # *args
        env[code.co_varnames[at]] = PACK if rest and rest[0] is STATE else OTHER
        rest = rest[1:] if rest and rest[0] is STATE else rest
        at += 1
    if code.co_flags & 0x08:  # **kwargs
        env[code.co_varnames[at]] = OTHER
    taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    stray = {name: value for name, value in keywords.items() if name not in taken}
    env.update((name, value) for name, value in keywords.items() if name in taken)
    return None if any(value.holds_state for value in (*rest, *stray.values())) else env
