"""Gates parse source files, in which a collection of garbage must not come between: see the fixture."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def undisturbed() -> Iterator[None]:
    """CPython 3.11 can fail in `ast.parse` when a finalizer runs Python code meanwhile; tests that let processes die
    leave tasks behind whose finalizers log."""
    gc.disable()
    yield
    gc.enable()
