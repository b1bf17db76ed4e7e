"""Deadlines of a run that stand still while a debugger holds it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import anyio

from graphagent.engine.frame import Tree


class Deadlines:
    """The scopes whose time counts only while the run goes on, and the budgets of seconds."""

    def __init__(self) -> None:
        self._scopes: dict[anyio.CancelScope, float] = {}  # with the seconds left, while the run is held
        self._held = False
        self._since: dict[int, float] = {}  # by tree, on its own clock

    @contextmanager
    def of(self, scope: anyio.CancelScope) -> Iterator[None]:
        """While the block runs the deadline of the scope stands still as often as the run does."""
        self._scopes[scope] = math.inf
        if self._held:
            self._stop(scope)
        try:
            yield
        finally:
            del self._scopes[scope]

    def hold(self, trees: Iterable[Tree]) -> None:
        """The run is held; harmless if it was already."""
        if self._held:
            return
        self._held = True
        for scope in self._scopes:
            self._stop(scope)
        self._since = {id(tree): tree.meter.clock.monotonic() for tree in trees if tree.meter.budget is not None}

    def go_on(self, trees: Iterable[Tree]) -> None:
        """The run goes on; harmless if it does."""
        if not self._held:
            return
        self._held = False
        if self._scopes:
            now = anyio.current_time()
            for scope, left in self._scopes.items():
                scope.deadline = now + left
        for tree in trees if self._since else ():
            if id(tree) in self._since:
                tree.meter.began += tree.meter.clock.monotonic() - self._since[id(tree)]

    def _stop(self, scope: anyio.CancelScope) -> None:
        self._scopes[scope] = scope.deadline - anyio.current_time()
        scope.deadline = math.inf
