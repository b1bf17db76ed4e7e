"""Finds the graph that `module:name` or `file.py:name` names on a command line."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from graphagent.errors import GraphAgentError, UsageError, alternatives
from graphagent.graph.builder import StateGraph
from graphagent.graph.compiled import CompiledGraph

_HOW = "write module:name, such as 'app.flows:graph' or 'flows.py:graph'"


def load_graph(target: str) -> CompiledGraph:
    """The compiled graph that a target names; a builder, or a function without parameters that makes either, will do.

    The current directory is searched before the Python path. Without `:name` the module must have one graph. Raises
    UsageError for a target that can't be found or imported, GraphDefinitionError for a graph that can't be compiled.
    """
    place, name = split_target(target)
    module = load_module(place)
    return _compiled(load_value(module, target), target, module) if name else _only(module, place)


def split_target(target: str) -> tuple[str, str]:
    """Module or file of a target, and the name in it (empty: none is said)."""
    place, _, name = target.partition(":") if not target.endswith(".py") else (target, "", "")
    return place, name


def load_value(module: ModuleType, target: str) -> Any:
    """What the name in a target stands for, whatever it is. Raises UsageError for a name that the module lacks."""
    place, name = split_target(target)
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            raise UsageError(f"module '{place}' has no '{name}': {alternatives(name, _graphs(module))}; {_HOW}")
        value = getattr(value, part)
    return value


def _compiled(value: Any, target: str, module: ModuleType) -> CompiledGraph:
    if callable(value) and not isinstance(value, type):
        try:
            value = value()
        except GraphAgentError:
            raise
        except Exception as error:
            raise UsageError(f"calling '{target}' failed: {_told(error)}; it must make a graph by itself") from error
    if isinstance(value, StateGraph):
        value = value.compile()
    if not isinstance(value, CompiledGraph):
        raise UsageError(
            f"'{target}' is {value!r:.80}, not a graph ('StateGraph' or its compile()): "
            f"{alternatives(target.partition(':')[2], _graphs(module))}"
        )
    return value


def _only(module: ModuleType, place: str) -> CompiledGraph:
    names = _graphs(module)
    if len(names) != 1:
        found = f"{len(names)} graphs ({', '.join(map(repr, names))})" if names else "no graph"
        raise UsageError(f"module '{place}' has {found}; {_HOW}")
    return _compiled(getattr(module, names[0]), f"{place}:{names[0]}", module)


def _graphs(module: ModuleType) -> list[str]:
    """Names of the module that are graphs, each graph once."""
    found = {id(value): name for name, value in vars(module).items() if isinstance(value, CompiledGraph | StateGraph)}
    return list(found.values())


def load_module(place: str) -> ModuleType:
    """The module `package.module` or `path/file.py`, imported. Raises UsageError if it can't be found or imported.

    A file inside a package is imported as a module of it, so that its relative imports work.
    """
    here = str(Path.cwd())
    _searched_first(Path.cwd())
    try:
        return _file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except GraphAgentError:  # of a graph that compiles at import, or of a file that isn't there
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise UsageError(_broken(place, error)) from error
        known = sorted(path.stem for path in Path.cwd().glob("*.py"))
        hint = f": {alternatives(place, known)}" if known else ""
        raise UsageError(f"no module '{error.name}' in '{here}' or on the Python path{hint}; {_HOW}") from error
    except (Exception, SystemExit) as error:
        raise UsageError(_broken(place, error)) from error


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        known = sorted(str(other) for other in path.parent.glob("*.py")) if path.parent.is_dir() else []
        raise UsageError(f"no file '{path}': {alternatives(str(path), known)}; {_HOW}")
    root, dotted = _package_of(path.resolve())
    if "." in dotted:
        _searched_first(root)
        if _leads_to(dotted, path.resolve()):
            return importlib.import_module(dotted)
    _searched_first(path.parent.resolve())
    known_module = sys.modules.get(path.stem)
    if known_module is not None and getattr(known_module, "__file__", None) == str(path.resolve()):
        return known_module
    name = path.stem if known_module is None else f"{path.stem}__graph"  # a file may be called 'json.py'
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _package_of(path: Path) -> tuple[Path, str]:
    """The folder from which a file is imported, and its dotted name: packages are folders with an `__init__.py`."""
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def _searched_first(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _leads_to(dotted: str, path: Path) -> bool:
    """True if importing the name gives this file, not one of a package that is called the same."""
    try:
        spec = importlib.util.find_spec(dotted)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{dotted}.".startswith(f"{error.name}."):
            raise
        return False
    return spec is not None and spec.origin is not None and Path(spec.origin).resolve() == path


def _broken(place: str, error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    ours = [frame for frame in frames if frame.filename != __file__]
    at = f" at {ours[-1].filename}:{ours[-1].lineno}" if ours else ""
    return f"importing '{place}' failed{at}: {_told(error)}; mend that, or see the whole way with --debug"


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
