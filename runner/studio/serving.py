"""How a studio is served; what a command needs to know before it imports the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from graphagent.checkpoint.sql_store import SqlCheckpoints
from runner.studio.targets import Targets

Ready = Callable[[str, str | None], None]
"""Called with the address when the studio listens, and with the reason if nothing may be changed."""


@dataclass(frozen=True, slots=True)
class Serving:
    """`url`: of the store. `port` 0: any that is free. `refused`: asks the open store why nothing may be changed; None
    if all may."""

    url: str
    host: str
    port: int
    token: str | None
    targets: Targets
    refused: Callable[[SqlCheckpoints], Awaitable[str | None]]
