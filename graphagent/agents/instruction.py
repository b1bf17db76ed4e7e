"""The instruction of a model node: a text whose placeholders get their values from the run, or a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from graphagent.agents.invocation import Invocation
from graphagent.agents.placeholders import ARTIFACT, Placeholder, Values, placeholders, render
from graphagent.agents.requests import field
from graphagent.engine.context import NodeContext
from graphagent.engine.hooks import settled

Instruction = str | Callable[[Any, NodeContext], str | Awaitable[str]]
"""A text with placeholders, or a function of state and context that makes it; what a function makes is taken as it
is."""


async def rendered(instruction: Instruction, state: Any, ctx: NodeContext, invocation: Invocation | None) -> str:
    """The instruction as the model gets it; `graphagent.agents.placeholders` says what placeholders are.

    A bare key is looked up in the graph's state, then in the options' state, then in the session's; `app:`, `user:`
    and `temp:` keys in the latter two; `invocation:` in the options' `extra`, `runtime:` in their state.
    """
    if callable(instruction):
        made: str = await settled(instruction(state, ctx))
        return made
    asked = set(placeholders(instruction))
    if not asked:
        return instruction
    found = {one.state_key: _of_state(one, state, invocation) for one in asked}
    if invocation is None:
        return render(instruction, Values(found)).text
    options = invocation.options
    texts = await _artifacts({one.key for one in asked if one.scope == ARTIFACT}, invocation)
    return render(instruction, Values(found, options.extra, options.state, texts)).text


def _of_state(asked: Placeholder, state: Any, invocation: Invocation | None) -> Any:
    """The first value that is there, of the graph's state, the options', the session's."""
    own = None if asked.scope else field(state, asked.key, None)
    if own is not None or invocation is None:
        return own
    given = invocation.options.state.get(asked.state_key)
    if given is None and invocation.session is not None:
        return invocation.session.state.get(asked.state_key)
    return given


async def _artifacts(names: set[str], invocation: Invocation) -> dict[str, str]:
    """The texts of the session's artifacts with these names; those that are not there are left out."""
    artifacts, session = invocation.services.artifacts, invocation.session
    if artifacts is None or session is None:
        return {}
    found = {name: await artifacts.load(session.key, name) for name in sorted(names)}
    return {name: one.data.decode(errors="replace") for name, one in found.items() if one is not None}
