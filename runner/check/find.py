"""Which graphs a target names: in a module, in a file, in a folder, or in a document."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from graphagent import Executor, GraphAgent
from graphagent.errors import GraphAgentError, GraphDefinitionError, UsageError
from graphagent.graph.builder import StateGraph
from graphagent.graph.compile import build
from graphagent.graph.compiled import CompiledGraph
from graphagent.validation import Facts, load_document, read_document
from runner.check.same import made_of
from runner.cli.target import load_module, load_value, split_target

Graph = CompiledGraph | StateGraph
_MAKERS = (GraphAgent, CompiledGraph, StateGraph, Executor)
_SPEAKS = re.compile(r"\b(StateGraph|(Graph|LLM|Chain|Parallel|Cycle)Agent)\b")
_UNKNOWN = Facts()
_SKIPPED = {"__pycache__", "node_modules", "site-packages", "build", "dist", "venv"}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A graph to be checked.

    `target` names it for other commands; `graph` is the error where the definition could not even be compiled; `file`
    is where it was found; `facts` is how it is run, as far as that could be seen.
    """

    target: str
    graph: Graph | GraphDefinitionError
    file: str = ""
    facts: Facts = _UNKNOWN
    replayable: bool = True


@dataclass(frozen=True, slots=True)
class Failure:
    """A target that could not be looked at, and why."""

    target: str
    message: str


@dataclass(slots=True)
class Found:
    """What the targets led to. `known`: what the graphs are made of, so that none is checked twice; `met`: how many
    graphs, failures and repetitions there were."""

    candidates: list[Candidate] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    known: set[Any] = field(default_factory=set)
    met: int = 0

    def add(self, target: str, value: Any, file: str) -> None:
        """Take up a graph, a builder, an executor or an agent, unless it has been."""
        self.met += 1
        graph, facts = value, None
        if isinstance(value, Executor):
            graph, facts = value.graph, facts_of(value)
        elif isinstance(value, GraphAgent):  # whoever runs it has the store
            graph, facts = value.graph, replace(facts_of(value.executor()), store=None)
        key = made_of(graph)
        if (key, facts) not in self.known:
            self.known |= {(key, None), (key, facts)}
            named = _called(graph, value.name) if isinstance(value, GraphAgent) else graph
            self.candidates.append(Candidate(target, named, file, facts or _UNKNOWN))

    def broken(self, target: str, error: GraphDefinitionError, file: str = "") -> None:
        """Take up a graph whose definition has errors."""
        self.met += 1
        self.candidates.append(Candidate(target, error, file))

    def fail(self, target: str, error: Exception) -> None:
        """Note that a target can't be looked at."""
        self.met += 1
        self.failures.append(Failure(target, str(error)))


def _called(graph: CompiledGraph, name: str) -> CompiledGraph:
    """The graph under the name of the agent that it is."""
    if graph.name == name:
        return graph
    definition = graph.definition.snapshot()
    definition.name = name
    return build(definition, graph.schema, graph.warnings, strict=graph.strict)


def facts_of(executor: Executor) -> Facts:
    """How an executor runs its graph."""
    return Facts(
        engine=executor.engine,
        store=executor.checkpoints is not None,
        max_steps=executor.limits.max_steps,
        retried=bool(executor.default_retry),
    )


def find(targets: tuple[str, ...], convert: Callable[[str], list[Candidate]] | None = None) -> Found:
    """All graphs that the targets name; what can't be looked at is among the failures.

    `convert` makes candidates of a target that belongs to another framework.
    """
    found = Found()
    for target in map(_from_here, targets):
        try:
            if convert is not None:
                found.candidates += convert(target)
            else:
                _target(target, found)
        except GraphDefinitionError as error:
            found.broken(target, error)
        except GraphAgentError as error:
            found.fail(target, error)
    return found


def _from_here(target: str) -> str:
    """The target with a file or folder below the current directory named from there."""
    place, name = split_target(target)
    path = Path(place)
    if not path.is_absolute() or not path.is_relative_to(Path.cwd()):
        return target
    return f"{path.relative_to(Path.cwd())}:{name}" if name else str(path.relative_to(Path.cwd()))


def _target(target: str, found: Found) -> None:
    place, name = split_target(target)
    if target.endswith(".json"):
        _document(target, found)
    elif Path(target).is_dir():
        _folder(Path(target), found)
    elif name:
        module = load_module(place)
        _value(target, load_value(module, target), module, found)
    else:
        before = found.met
        _module(place, found)
        if found.met == before:
            how = "at module level, and no function without parameters that is annotated to return one"
            raise UsageError(
                f"'{target}' has no graph: no StateGraph, no compile() of one, no Executor, no agent {how}"
            )


