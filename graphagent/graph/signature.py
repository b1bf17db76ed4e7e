"""What can be read off a function once, at compile: sync or async, with or without a context, declared labels."""

from __future__ import annotations

import enum
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

CONTEXT_TYPE = "NodeContext"


def is_async(fn: Callable[..., Any]) -> bool:
    """True for an async function, also behind `functools.partial` or as an object with an async `__call__`."""
    while hasattr(fn, "func"):
        fn = fn.func
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004


def wants_context(fn: Callable[..., Any]) -> bool:
    """True if the function takes a context as its second parameter: named `ctx`, annotated `NodeContext`, or
    without a default."""
    try:
        parameters = [
            p
            for p in inspect.signature(fn).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        return False
    if len(parameters) < 2:
        return False
    second = parameters[1]
    annotation = second.annotation
    named = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return second.name == "ctx" or named.split(".")[-1] == CONTEXT_TYPE or second.default is second.empty


def takes_arguments(fn: Callable[..., Any], count: int) -> bool:
    """True if the function can be called with `count` positional arguments (or can't be looked into)."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


def declared_labels(fn: Callable[..., Any]) -> tuple[Any, ...] | None:
    """The labels a router's return annotation declares: `Literal[...]`, an Enum, or a list or union of those.

    None if the annotation says nothing (or says something else).
    """
    try:
        hints = typing.get_type_hints(fn)
    except Exception:
        return None
    return _labels(hints.get("return"))


def _labels(annotation: Any) -> tuple[Any, ...] | None:
    origin = get_origin(annotation)
    if origin is Literal:
        return get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return tuple(annotation)
    if origin in (typing.Union, types.UnionType):
        parts = [_labels(arg) for arg in get_args(annotation) if arg is not type(None)]
        return None if any(part is None for part in parts) else tuple(x for part in parts for x in part or ())
    if origin is not None and isinstance(origin, type) and issubclass(origin, list | tuple | set | frozenset):
        arguments = [arg for arg in get_args(annotation) if arg is not Ellipsis]
        return _labels(arguments[0]) if arguments else None
    return None
