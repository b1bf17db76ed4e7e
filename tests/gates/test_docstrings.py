"""Docs gate: tests say what they show, public code says what it means."""

import ast
from pathlib import Path

import pytest

from graphagent.graph.syntax import parsed

ROOT = Path(__file__).parents[2]
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
CODE = sorted(path for package in ("graphagent", "processors", "runner") for path in (ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_test_states_its_guarantee(path):
    """Every test function has a docstring of one line or more."""
    tree = parsed(path.read_text(encoding="utf-8"))
    tests = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
    ]
    assert [node.name for node in tests if not ast.get_docstring(node)] == []


def public(tree):
    """Public functions, methods and classes of a module."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                for item in node.body:
                    plain = isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
                    if plain and not item.name.startswith("_"):
                        yield item


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_public_names_are_documented(path):
    """Every module, public class, function and method has a docstring."""
    tree = parsed(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree) or not tree.body
    assert [node.name for node in public(tree) if not ast.get_docstring(node)] == []


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_shipped_reads_the_shared_folder(path):
    """What ships names neither the shared material nor a path of a machine."""
    text = path.read_text(encoding="utf-8")
    assert "../shared" not in text
    assert "/work/" not in text
