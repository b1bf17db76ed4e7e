"""Size gate: a file answers one question, a function fits a screen."""

import ast
from pathlib import Path

import pytest

from graphagent.graph.syntax import parsed

ROOT = Path(__file__).parents[2]
PACKAGES = ("graphagent", "processors", "runner")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
MAX_LINES, MAX_FUNCTION, MAX_PARAMETERS = 400, 60, 7
# the builder's and the executor's keyword options are their public face, fixed by the design
MANY_OPTIONS = {"add_node", "add_interrupt_node", "__init__", "run", "resume", "stream", "branch_off"}


def functions(path):
    """Every function of a file."""
    tree = parsed(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_size(path):
    """No file is over 400 lines, no function over 60 or with more than 7 positional or 7 keyword parameters."""
    assert path.read_text(encoding="utf-8").count("\n") <= MAX_LINES
    for function in functions(path):
        body = function.end_lineno - function.lineno + 1
        docstring = ast.get_docstring(function, clean=False)
        body -= docstring.count("\n") + 1 if docstring else 0
        assert body <= MAX_FUNCTION, f"{function.name} has {body} lines"
        arguments = function.args
        count = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
        if function.name not in MANY_OPTIONS and not function.name.startswith(("add_", "_run", "_resume")):
            positional = len(arguments.posonlyargs) + len(arguments.args)
            own = [a for a in arguments.args if a.arg in ("self", "cls")]
            assert positional - len(own) <= MAX_PARAMETERS, f"{function.name} has {positional} parameters"
            assert count - len(own) <= MAX_PARAMETERS + 3, f"{function.name} has {count} parameters"


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.name == "__init__.py"], ids=lambda path: str(path.relative_to(ROOT))
)
def test_init_holds_no_code(path):
    """An `__init__.py` holds a docstring, imports and `__all__`, nothing else; `runner` finds its names when asked,
    since the command line is in it and must start quickly."""
    for node in parsed(path.read_text(encoding="utf-8")).body:
        documented = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        named = isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        lazy = path.parent.name == "runner" and _finds_names_when_asked(node)
        assert documented or named or lazy or isinstance(node, ast.Import | ast.ImportFrom), ast.dump(node)[:80]


def _finds_names_when_asked(node):
    """The parts of a lazy `__init__`: the places of names, the imports that type checkers read, `__getattr__`."""
    if isinstance(node, ast.If):
        return getattr(node.test, "id", "") == "TYPE_CHECKING" and all(isinstance(n, ast.ImportFrom) for n in node.body)
    if isinstance(node, ast.Assign):
        return getattr(node.targets[0], "id", "") == "_PLACES" and isinstance(node.value, ast.Dict)
    return isinstance(node, ast.FunctionDef) and node.name == "__getattr__"


@pytest.mark.parametrize("package", ["graph", "validation"])
def test_pure_packages_await_nothing(package):
    """`graph/` and `validation/` define no coroutine and import neither asyncio nor anyio."""
    for path in (ROOT / "graphagent" / package).rglob("*.py"):
        tree = parsed(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            assert not isinstance(node, ast.AsyncFunctionDef | ast.Await), f"{path.name}:{node.lineno}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
                assert not {"asyncio", "anyio"} & {name.split(".")[0] for name in names}, path.name


@pytest.mark.parametrize("name", ["plan.py", "merge.py", "questions.py", "outcome.py"])
def test_decisions_are_plain_functions(name):
    """What decides is pure: no coroutine, no clock, no event loop in plan, merge, questions and outcome."""
    tree = parsed((ROOT / "graphagent" / "engine" / name).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await)
        if isinstance(node, ast.ImportFrom):
            assert node.module not in ("asyncio", "anyio", "time", "graphagent.clock")


def test_node_code_is_awaited_in_one_place():
    """Only `engine/attempt.py` calls `run_activation`'s innermost body; execute and eager call `run_activation`."""
    callers = {
        path.name
        for path in (ROOT / "graphagent" / "engine").glob("*.py")
        if ".body(" in path.read_text(encoding="utf-8")
    }
    assert callers == {"attempt.py"}


def test_no_two_test_files_share_a_name() -> None:
    """Test folders are no packages, so that pytest can't load two files of one name in one run."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == []
