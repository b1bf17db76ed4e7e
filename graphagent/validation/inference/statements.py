"""The abstract run of statements: branches are joined, loops are run until nothing new comes of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from graphagent.validation.inference.calls import Calls
from graphagent.validation.inference.expressions import Environment
from graphagent.validation.inference.values import NOTHING, OTHER, Value, either, keys, mapping

UNSET_ERRORS = {
    *("BaseException", "Exception", "AttributeError", "LookupError", "KeyError"),
    *("UnsetField", "StateError", "GraphAgentError"),
}
"""Exceptions under which the error of an unset field falls."""
Env = Environment | None
"""Names and values at a point; None where it can't be reached."""


class Statements(Calls):
    """Runs statements; `returned` collects what comes back, `breaks` and `nexts` what leaves the loop at hand."""

    def setup(self) -> None:
        """Begin with nothing returned."""
        self.returned: list[Value] = []
        self.breaks: list[Environment] = []
        self.nexts: list[Environment] = []

    def run(self, statements: Iterable[ast.stmt]) -> bool:
        """Run statements one after the other; False if the end can't be reached."""
        return all(self._step(statement) for statement in statements)

    def nested(self, arguments: ast.arguments, statements: list[ast.stmt]) -> None:
        """A function within: what it reads counts, what it returns doesn't; mappings it touches can't be followed."""
        names = {x.id for s in statements for x in ast.walk(s) if isinstance(x, ast.Name)}
        for name in names & self.env.keys():
            if self.env[name].kind == "keys":
                self.env[name] = mapping(self.env[name].keys.opened())
        for default in (*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)):
            self.use(default)
        outer = (self.env, self.returned, self.breaks, self.nexts)
        own = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        self.env = {**self.env, **{argument.arg: OTHER for argument in own if argument is not None}}
        self.setup()
        self.run(statements)
        if any(value.holds_state for value in self.returned):
            self.reads.open = True
        self.env, self.returned, self.breaks, self.nexts = outer

    def _step(self, node: ast.stmt) -> bool:
        match node:
            case ast.Return(value=value):
                self.returned.append(NOTHING if value is None else self.value(value))
                return False
            case ast.Raise():
                self._use_children(node)
                return False
            case ast.Break():
                self.breaks.append(self.env.copy())
                return False
            case ast.Continue():
                self.nexts.append(self.env.copy())
                return False
            case ast.If(test=test, body=body, orelse=orelse):
                self.use(test)
                return self._fork([body, orelse])
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node)
            case ast.With() | ast.AsyncWith():
                return self._with(node)
            case ast.Try() | ast.TryStar():
                return self._try(node)
            case ast.Match():
                return self._match(node)
        self._simple(node)
        return True

    def _simple(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                found = self.bound(value)
                if len(targets) > 1 and found.kind == "keys":
                    found = mapping(found.keys.opened())
                for target in targets:
                    self._assign(target, found, value)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self._assign(target, self.bound(value), value)
            case ast.AugAssign(target=target, value=value):
                self._augment(target, value, node.op)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._delete(target)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for decorator in node.decorator_list:
                    self.use(decorator)
                self.nested(node.args, node.body)
                self.env[node.name] = OTHER
            case ast.ClassDef(name=name):
                self._use_children(node)
                self.env[name] = OTHER
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    self.env.pop((alias.asname or alias.name).split(".")[0], None)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self.env.update(dict.fromkeys(names, OTHER))
            case ast.Expr(value=value):
                self.use(value)
            case _:
                self._use_children(node)

    # -- names -------------------------------------------------------------------------------------

    def _assign(self, target: ast.expr, found: Value, source: ast.expr) -> None:
        match target:
            case ast.Name(id=name):
                self.env[name] = found
                return
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                items = source.elts if isinstance(source, ast.Tuple | ast.List) else []
                plain = len(items) == len(targets) and not any(isinstance(x, ast.Starred) for x in (*items, *targets))
                if found.holds_state:
                    self.reads.open = True
                values = [self.bound(item) for item in items] if plain else [OTHER] * len(targets)
                for i, part in enumerate(targets):
                    self._assign(part, values[i], items[i] if plain else part)
                return
            case ast.Starred(value=inner):
                self._assign(inner, OTHER, inner)
                return
            case ast.Subscript(value=ast.Name(id=name), slice=key) if self._held(name) is not None:
                text = self.text(key)
                held = self.env[name].keys
                self.env[name] = mapping(held.opened() if text is None else held.and_also(keys([text])))
            case ast.Attribute(value=inner) | ast.Subscript(value=inner):
                self.value(inner)
        if found.holds_state:  # the state is kept where it can't be followed
            self.reads.open = True

    def _held(self, name: str) -> Value | None:
        held = self.env.get(name)
        return held if held is not None and held.kind == "keys" else None

    def _augment(self, target: ast.expr, value: ast.expr, op: ast.operator) -> None:
        if isinstance(target, ast.Name):
            held = self._held(target.id)
            if held is not None and isinstance(op, ast.BitOr):
                self.env[target.id] = mapping(held.keys.and_also(self.spread(value)))
                return
            self.use(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            self.env[target.id] = OTHER
        else:
            self.value(target)
        self.use(value)

    def _delete(self, target: ast.expr) -> None:
        match target:
            case ast.Name(id=name):
                self.env[name] = OTHER
            case ast.Subscript(value=ast.Name(id=name), slice=key) if self._held(name) is not None:
                text = self.text(key)
                held = self.env[name].keys
                self.env[name] = mapping(held.unsure() if text is None else held.without(text))
            case _:
                self._use_children(target)

    # -- ways --------------------------------------------------------------------------------------

    def _fork(self, bodies: list[list[ast.stmt]]) -> bool:
        """Run each body from here, and join."""
        before = self.env
        ends: list[Environment] = []
        for body in bodies:
            self.env = before.copy()
            if self.run(body):
                ends.append(self.env)
        return self._meet(ends, before)

    def _meet(self, ends: list[Environment], otherwise: Environment) -> bool:
        self.env = _joined(ends) if ends else otherwise
        return bool(ends)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> bool:
        endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)
        outer = (self.breaks, self.nexts)
        if not isinstance(node, ast.While):
            self.use(node.iter)
        head = self.env
        left: list[Environment] = []
        for _ in range(len(head) + 8):  # a name gets less known a few times at most
            self.env, self.breaks, self.nexts = head.copy(), [], []
            if isinstance(node, ast.While):
                self.use(node.test)
            else:
                self._assign(node.target, OTHER, node.target)
            ended = self.run(node.body)
            left = self.breaks
            again = _joined([head, *self.nexts, *([self.env] if ended else [])])
            if _alike(head, again):
                break
            head = again
        self.breaks, self.nexts = outer
        self.env = head
        through = not endless and self.run(node.orelse)
        return self._meet([*([self.env] if through else []), *left], head)

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        quiet = False
        for item in node.items:
            self.use(item.context_expr)
            quiet = quiet or "suppress" in ast.dump(item.context_expr)
            if item.optional_vars is not None:
                self._assign(item.optional_vars, OTHER, item.optional_vars)
        return self._fork([node.body, []]) if quiet else self.run(node.body)

    def _try(self, node: ast.Try | ast.TryStar) -> bool:
        careful = any(_takes_unset(handler.type) for handler in node.handlers)
        self.reads.careful += careful
        seen = [self.env.copy()]
        ended = True
        for statement in node.body:
            ended = self._step(statement)
            seen.append(self.env.copy())
            if not ended:
                break
        self.reads.careful -= careful
        failed = _joined(seen)
        ends = []
        if ended and self.run(node.orelse):
            ends.append(self.env)
        for handler in node.handlers:
            self.env = failed.copy()
            if handler.name:
                self.env[handler.name] = OTHER
            if self.run(handler.body):
                ends.append(self.env)
        reached = self._meet(ends, failed)
        return self.run(node.finalbody) and reached

    def _match(self, node: ast.Match) -> bool:
        subject = self.value(node.subject)
        before = self.env
        ends: list[Environment] = []
        for case in node.cases:
            self.env = before.copy()
            self._pattern(case.pattern, subject)
            if case.guard is not None:
                self.use(case.guard)
            if self.run(case.body):
                ends.append(self.env)
        if not any(_takes_all(case) for case in node.cases):
            ends.append(before)
        return self._meet(ends, before)

    def _pattern(self, pattern: ast.pattern, subject: Value) -> None:
        """Bind the names of a pattern; one that is held against the state reads it, and fails if a field is unset."""
        if subject.holds_state:
            match pattern:
                case ast.MatchClass(patterns=[], kwd_attrs=names):
                    for name in names:
                        self.read_attribute(name, need=False)
                case ast.MatchMapping(keys=wanted, rest=None):
                    for key in wanted:
                        self.read_key(self.text(key), need=False)
                case ast.MatchAs(pattern=None, name=name):
                    if name is not None:
                        self.env[name] = subject
                    return
                case _:
                    self.reads.open = True
        for part in ast.walk(pattern):
            bound = getattr(part, "name", None) if isinstance(part, ast.MatchAs | ast.MatchStar) else None
            rest = part.rest if isinstance(part, ast.MatchMapping) else None
            self.env.update({name: OTHER for name in (bound, rest) if name is not None})


def _takes_all(case: ast.match_case) -> bool:
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def _takes_unset(kind: ast.expr | None) -> bool:
    """Whether a handler takes the error of an unset field."""
    if kind is None:
        return True
    names = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any((x.attr if isinstance(x, ast.Attribute) else getattr(x, "id", "")) in UNSET_ERRORS for x in names)


def _joined(environments: list[Environment]) -> Environment:
    """What holds on each of several ways; a name that one of them has not set may be anything."""
    first, *others = environments
    for other in others:
        first = {
            name: either(first[name], other[name]) if name in first and name in other else OTHER
            for name in first.keys() | other.keys()
        }
    return first


def _alike(one: Environment, other: Environment) -> bool:
    return one.keys() == other.keys() and all(value.same(other[name]) for name, value in one.items())
