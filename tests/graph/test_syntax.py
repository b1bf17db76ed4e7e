"""Source is parsed whatever the garbage collector does meanwhile."""

import ast
import gc

import pytest

from graphagent.graph.syntax import expression, parsed

LONG = "\n".join(f"def f{i}(a):\n    return [a, (a + {i}) * 2]" for i in range(400))


class Noisy:
    """Garbage whose finalizer parses, as one does that logs an exception with its traceback."""

    def __init__(self) -> None:
        """Only a collection can free it."""
        self.me = self

    def __del__(self) -> None:
        """As `traceback` does to find the carets of a line."""
        ast.parse("x = [1, (2, 3)]")


def test_a_finalizer_that_parses_does_not_fail_the_parsing() -> None:
    """CPython 3.11 raises SystemError from `ast.parse` when a collection runs such a finalizer in the middle."""
    for _ in range(50):
        for _ in range(20):
            Noisy()
        assert len(parsed(LONG).body) == 400
    gc.collect()


@pytest.mark.parametrize("collecting", [True, False])
def test_the_collector_is_left_as_it_was_found(collecting: bool) -> None:
    """On or off, also where the source has a mistake."""
    before = gc.isenabled()
    (gc.enable if collecting else gc.disable)()
    try:
        assert isinstance(expression("a + 1"), ast.BinOp)
        with pytest.raises(SyntaxError):
            parsed("def")
        assert gc.isenabled() is collecting
    finally:
        (gc.enable if before else gc.disable)()
