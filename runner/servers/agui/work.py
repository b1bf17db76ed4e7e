"""A run that may begin, and where a thread's run belongs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphagent.agents.external import ExternalTool
from graphagent.agents.invocation import RunOptions
from graphagent.ledger import SessionKey
from graphagent.messages import Message
from runner.servers.agui.marks import Marks
from runner.servers.agui.translator import RunNames


@dataclass(frozen=True, slots=True)
class Work:
    """A run that may begin. `said` None answers questions. `results`: of the client's tools, under the client's ids;
    `announced`: calls that the thread's clients know; `state`: of the session, as far as it is shown; `files`: the
    artifacts that there are, with their newest versions."""

    key: SessionKey
    names: RunNames
    said: tuple[Message, ...] | None
    options: RunOptions
    marks: Marks
    tools: tuple[ExternalTool, ...] = ()
    results: tuple[tuple[str, Message], ...] = ()
    announced: frozenset[str] = frozenset()
    state: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, int] = field(default_factory=dict)

    @property
    def request_id(self) -> str:
        """What the Runner calls the run."""
        return str(self.options.request_id)


def request_id_of(key: SessionKey, run_id: str) -> str:
    """What the Runner calls a client's run: the same for the same run of a thread, and never that of another user's,
    whatever ids clients choose."""
    text = "\0".join((*key, run_id))
    return f"agui-{hashlib.sha256(text.encode()).hexdigest()[:40]}"
