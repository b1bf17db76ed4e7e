"""Where a LangGraph function may lead, as far as it shows: which nodes it names, alone, several at once, or as Sends.

A router returns a name, a list of names, or Sends; a node returns a `Command` whose `goto` is one of these. Read from
the source where there is one, else from the compiled function. What is not seen is said to be unknown, never guessed.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
import typing
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from graphagent.graph.jumps import jump_kinds, visible_jumps
from graphagent.graph.names import END
from graphagent.graph.syntax import parsed
from graphagent.validation.bodies import function_of


@dataclass(frozen=True, slots=True)
class Leads:
    """`named`: nodes that are named in any way, END too. `sends`: those that are sent to; None: some that are not
    known. `many`: several can be named at once. `jumps`: a Send or a Command with a goto is made. `known`: nothing is
    chosen but what is named. `sets`: the sets of names that are chosen, where all are written out."""

    named: tuple[str, ...] = ()
    sends: tuple[str, ...] | None = ()
    many: bool = False
    jumps: bool = False
    known: bool = False
    sets: tuple[tuple[str, ...], ...] | None = None


def callables(runnable: Any) -> list[Callable[..., Any]]:
    """The functions that a LangGraph runnable wraps, sync and async; a plain function is its own."""
    found = [getattr(runnable, name, None) for name in ("func", "afunc")]
    wrapped = [fn for fn in found if callable(fn)] if not isinstance(runnable, partial) else []
    own = [
        fn for fn in wrapped if not isinstance(fn, partial)
    ]  # LangGraph makes the async one of a sync one by partial
    return own or wrapped or ([runnable] if callable(runnable) and not hasattr(runnable, "invoke") else [])


def leads(runnable: Any, nodes: Collection[str]) -> Leads:
    """What the functions of a runnable show together."""
    seen = [_leads(fn, nodes) for fn in callables(runnable)]
    sends: tuple[str, ...] | None = tuple(dict.fromkeys(name for one in seen for name in one.sends or ()))
    if any(one.sends is None for one in seen):
        sends = None
    named = tuple(dict.fromkeys(name for one in seen for name in one.named))
    known = bool(seen) and all(one.known for one in seen)
    sets = seen[0].sets if len(seen) == 1 else None
    return Leads(named, sends, any(one.many for one in seen), any(one.jumps for one in seen), known, sets)


def returns_command(runnable: Any) -> bool:
    """True if a node function is annotated to return a `Command` and nothing else, so that it always jumps."""
    for fn in callables(runnable):
        annotation = _return_type(fn)
        if getattr(typing.get_origin(annotation) or annotation, "__name__", "") == "Command":
            return True
    return False


def _leads(fn: Callable[..., Any], nodes: Collection[str]) -> Leads:
    function = function_of(fn)
    if function is None:
        return Leads()
    kinds = jump_kinds(function)
    named = list(_constants(function, nodes))
    if END not in named and "END" in _names(function.__code__):
        named.append(END)
    tree = _tree(function)
    if tree is None:
        _, jumped = visible_jumps(function, [*nodes, END])
        sends = (tuple(x for x in jumped if x != END) or None) if "send" in kinds else ()
        return Leads(tuple(named), sends, _listed(fn), bool(kinds), bool({*named} - {END}))
    sent = [call.args[0] for call in _called(tree, "Send") if call.args]
    constant = [node.value for node in sent if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    unknown = len(constant) < len(sent) or ("send" in kinds and not sent)
    several = _listed(fn) or any(_several(value) for value in _chosen(tree))
    sends = None if unknown else tuple(dict.fromkeys(constant))
    known = not unknown and all(_plain(value, tree, function) for value in _chosen(tree))
    return Leads(tuple(named), sends, several, bool(kinds), known, _sets(tree))


def _return_type(fn: Any) -> Any:
    try:
        return typing.get_type_hints(function_of(fn)).get("return")
    except Exception:  # annotations may name what isn't imported
        return None


def _listed(fn: Any) -> bool:
    """True if the function is annotated to return a list (of other things than Sends, which are seen elsewhere)."""
    annotation = _return_type(fn)
    parts = typing.get_args(annotation) if typing.get_origin(annotation) in (typing.Union, types.UnionType) else ()
    for part in parts or (annotation,):
        origin = typing.get_origin(part) or part
        inside = typing.get_args(part)
        if isinstance(origin, type) and issubclass(origin, list | tuple | set | frozenset):
            return not any(getattr(item, "__name__", "") == "Send" for item in inside)
    return False


def _tree(fn: types.FunctionType) -> ast.AST | None:
    try:
        tree = parsed(textwrap.dedent(inspect.getsource(fn)))
    except (OSError, TypeError, SyntaxError):
        return None
    kinds = ast.Lambda if fn.__name__ == "<lambda>" else ast.FunctionDef | ast.AsyncFunctionDef
    found = [
        node for node in ast.walk(tree) if isinstance(node, kinds) and getattr(node, "name", "") in (fn.__name__, "")
    ]
    return found[0] if len(found) == 1 or (found and fn.__name__ != "<lambda>") else None


def _called(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name in (getattr(node.func, "id", ""), getattr(node.func, "attr", "")):
            yield node


def _chosen(tree: ast.AST) -> Iterator[ast.expr]:
    """What a `Command` goes to; without any, what is returned."""
    gotos = [word.value for call in _called(tree, "Command") for word in call.keywords if word.arg == "goto"]
    yield from gotos
    for node in ast.walk(tree) if not gotos else ():
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif isinstance(node, ast.Lambda):
            yield node.body


def _sets(tree: ast.AST) -> tuple[tuple[str, ...], ...] | None:
    found: dict[tuple[str, ...], None] = {}
    for value in _chosen(tree):
        parts = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
        names = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        if len(names) < len(parts):
            return None
        found[tuple(dict.fromkeys(names))] = None
    return tuple(found) or None


def _plain(value: ast.expr, tree: ast.AST, fn: types.FunctionType, depth: int = 0) -> bool:
    """True if an expression can only be a constant, or something made of such."""
    match value:
        case ast.Constant():
            return True
        case ast.IfExp(body=one, orelse=other):
            return _plain(one, tree, fn, depth) and _plain(other, tree, fn, depth)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
            return all(_plain(part, tree, fn, depth) for part in parts)
        case ast.ListComp(elt=part):
            return _plain(part, tree, fn, depth)
        case ast.Call():
            return value in list(_called(value, "Send"))
        case ast.Attribute(attr="END"):
            return True
        case ast.Name(id=name) if depth < 4:
            assigned = [
                node.value
                for node in ast.walk(tree)
                if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == name for target in node.targets)
            ]
            if assigned:
                return all(_plain(part, tree, fn, depth + 1) for part in assigned)
            found = inspect.getclosurevars(fn)
            return isinstance({**found.globals, **found.nonlocals}.get(name), str | list | tuple)
    return False


def _several(value: ast.expr) -> bool:
    """True for a list display or comprehension that holds names and no Sends."""
    if isinstance(value, ast.List | ast.Tuple):
        return len(value.elts) > 1 and not any(True for _ in _called(value, "Send"))
    return isinstance(value, ast.ListComp | ast.GeneratorExp) and not any(True for _ in _called(value, "Send"))


def _names(code: types.CodeType) -> set[str]:
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return {*code.co_names, *code.co_freevars}.union(*inner)


def _constants(fn: types.FunctionType, nodes: Collection[str]) -> Iterator[str]:
    """Node ids among the constants, the closure and the globals that a function names, each once."""
    values: list[Any] = list(_literals(fn.__code__))
    values += [cell.cell_contents for cell in fn.__closure__ or () if _filled(cell)]
    values += [*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()]
    values += [fn.__globals__[name] for name in sorted(_names(fn.__code__)) if name in fn.__globals__]
    seen: set[str] = set()
    for value in _flat(values):
        if value in {*nodes, END} and value not in seen:
            seen.add(value)
            yield value


def _literals(code: types.CodeType) -> Iterator[Any]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _literals(constant)
        else:
            yield constant


def _flat(values: Collection[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple | set | frozenset):
            yield from sorted(item for item in value if isinstance(item, str))


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
