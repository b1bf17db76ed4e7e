"""What the names in a function stand for outside of it: closure, globals, builtins; nothing is called to find out."""

from __future__ import annotations

import builtins
import inspect
import types
from collections.abc import Mapping
from typing import Any

from graphagent.unset import UNSET

_PLAIN = (str, int, type, Mapping, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


class Scope:
    """The names around a function."""

    def __init__(self, fn: types.FunctionType) -> None:
        self.globals = fn.__globals__
        self.cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False))

    def find(self, name: str) -> Any:
        """The object that a free name stands for now, or UNSET."""
        if name in self.cells:
            try:
                return self.cells[name].cell_contents
            except ValueError:
                return UNSET
        return self.globals.get(name, getattr(builtins, name, UNSET))


def attribute(thing: Any, name: str) -> Any:
    """A plain attribute of a module, a class or an instance, or UNSET; properties are not run."""
    try:
        found = inspect.getattr_static(thing, name)
    except AttributeError:
        return UNSET
    found = found.__func__ if isinstance(found, staticmethod) else found
    return found if found is None or isinstance(found, _PLAIN) else UNSET
