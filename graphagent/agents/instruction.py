"""Instructions with placeholders: `{key}`, `{key?}`, `{app:key}`, `{user:key}`, `{temp:key}`, `{invocation:key}`,
`{artifact.name}`."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from graphagent.agents.invocation import Invocation
from graphagent.agents.requests import field
from graphagent.engine.context import NodeContext
from graphagent.engine.hooks import settled
from graphagent.unset import UNSET

Instruction = str | Callable[[Any, NodeContext], str | Awaitable[str]]
"""A text with placeholders, or a function of state and context that makes it; what a function makes is taken as it
is."""

_PLACEHOLDER = re.compile(r"\{((?:artifact\.[^{}\s?]+)|(?:(?:app|user|temp|invocation):)?[A-Za-z_][\w.-]*)(\?)?\}")


async def rendered(instruction: Instruction, state: Any, ctx: NodeContext, invocation: Invocation | None) -> str:
    """The instruction as the model gets it.

    A bare key is looked up in the graph's state, then in that of the session; `invocation:` in the run's options. A
    placeholder for something that isn't there stays as it is, with `?` it becomes empty. Texts are put in as they are,
    other values as JSON.
    """
    if callable(instruction):
        made: str = await settled(instruction(state, ctx))
        return made
    if "{" not in instruction:
        return instruction
    parts: list[str] = []
    end = 0
    for found in _PLACEHOLDER.finditer(instruction):
        value = await _value(found[1], state, invocation)
        missing = "" if found[2] else found[0]
        parts += [instruction[end : found.start()], missing if value is UNSET else _shown(value)]
        end = found.end()
    return "".join([*parts, instruction[end:]])


async def _value(key: str, state: Any, invocation: Invocation | None) -> Any:
    scope, _, name = key.rpartition(":")
    own = field(state, name, UNSET) if not scope and not key.startswith("artifact.") else UNSET
    if own is not UNSET or invocation is None:
        return own
    if scope == "invocation":
        return invocation.options.extra.get(name, UNSET)
    if key.startswith("artifact."):
        return await _artifact(key.removeprefix("artifact."), invocation)
    given = invocation.options.state.get(key, UNSET)
    if given is UNSET and invocation.session is not None:
        given = invocation.session.state.get(key, UNSET)
    return given


async def _artifact(name: str, invocation: Invocation) -> Any:
    artifacts, session = invocation.services.artifacts, invocation.session
    if artifacts is None or session is None:
        return UNSET
    found = await artifacts.load(session.key, name)
    return UNSET if found is None else found.data.decode(errors="replace")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
