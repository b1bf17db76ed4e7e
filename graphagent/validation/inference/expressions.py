"""The abstract run of expressions: which of them are the state, and what of it they read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from graphagent.unset import UNSET
from graphagent.validation.inference.reads import Reads
from graphagent.validation.inference.scope import Scope, attribute
from graphagent.validation.inference.values import (
    ANY_KEYS,
    NO_KEYS,
    OTHER,
    STATE,
    Keys,
    Value,
    either,
    keys,
    known,
    mapping,
)

Environment = dict[str, Value]


class Expressions:
    """Evaluates expressions over an environment of local names.

    A value that is looked at in a way that is not understood is `spent`: if it is the state, then anything of it may
    have been read; if it is a mapping that a name holds, then anything may have been put into it.
    """

    def __init__(self, reads: Reads, scope: Scope, env: Environment) -> None:
        self.reads = reads
        self.scope = scope
        self.env = env
        self.kinds: dict[type[ast.expr], Callable[[Any], Value]] = {
            ast.Constant: lambda node: known(node.value),
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.Call: self.call,
            ast.Dict: self._dict,
            ast.DictComp: self._dict_comprehension,
            ast.ListComp: self._comprehension,
            ast.SetComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.List: self._several,
            ast.Tuple: self._several,
            ast.IfExp: self._choice,
            ast.BoolOp: self._one_of,
            ast.BinOp: self._binary,
            ast.Compare: self._compare,
            ast.NamedExpr: self._walrus,
            ast.Lambda: self._lambda,
            ast.Await: lambda node: self.value(node.value),
        }

    def value(self, node: ast.expr) -> Value:
        """What an expression is; names are left as they are."""
        kind = self.kinds.get(type(node))
        if kind is not None:
            return kind(node)
        self._use_children(node)
        return OTHER

    def use(self, node: ast.expr) -> Value:
        """Evaluate an expression whose value goes where it can't be followed."""
        found = self.value(node)
        self.spend(node, found)
        return found

    def spend(self, node: ast.expr, found: Value) -> None:
        """Note that a value has gone where it can't be followed."""
        if found.holds_state:
            self.reads.open = True
        if isinstance(node, ast.Name) and found.kind == "keys":
            self.env[node.id] = mapping(found.keys.opened())

    def bound(self, node: ast.expr) -> Value:
        """What another name gets: a mapping that two names hold can't be followed further."""
        found = self.value(node)
        if isinstance(node, ast.Name) and found.kind == "keys":
            self.spend(node, found)
            return mapping(found.keys.opened())
        return found

    def text(self, node: ast.expr) -> str | None:
        """The text that an expression is, if that is known."""
        found = self.value(node)
        self.spend(node, found)
        return found.text

    def resolve(self, node: ast.expr) -> Any:
        """The object that a name, or an attribute of one, stands for; UNSET if that is not known."""
        if isinstance(node, ast.Name):
            local = self.env.get(node.id)
            if local is not None:
                return local.object if local.kind == "object" else UNSET
            return self.scope.find(node.id)
        if isinstance(node, ast.Attribute):
            thing = self.resolve(node.value)
            return UNSET if thing is UNSET else attribute(thing, node.attr)
        return UNSET

    def call(self, node: ast.Call) -> Value:
        """A call; see `Calls`."""
        raise NotImplementedError

    def nested(self, arguments: ast.arguments, statements: list[ast.stmt]) -> None:
        """A function within; see `Statements`."""
        raise NotImplementedError

    # -- what touches the state --------------------------------------------------------------------

    def _name(self, node: ast.Name) -> Value:
        local = self.env.get(node.id)
        if local is not None:
            return local
        found = self.scope.find(node.id)
        return OTHER if found is UNSET else known(found)

    def _attribute(self, node: ast.Attribute) -> Value:
        base = self.value(node.value)
        if base.holds_state:
            self.read_attribute(node.attr, need=base is STATE)
            return OTHER
        found = self.resolve(node)
        return OTHER if found is UNSET else known(found)

    def read_attribute(self, name: str, *, need: bool) -> None:
        """`state.name`: a field; a method or property, which may read anything; or a name that is not there."""
        if name in self.reads.fields:
            self.reads.read(name, need=need)
        elif hasattr(self.reads.state, name) or self.reads.custom:
            self.reads.open = self.reads.open or not name.startswith("__")
        elif not name.startswith("_"):
            self.reads.read(name, need=need)

    def _subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        if base.kind == "pack":
            first = isinstance(node.slice, ast.Constant) and node.slice.value == 0
            return STATE if first else self._opened()
        name = self.text(node.slice)
        if base.holds_state:
            self.read_key(name, need=base is STATE)
        return OTHER

    def read_key(self, name: str | None, *, need: bool) -> None:
        """`state[name]`; any field for a name that is not known."""
        if name is None:
            self.reads.open = True
        else:
            self.reads.read(name, need=need)

    def _opened(self) -> Value:
        self.reads.open = True
        return OTHER

    def _compare(self, node: ast.Compare) -> Value:
        right = self.value(node.comparators[-1])
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn) and right.holds_state:
            name = self.text(node.left)
            if name is None:
                self.reads.open = True
            else:
                self.reads.guard(name)
            return OTHER
        for operand in (node.left, *node.comparators):
            if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
                self.value(operand)
            else:
                self.use(operand)
        return OTHER

    # -- mappings, and what nodes return -----------------------------------------------------------

    def _dict(self, node: ast.Dict) -> Value:
        found = NO_KEYS
        for key, item in zip(node.keys, node.values, strict=True):
            if key is None:
                found = found.and_also(self.spread(item))
                continue
            name = self.text(key)
            found = found.opened() if name is None else found.and_also(keys([name]))
            self.use(item)
        return mapping(found)

    def spread(self, node: ast.expr) -> Keys:
        """The keys that `**node` brings."""
        value = self.value(node)
        found = value.mapping
        if found is None:
            self.spend(node, value)
            return ANY_KEYS
        return found

    def _dict_comprehension(self, node: ast.DictComp) -> Value:
        def inside() -> Value:
            name = self.text(node.key)
            self.use(node.value)
            return mapping(ANY_KEYS if name is None else Keys(frozenset([name])))

        return self._looped(node.generators, inside)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        return self._looped(node.generators, lambda: self._sends([node.elt]))

    def _several(self, node: ast.List | ast.Tuple) -> Value:
        return self._sends(node.elts)

    def _sends(self, nodes: Iterable[ast.expr]) -> Value:
        """A list of Sends, if that is what it is."""
        items = [(node, self.value(node.value if isinstance(node, ast.Starred) else node)) for node in nodes]
        if all(item.kind == "result" for _, item in items):
            return Value("result", sends=tuple(send for _, item in items for send in item.sends))
        for node, item in items:
            self.spend(node.value if isinstance(node, ast.Starred) else node, item)
        return OTHER

    def _looped(self, generators: list[ast.comprehension], inside: Callable[[], Value]) -> Value:
        names = {x.id for g in generators for x in ast.walk(g.target) if isinstance(x, ast.Name)}
        hidden = {name: self.env[name] for name in names if name in self.env}
        for generator in generators:
            self.use(generator.iter)
            self.env.update(dict.fromkeys(names, OTHER))
            for condition in generator.ifs:
                self.use(condition)
        found = inside()
        for name in names:
            del self.env[name]
        self.env.update(hidden)
        return found

    # -- what passes values on ---------------------------------------------------------------------

    def _choice(self, node: ast.IfExp) -> Value:
        self.use(node.test)
        return either(self.value(node.body), self.value(node.orelse))

    def _one_of(self, node: ast.BoolOp) -> Value:
        found = self.value(node.values[0])
        for item in node.values[1:]:
            found = either(found, self.value(item))
        return found

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.BitOr):
            one, other = left.mapping, right.mapping
            if one is not None and other is not None:
                return mapping(one.and_also(other))
        self.spend(node.left, left)
        self.spend(node.right, right)
        return OTHER

    def _walrus(self, node: ast.NamedExpr) -> Value:
        found = self.env[node.target.id] = self.bound(node.value)
        return found

    def _lambda(self, node: ast.Lambda) -> Value:
        self.nested(node.args, [ast.copy_location(ast.Return(node.body), node.body)])
        return OTHER

    def _use_children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.use(child)
            else:
                self._use_children(child)
