"""The abstract run of calls: what is done to the state, to mappings, and what makes results of nodes."""

from __future__ import annotations

import ast
import copy
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any, is_typeddict

import typing_extensions

from graphagent.graph.results import Command, Send
from graphagent.unset import UNSET
from graphagent.validation.inference.expressions import Expressions
from graphagent.validation.inference.values import (
    ANY_KEYS,
    NO_KEYS,
    NOTHING,
    OTHER,
    PACK,
    STATE,
    Keys,
    Value,
    as_result,
    keys,
    known,
    mapping,
)

COPIES = {"model_copy", "copy", "__copy__", "__deepcopy__"}
"""Methods of a state that give another with the same fields."""
CASTS = (typing.cast, typing_extensions.assert_type)
LOOKERS = (isinstance, type, id, callable)
"""Builtins that look at no field and change nothing."""
READERS = (len, print, str, repr, bool, list, tuple, set, sorted, any, all, sum, min, max, enumerate, zip, iter, next)
"""Builtins that change no mapping."""
Callee = types.FunctionType | types.MethodType | functools.partial  # type: ignore[type-arg]


class Calls(Expressions):
    """Expressions with calls."""

    def follow(self, callee: Any, positional: list[Value], keywords: Mapping[str, Value]) -> Value:
        """Run a function that gets the state; see `run`."""
        raise NotImplementedError

    def call(self, node: ast.Call) -> Value:
        """What a call gives, and what it does to what it is given."""
        if isinstance(node.func, ast.Attribute):
            base = self.value(node.func.value)
            if base.holds_state and base.kind != "pack":
                return self._state_method(node, node.func.attr, base)
            if base.kind == "keys" and isinstance(node.func.value, ast.Name):
                return self._mapping_method(node, node.func.value.id, node.func.attr, base.keys)
        elif not isinstance(node.func, ast.Name):
            self.use(node.func)
        callee = self.resolve(node.func)
        if callee is UNSET:
            last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            callee = {"Command": Command, "Send": Send}.get(last, UNSET)  # imported inside the function
        known_call = self._known_call(node, callee)
        return self._unknown_call(node, callee) if known_call is None else known_call

    def _known_call(self, node: ast.Call, callee: Any) -> Value | None:
        if callee is Command:
            return self._command(node)
        if callee is Send:
            return self._send(node)
        if callee is dict or is_typeddict(callee):
            return self._made_dict(node)
        if _is_one(callee, CASTS) and len(node.args) == 2:
            return self.value(node.args[1 if callee is typing.cast else 0])
        if _is_one(callee, (copy.copy, copy.deepcopy)) and node.args:
            return self.value(node.args[0])
        if _is_one(callee, (getattr, hasattr)) and len(node.args) > 1:
            return self._asked_for(node, bool(callee is hasattr or len(node.args) > 2))
        if _is_one(callee, LOOKERS) or _is_one(callee, READERS):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                value = self.value(argument)
                self.reads.open = self.reads.open or (value.holds_state and not _is_one(callee, LOOKERS))
            return OTHER
        return None

    def _asked_for(self, node: ast.Call, soft: bool) -> Value:
        """`getattr(state, name)`, `hasattr(state, name)`."""
        base = self.value(node.args[0])
        name = self.text(node.args[1])
        for argument in node.args[2:]:
            self.use(argument)
        if not base.holds_state:
            return OTHER
        if name is None:
            self.reads.open = True
        elif soft and name in self.reads.fields:
            self.reads.read(name, need=False)
            if len(node.args) == 2:
                self.reads.guard(name)
        elif not soft:
            self.read_attribute(name, need=base is STATE)
        return OTHER

    def _state_method(self, node: ast.Call, name: str, base: Value) -> Value:
        if name == "get" and "get" not in self.reads.fields and node.args:
            self.read_key(self.text(node.args[0]), need=False)
            self._use_arguments(node, 1)
            return OTHER
        self._use_arguments(node, 0)
        if name in COPIES and name not in self.reads.fields:
            return base
        self.read_attribute(name, need=base is STATE)
        return OTHER

    def _mapping_method(self, node: ast.Call, owner: str, method: str, held: Keys) -> Value:
        if method == "update":
            self.env[owner] = mapping(held.and_also(self._arguments_as_keys(node)))
            return NOTHING
        first = self.text(node.args[0]) if node.args else None
        self._use_arguments(node, 1)
        if method == "setdefault":
            self.env[owner] = mapping(held.opened() if first is None else held.and_also(keys([first])))
        elif method == "pop":
            self.env[owner] = mapping(held.unsure() if first is None else held.without(first))
        elif method == "copy":
            return mapping(held)
        elif method not in ("get", "keys", "values", "items"):
            self.env[owner] = mapping(held.unsure())
        return OTHER

    def _arguments_as_keys(self, node: ast.Call) -> Keys:
        """The keys of `dict(other, a=1, **more)`."""
        found = NO_KEYS
        for argument in node.args:
            found = found.and_also(self.spread(argument))
        for keyword in node.keywords:
            if keyword.arg is None:
                found = found.and_also(self.spread(keyword.value))
            else:
                self.use(keyword.value)
                found = found.and_also(keys([keyword.arg]))
        return found

    def _made_dict(self, node: ast.Call) -> Value:
        if len(node.args) == 1 and not node.keywords:
            only = self.value(node.args[0])
            if only.holds_state:
                return only  # a copy of the state
        return mapping(self._arguments_as_keys(node))

    def _command(self, node: ast.Call) -> Value:
        given: dict[str | None, ast.expr] = dict(zip(("update", "goto"), node.args, strict=False))
        given.update((keyword.arg, keyword.value) for keyword in node.keywords)
        if None in given or any(isinstance(argument, ast.Starred) for argument in node.args):
            self._use_arguments(node, 0)
            return Value("result", ANY_KEYS, ((None, ANY_KEYS),))
        update = self.value(given["update"]) if "update" in given else NOTHING
        if update.mapping is None:
            self.spend(given["update"], update)
        goto = self.value(given["goto"]) if "goto" in given else NOTHING
        if goto.holds_state:
            self.reads.open = True
        return Value("result", as_result(update), goto.sends)

    def _send(self, node: ast.Call) -> Value:
        given: dict[str | None, ast.expr] = dict(zip(("node", "overlay"), node.args, strict=False))
        given.update((keyword.arg, keyword.value) for keyword in node.keywords)
        target = self.text(given["node"]) if "node" in given else None
        overlay = self.spread(given["overlay"]) if "overlay" in given else NO_KEYS
        return Value("result", NO_KEYS, ((target, overlay),))

    def _unknown_call(self, node: ast.Call, callee: Any) -> Value:
        positional: list[Value] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                value = self.value(argument.value)
                positional.append(STATE if value is PACK and not positional else OTHER)
                if value.holds_state and positional[-1] is not STATE:
                    self.reads.open = True
            else:
                positional.append(self.value(argument))
        keywords = {keyword.arg: self.value(keyword.value) for keyword in node.keywords if keyword.arg}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.use(keyword.value)
        if any(value.holds_state for value in (*positional, *keywords.values())) and callee is not UNSET:
            if isinstance(node.func, ast.Attribute) and isinstance(callee, types.FunctionType):
                owner = self.resolve(node.func.value)
                if not isinstance(owner, type | types.ModuleType):
                    positional.insert(0, known(owner))
            self._spend_mappings(node)
            return self.follow(callee, positional, keywords)
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.use(argument.value if isinstance(argument, ast.Starred) else argument)
        return OTHER

    def _spend_mappings(self, node: ast.Call) -> None:
        """A function that is given a mapping may change it."""
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            if isinstance(argument, ast.Name) and self.value(argument).kind == "keys":
                self.use(argument)

    def _use_arguments(self, node: ast.Call, begin: int) -> None:
        for argument in node.args[begin:]:
            self.use(argument.value if isinstance(argument, ast.Starred) else argument)
        for keyword in node.keywords:
            self.use(keyword.value)


def _is_one(thing: Any, options: tuple[Any, ...]) -> bool:
    return any(thing is option for option in options)