def _document(path: str, found: Found) -> None:
    source = load_document(read_document(path), path=path)
    found.met += 1
    found.candidates.append(Candidate(path, source.builder, path, source.facts))


def _module(place: str, found: Found) -> None:
    """Every graph of a module or file: executors and agents first, since they say how their graph is run."""
    module = load_module(place)
    values = {name: value for name, value in vars(module).items() if isinstance(value, _MAKERS)}
    for kind in (Executor, GraphAgent, CompiledGraph, StateGraph):
        for name, value in values.items():
            if isinstance(value, kind):
                found.add(f"{place}:{name}", value, module.__file__ or "")
    for name, value in list(vars(module).items()):
        if makes_graph(value, module):
            _value(f"{place}:{name}", value, module, found)


def makes_graph(value: Any, module: ModuleType) -> bool:
    """True for a function of the module that needs no argument and is annotated to return a graph."""
    if not inspect.isfunction(value) or value.__module__ != module.__name__ or inspect.iscoroutinefunction(value):
        return False
    returned = value.__annotations__.get("return")
    if isinstance(returned, str):
        try:
            returned = typing.get_type_hints(value).get("return")
        except (NameError, TypeError, AttributeError):  # some other annotation is for type checkers only
            return False
    parameters = inspect.signature(value).parameters.values()
    open_ones = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return isinstance(returned, type) and issubclass(returned, _MAKERS) and not open_ones


def _value(target: str, value: Any, module: ModuleType, found: Found) -> None:
    file = module.__file__ or ""
    if callable(value) and not isinstance(value, type):
        try:
            value = value()
        except GraphDefinitionError as error:
            found.broken(target, error, file)
            return
        except Exception as error:
            text = f"calling '{target}' failed: {type(error).__name__}: {error}; it must make a graph by itself"
            raise UsageError(text) from error
    if not isinstance(value, _MAKERS):
        known = "'StateGraph', its compile(), an 'Executor', or an agent such as 'LLMAgent'"
        raise UsageError(f"'{target}' is {value!r:.80}, not a graph ({known})")
    found.add(target, value, file)


def _folder(folder: Path, found: Found) -> None:
    """Every graph below a folder: files whose source speaks of a StateGraph or an agent are imported, documents are
    read."""
    before = found.met
    searched: set[Path] = set()
    for path in files(folder):
        try:
            if path.suffix == ".json":
                if _is_document(path):
                    _document(str(path), found)
            elif _SPEAKS.search(path.read_text("utf-8", errors="replace")):
                _make_room(path.parent.resolve(), searched)
                _module(str(path), found)
        except GraphDefinitionError as error:
            found.broken(str(path), error, str(path))
        except (GraphAgentError, OSError) as error:
            found.fail(str(path), error)
    if found.met == before:
        raise UsageError(
            f"no graph is in '{folder}': no .py file that makes a StateGraph or an agent, no graph as JSON"
        )


def files(folder: Path) -> Iterator[Path]:
    """The .py and .json files below a folder, in order of their names; hidden folders, environments, build output
    and files of tests are left out."""
    for place, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if not _is_left_out(Path(place, name)))
        for name in sorted(names):
            is_test = name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
            if name.endswith((".py", ".json")) and not is_test and not name.startswith("."):
                yield Path(place, name)


def _is_left_out(folder: Path) -> bool:
    hidden = folder.name.startswith(".") or folder.name in _SKIPPED or folder.name.endswith(".egg-info")
    return hidden or (folder / "pyvenv.cfg").is_file()


def _is_document(path: Path) -> bool:
    text = path.read_text("utf-8", errors="replace")
    if '"nodes"' not in text:
        return False
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return False
    inner = content.get("graph", content) if isinstance(content, dict) else None
    return isinstance(inner, dict) and isinstance(inner.get("nodes"), dict) and "entry" in inner


def _make_room(folder: Path, searched: set[Path]) -> None:
    """Forget modules of folders searched before that are called like files of this one, which it may import."""
    if folder in searched or (folder / "__init__.py").is_file():
        return
    names = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    for name in names & set(sys.modules):
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and {Path(file).parent, Path(file).parent.parent} & searched:
            for inner in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
                del sys.modules[inner]
    sys.path[:] = [str(folder), *(item for item in sys.path if item != str(folder))]
    searched.add(folder)
