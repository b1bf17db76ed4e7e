"""Expressions of breakpoint conditions and of what a debugger prints: they read, and can do nothing else."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from graphagent.errors import GraphAgentError, UsageError, alternatives

NAMES = ("state", "node", "step", "visit", "branch", "error")
"""What a condition can name."""
METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset({"lower", "upper", "startswith", "endswith", "strip", "split", "count", "index"}),
    list: frozenset({"count", "index"}),
    tuple: frozenset({"count", "index"}),
    dict: frozenset({"get", "keys", "values", "items"}),
}
"""Methods that may be called. None of them changes anything."""
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "len": len,
    "min": min,
    "max": max,
    "sum": sum,
    "any": any,
    "all": all,
    "sorted": sorted,
    "abs": abs,
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "set": set,
    "list": list,
}
LONGEST = 2000
"""Characters of an expression."""
_PLAIN = (str, int, float, bool, bytes, list, tuple, set, frozenset, dict, type(None))


class Expression:
    """A safe expression. Raises UsageError for a text that can't be one, with the place of what is wrong.

    It has comparison, boolean logic, bounded arithmetic, items and fields, comprehensions over lists, the functions in
    `FUNCTIONS` and the methods in `METHODS`. Of an object it reads fields only: properties and methods are code.
    """

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        if not self.text or len(self.text) > LONGEST:
            raise UsageError(f"an expression has 1 to {LONGEST} characters, this one has {len(self.text)}")
        try:
            self._tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            column = getattr(error, "offset", None)
            at = f" at column {column}" if column else ""
            raise UsageError(f"'{self.text:.200}' is no expression{at}: {getattr(error, 'msg', error)}") from error
        for part in ast.walk(self._tree):
            self._check(part)
        self._reader: Any = None  # made when it is worked out first

    def names(self) -> set[str]:
        """The names that it reads, without those that its comprehensions bind and the functions it calls."""
        used = {part.id for part in ast.walk(self._tree) if isinstance(part, ast.Name)}
        bound = {
            part.id for part in ast.walk(self._tree) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
        return used - bound - FUNCTIONS.keys()

    def fields(self) -> set[str]:
        """The fields of the state that it names, as attributes or as items."""
        found = set()
        for part in ast.walk(self._tree):
            if isinstance(part, ast.Attribute) and _is_state(part.value):
                found.add(part.attr)
            elif isinstance(part, ast.Subscript) and _is_state(part.value) and isinstance(part.slice, ast.Constant):
                found.add(str(part.slice.value))
        return found

    def value(self, names: Mapping[str, Any]) -> Any:
        """What it comes to. Raises UsageError, naming what went wrong, and UnsetField for a field without a value."""
        try:
            self._reader = self._reader or _evaluator()()
            self._reader.names = names
            return self._reader.eval(self.text, self._tree)
        except GraphAgentError:
            raise
        except Exception as error:
            missing = getattr(error, "name", None)
            if type(error).__name__ == "NameNotDefined":
                raise UsageError(
                    f"'{self.text:.200}' names '{missing}', which isn't there: {alternatives(str(missing), names)}"
                ) from error
            raise UsageError(f"'{self.text:.200}' can't be worked out: {type(error).__name__}: {error}") from error

    def _check(self, part: ast.AST) -> None:
        """Refuse what is never allowed, whatever the values are."""
        problem = ""
        if isinstance(part, ast.Attribute | ast.Name):
            name = part.attr if isinstance(part, ast.Attribute) else part.id
            if name.startswith("_"):
                problem = f"names that begin with '_', such as '{name}', are out of reach"
        elif isinstance(part, ast.Call):
            problem = _wrong_call(part)
        elif isinstance(part, ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.Starred):
            problem = f"{type(part).__name__} is not allowed"
        elif isinstance(part, ast.SetComp | ast.DictComp | ast.JoinedStr):
            problem = f"{type(part).__name__} is not allowed; write a list comprehension or str(...)"
        if problem:
            column = getattr(part, "col_offset", 0) + 1
            raise UsageError(f"'{self.text:.200}', column {column}: {problem}")


def _wrong_call(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        name = call.func.id
        return "" if name in FUNCTIONS else f"'{name}' can't be called: {alternatives(name, FUNCTIONS)}"
    if isinstance(call.func, ast.Attribute):
        name, known = call.func.attr, sorted(set().union(*METHODS.values()))
        return "" if name in known else f"the method '{name}' can't be called: {alternatives(name, known)}"
    return "only functions and methods that are named can be called"


def _is_state(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "state"


@functools.cache
def _evaluator() -> Any:
    """The class that works expressions out; its library is loaded when the first is."""
    import simpleeval

    class Reader(simpleeval.EvalWithCompoundTypes):  # type: ignore[misc]
        """simpleeval's evaluator, in which attributes are fields and methods are those of plain containers."""

        def __init__(self) -> None:
            super().__init__(functions=dict(FUNCTIONS))
            self.functions = dict(FUNCTIONS)  # the class adds some
            self.ATTR_INDEX_FALLBACK = False

        def _check_disallowed_items(self, item: Any) -> None:
            """Nothing to look for: no function, class or module is ever reached, and a look into every list would
            cost more than the expression."""

        def _eval_attribute(self, node: ast.Attribute) -> Any:
            return read_field(self._eval(node.value), node.attr)

        def _eval_subscript(self, node: ast.Subscript) -> Any:
            container = self._eval(node.value)
            if isinstance(container, _PLAIN):
                return container[self._eval(node.slice)]  # type: ignore[index]
            return read_field(container, str(self._eval(node.slice)))

        def _eval_call(self, node: ast.Call) -> Any:
            values = [self._eval(one) for one in node.args]
            named = dict(self._eval(one) for one in node.keywords)
            if isinstance(node.func, ast.Name):
                return self.functions[node.func.id](*values, **named)
            assert isinstance(node.func, ast.Attribute)
            return _method(self._eval(node.func.value), node.func.attr)(*values, **named)

    return Reader


def _method(holder: Any, name: str) -> Callable[..., Any]:
    """A method of a plain value, as its plain type has it: a subclass may have code of its own under the name."""
    for kind, names in METHODS.items():
        if isinstance(holder, kind) and name in names:
            found: Callable[..., Any] = functools.partial(getattr(kind, name), holder)
            return found
    raise UsageError(f"a {type(holder).__name__} has no method '{name}' that may be called here")


def read_field(holder: Any, name: str) -> Any:
    """A field of a state, a model, a dataclass or an enum; what would run code is refused. Raises UsageError."""
    if isinstance(holder, Mapping):
        if name in holder:
            return holder[name]
        raise UsageError(f"there is no '{name}': {alternatives(name, map(str, holder))}")
    if isinstance(holder, Enum) and name in ("name", "value"):
        return getattr(holder, name)
    declared = getattr(type(holder), "__pydantic_fields__", None) or getattr(type(holder), "__dataclass_fields__", {})
    if name in declared or name in getattr(holder, "__dict__", {}):
        return getattr(holder, name)
    known = [*declared, *(n for n in getattr(holder, "__dict__", {}) if n not in declared)]
    raise UsageError(f"a {type(holder).__name__} has no field '{name}': {alternatives(name, known)}")
