"""Types as text, as a graph's document has them: whether stored values of one can be read as another.

What is judged is the stored form, not what pydantic would convert: a text of digits is no number when it is restored.
What the text doesn't tell (the fields of a model) is taken to fit if the name is the same; the values themselves are
looked at when a run is resumed.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from graphagent.graph.syntax import expression

_ALIASES = {
    "object": "Any",
    "NoneType": "None",
    "null": "None",
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "List": "list",
    "Dict": "dict",
    "Set": "set",
    "Tuple": "tuple",
    "FrozenSet": "frozenset",
}
_WIDER: Mapping[str, tuple[str, ...]] = {"int": ("float", "Decimal")}
_PLAIN: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "None": (type(None),),
}
_LISTS, _TABLES = ("list", "Sequence"), ("dict", "Mapping", "MutableMapping")


class Shape(NamedTuple):
    """A type: its bare name with its arguments; of a union `|` with its arms, of a Literal `Literal` with `values`."""

    name: str
    arguments: tuple[Shape, ...] = ()
    values: tuple[Any, ...] = ()


def read_type(text: str) -> Shape:
    """The shape of a type; a text that is no type is a name of its own."""
    try:
        return _read(expression(text.strip()))
    except (SyntaxError, ValueError):
        return Shape(text.strip())


def _read(node: ast.expr) -> Shape:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return Shape(_ALIASES.get(name, name))
        case ast.Constant(value=None):
            return Shape("None")
        case ast.Constant(value=builtins.Ellipsis):
            return Shape("...")
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _union([_read(left), _read(right)])
        case ast.Subscript(value=generic, slice=inside):
            return _subscript(_read(generic).name, list(inside.elts) if isinstance(inside, ast.Tuple) else [inside])
    raise ValueError(ast.dump(node))


def _subscript(name: str, inside: Sequence[ast.expr]) -> Shape:
    if name == "Literal":
        return Shape(
            name, (), tuple(item.value if isinstance(item, ast.Constant) else ast.unparse(item) for item in inside)
        )
    if name == "Optional":
        return _union([_read(inside[0]), Shape("None")])
    if name == "Union":
        return _union([_read(item) for item in inside])
    if name == "Annotated":
        return _read(inside[0])
    return Shape(name, tuple(_read(item) for item in inside))


def _union(arms: Sequence[Shape]) -> Shape:
    flat = [inner for arm in arms for inner in (arm.arguments if arm.name == "|" else (arm,))]
    return Shape("|", tuple(dict.fromkeys(flat)))


def readable_as(old: str, new: str) -> bool:
    """Whether every value stored as `old` can be read as `new`."""
    return _covers(read_type(new), read_type(old))


def _covers(new: Shape, old: Shape) -> bool:
    if new.name == "Any":
        return True
    if old.name == "|":
        return all(_covers(new, arm) for arm in old.arguments)
    if new.name == "|":
        return any(_covers(arm, old) for arm in new.arguments) or (
            old.name == "Literal" and all(_holds(new, value) for value in old.values)
        )
    if old.name == "Literal":
        return all(_holds(new, value) for value in old.values)
    if new.name != old.name:
        return new.name in _WIDER.get(old.name, ())
    if not new.arguments or new.arguments == old.arguments:
        return True
    have = old.arguments or (Shape("Any"),) * len(new.arguments)
    return len(have) == len(new.arguments) and all(map(_covers, new.arguments, have))


def holds(text: str, plain: Any) -> bool:
    """Whether a stored value, plain data, can be read as the type; of a class that isn't known it is taken not to."""
    return _holds(read_type(text), plain)


def _holds(shape: Shape, plain: Any) -> bool:
    name, arguments = shape.name, shape.arguments
    if name == "Any":
        return True
    if name == "|":
        return any(_holds(arm, plain) for arm in arguments)
    if name == "Literal":
        return any(type(value) is type(plain) and value == plain for value in shape.values)
    if name in _PLAIN:
        return type(plain) in _PLAIN[name]
    if name in _LISTS:
        return isinstance(plain, list) and all(_holds(arguments[0], item) for item in plain if arguments)
    if name in _TABLES:
        return isinstance(plain, dict) and all(_holds(arguments[1], item) for item in plain.values() if arguments)
    return False
