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
    place, _, name = target.partition(":") if not target.endswith(".py") else (target, "", "")
    module = _module(place)
    if not name:
        return _only(module, place)
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            raise UsageError(f"module '{place}' has no '{name}': {alternatives(name, _graphs(module))}; {_HOW}")
        value = getattr(value, part)
    return _compiled(value, target, module)


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


def _module(place: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
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
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
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


def _broken(place: str, error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    ours = [frame for frame in frames if frame.filename != __file__]
    at = f" at {ours[-1].filename}:{ours[-1].lineno}" if ours else ""
    return f"importing '{place}' failed{at}: {_told(error)}; mend that, or see the whole way with --debug"


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
