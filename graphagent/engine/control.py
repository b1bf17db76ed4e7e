"""What may stand between the steps of a run: a debugger that holds it, looks at it and lets it go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import anyio

    from graphagent.checkpoint.record import Row
    from graphagent.engine.frame import Frame, Step, Tree
    from graphagent.engine.merge import Merged
    from graphagent.engine.outcome import Outcome
    from graphagent.engine.plan import Stop


class Control(Protocol):
    """The port that a debugger fills. The engine calls it at the same points of every frame: the root's, and those of
    child graphs and agents. What it sees must not be changed."""

    async def before(self, frame: Frame, step: Step) -> Stop | None:
        """Before the activations of a step start; the run waits as long as this does. A Stop ends the frame there."""
        ...

    def wrote(self, frame: Frame, rows: Sequence[Row]) -> None:
        """Rows of the frame have been written, in one go."""
        ...

    def after(self, frame: Frame, nodes: tuple[str, ...], merged: Merged, outcomes: Mapping[int, Outcome]) -> None:
        """A step has been written, and the frame has moved on. `outcomes`: by their positions before the step."""
        ...

    async def ended(self, frame: Frame, stop: Stop) -> None:
        """The frame has ended, and what its end leaves behind has been written."""
        ...

    def timing(self, scope: anyio.CancelScope) -> AbstractContextManager[None]:
        """While the block runs the deadline of the scope moves on by the time that the run is held."""
        ...

    def model_asked(self, frame: Frame, position: int, request: Any) -> None:
        """A model is about to be asked by an activation (see `graphagent.agents.ModelRequest`)."""
        ...


_CURRENT: ContextVar[Control | None] = ContextVar("graphagent_control", default=None)


@contextmanager
def attached(control: Control) -> Iterator[None]:
    """Runs that begin in the block, by whatever executor, are under this control."""
    token = _CURRENT.set(control)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_control() -> Control | None:
    """The control of a run that begins here."""
    return _CURRENT.get()


def timed(tree: Tree, scope: anyio.CancelScope) -> AbstractContextManager[None]:
    """A block whose scope doesn't run out while a debugger holds the run."""
    return nullcontext() if tree.control is None else tree.control.timing(scope)
