"""Programs that go on running between the calls of a model, each known to the session that started it."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio

from graphagent.errors import ToolError
from graphagent.execution import InteractiveProgram, Talk
from graphagent.ids import fresh_id

MOST_RUNNING, MOST_ENDED = 8, 64


@dataclass(slots=True)
class Running:
    """A program that was started. `owner`: the key of its workspace; `offset`: up to where the model has been told."""

    program: InteractiveProgram
    owner: str
    offset: int = 0
    ended: bool = False

    async def heard(self, seconds: float) -> Talk:
        """What it has said since the last time, waiting so long for its end."""
        talk = await self.program.poll(self.offset, seconds=0)
        with anyio.move_on_after(seconds):
            while talk.exit_code is None:
                more = await self.program.poll(talk.next_offset, seconds=seconds)
                talk = Talk(talk.output + more.output, talk.offset, more.next_offset, more.exit_code)
        self.offset, self.ended = talk.next_offset, talk.exit_code is not None
        return talk


@dataclass(slots=True)
class Programs:
    """The programs of a set of tools. Of those that have ended the last ones are kept, of all sessions together."""

    found: dict[str, Running] = field(default_factory=dict)

    def add(self, one: Running) -> str:
        """Keep a program; returns its id, which nobody can guess."""
        id = fresh_id()
        self.found[id] = one
        for old in [known for known, other in self.found.items() if other.ended][:-MOST_ENDED]:
            del self.found[old]
        return id

    def of(self, id: str, owner: str) -> Running:
        """A program of a session. Raises ToolError, the same for one of another session as for none."""
        one = self.found.get(id)
        if one is None or one.owner != owner:
            raise ToolError(f"unknown session_id: {id[:80]}")
        return one

    async def check_room(self, owner: str) -> None:
        """Raises ToolError if as many programs of a session run as may."""
        running = 0
        for one in self.found.values():
            if one.owner == owner and not one.ended:
                one.ended = (await one.program.poll(one.offset, seconds=0)).exit_code is not None
                running += not one.ended
        if running >= MOST_RUNNING:
            raise ToolError(f"{running} programs are running; end one with workspace_kill_session first")

    async def aclose(self) -> None:
        """End all of them."""
        for one in list(self.found.values()):
            await one.program.kill()
        self.found.clear()
