"""What the functions of nodes ask and do through their context, read off whatever can be a node."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from graphagent.validation.bodies import Body, read_body


class Asker:
    """Node functions that are not plain ones."""

    async def method(self, state: Any, ctx: Any) -> None:
        """A method."""
        await ctx.interrupt("m")

    async def __call__(self, state: Any, context: Any) -> None:
        """The object itself."""
        await context.interrupt(key="c")


def other_name(state: Any, c: Any) -> None:
    """The context under another name, and the key as a keyword."""
    c.interrupt(prompt="?", key="k")


def made_key(state: Any, ctx: Any) -> None:
    """A key that is made at run time."""
    ctx.interrupt(f"ok {state}")


def with_more(state: Any, ctx: Any, extra: int = 0) -> None:
    """A function with a parameter to bind."""
    ctx.interrupt("p")


def another_object(state: Any, ctx: Any) -> None:
    """Something else that is called interrupt."""
    state.interrupt("x")


def no_context(state: Any) -> None:
    """Takes no context."""


short = lambda state, ctx: ctx.interrupt("l")  # noqa: E731
compiled_only: dict[str, Any] = {}
exec("def fn(state, ctx):\n    ctx.interrupt('x')\n", compiled_only)

BODIES = {
    "a method": (Asker().method, Body(("m",))),
    "a callable object": (Asker(), Body(("c",))),
    "another name": (other_name, Body(("k",))),
    "a made key": (made_key, Body((None,))),
    "a partial": (partial(with_more, extra=1), Body(("p",))),
    "a lambda": (short, Body(("l",))),
    "another object's method": (another_object, Body()),
    "no context": (no_context, Body()),
    "nothing": (None, Body()),
    "without source": (compiled_only["fn"], Body((None,), acts_first=True)),
}


@pytest.mark.parametrize(("fn", "body"), BODIES.values(), ids=BODIES)
def test_what_a_body_asks(fn: Any, body: Body) -> None:
    """Questions are read off whatever can be a node; a key that is no constant stays unknown."""
    assert read_body(fn) == body
