"""What a node is given: an instance of the declared state class that can't be assigned to.

Making one must cost next to nothing, so it is built without validation around the engine's own dictionary. Unset
required fields raise `UnsetField` when read.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from pydantic import BaseModel
from typing_extensions import is_typeddict

from graphagent.errors import StateError, UnsetField, alternatives

ViewMaker = Callable[[dict[str, Any]], Any]

_set = object.__setattr__


def view_maker(state: type, fields: tuple[str, ...]) -> ViewMaker:
    """A function that makes a read-only state from a dictionary of values, for a pydantic model, a dataclass or a
    TypedDict. The dictionary is not copied (a TypedDict's is) and must not change afterwards."""
    if is_typeddict(state):
        return _dict_view(state, fields)
    if issubclass(state, BaseModel):
        return _model_view(state, fields)
    return _dataclass_view(state, fields)


def _unset(state: str, name: str) -> NoReturn:
    raise UnsetField(
        f"state field '{name}' of '{state}' was read before anything was written to it; "
        f"give it a default, pass it as input, or write it in an earlier node",
        field=name,
    )


def _refuse(self: Any, name: str, *_: Any) -> NoReturn:
    raise StateError(
        f"the state is read-only: '{name}' can't be assigned or deleted; return {{'{name}': ...}} from the node",
        field=name,
    )


def _missing_attribute(state: type, fields: tuple[str, ...]) -> Callable[[Any, str], Any]:
    known = frozenset(fields)
    inherited = getattr(state, "__getattr__", None)

    def getattribute(self: Any, name: str) -> Any:
        if name in known:
            _unset(state.__name__, name)
        if inherited is not None:
            try:
                return inherited(self, name)
            except AttributeError:
                pass
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"'{state.__name__}' has no field '{name}': {alternatives(name, fields)}")

    return getattribute


def _thawed(state: type) -> Callable[[Any], Any]:
    """Copying a view gives an ordinary instance that may be changed."""

    def copied(self: Any, _: Any = None) -> Any:
        instance: Any = object.__new__(state)
        _set(instance, "__dict__", dict(self.__dict__))
        if issubclass(state, BaseModel):
            _set(instance, "__pydantic_fields_set__", set(self.__dict__))
            _set(instance, "__pydantic_extra__", None)
            _set(instance, "__pydantic_private__", None)
        return instance

    return copied


def _has_cached_property(state: type) -> bool:
    return any(isinstance(v, functools.cached_property) for c in state.__mro__ for v in vars(c).values())


def _model_view(state: type[BaseModel], fields: tuple[str, ...]) -> ViewMaker:
    thaw = _thawed(state)
    namespace: dict[str, Any] = {
        "__module__": state.__module__,
        "__qualname__": state.__qualname__,
        "__doc__": state.__doc__,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__getattr__": _missing_attribute(state, fields),
        "__copy__": thaw,
        "__deepcopy__": lambda self, memo: copy.deepcopy(thaw(self), memo),
    }
    metaclass: Any = type(state)
    view = metaclass(state.__name__, (state,), namespace)
    # plain class attributes in place of pydantic's per-instance slots: nothing to set when a view is made
    type.__setattr__(view, "__pydantic_extra__", None)
    type.__setattr__(view, "__pydantic_private__", None)
    type.__setattr__(view, "__pydantic_fields_set__", property(lambda self: set(self.__dict__)))
    private = bool(state.__private_attributes__)
    own_dict = _has_cached_property(state)
    new = object.__new__

    def make(values: dict[str, Any]) -> Any:
        instance = new(view)
        _set(instance, "__dict__", values)
        return instance

    def make_full(values: dict[str, Any]) -> Any:
        instance = new(view)
        _set(instance, "__dict__", dict(values))
        if private:
            instance.model_post_init(None)
        return instance

    return make_full if private or own_dict else make


def _dataclass_view(state: type, fields: tuple[str, ...]) -> ViewMaker:
    slots = "__dict__" not in dir(state) or any("__slots__" in vars(c) for c in state.__mro__[:-1])
    namespace = {
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__getattr__": _missing_attribute(state, fields),
        "__module__": state.__module__,
        "__qualname__": state.__qualname__,
    }
    if not slots:
        namespace["__copy__"] = _thawed(state)
    else:
        namespace["__slots__"] = ()
    view = type(state.__name__, (state,), namespace)
    own_dict = _has_cached_property(state)

    def make(values: dict[str, Any]) -> Any:
        instance: Any = object.__new__(view)
        if slots:
            for name, value in values.items():
                _set(instance, name, value)
        else:
            _set(instance, "__dict__", dict(values) if own_dict else values)
        return instance

    return make


def _dict_view(state: Any, fields: tuple[str, ...]) -> ViewMaker:
    name_of_state = state.__name__

    def missing(self: Any, key: Any) -> NoReturn:
        if key in fields:
            _unset(name_of_state, key)
        raise KeyError(f"'{name_of_state}' has no field '{key}': {alternatives(str(key), fields)}")

    def refuse_change(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse(self, str(next(iter(args), next(iter(kwargs), "a field"))))

    changes = ("__setitem__", "__delitem__", "update", "pop", "popitem", "clear", "setdefault", "__ior__")
    namespace: dict[str, Any] = dict.fromkeys(changes, refuse_change)
    namespace["__missing__"] = missing
    view: ViewMaker = type(name_of_state, (dict,), namespace)
    return view


def values_of(view: Any) -> Mapping[str, Any]:
    """The values inside a view (or an instance of the state class)."""
    if isinstance(view, dict):
        return view
    if dataclasses.is_dataclass(view) and not hasattr(view, "__dict__"):
        return {f.name: getattr(view, f.name) for f in dataclasses.fields(view) if hasattr(view, f.name)}
    found: Mapping[str, Any] = view.__dict__
    return found
