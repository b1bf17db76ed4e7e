"""Many conversations at once through one Runner, and the ledger that says whether any event was lost or doubled."""

from __future__ import annotations

import ctypes
import gc
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import psycopg
import pytest

from graphagent import LLMAgent, SqlCheckpoints, tool
from graphagent.agents.model import ModelRequest
from graphagent.agents.tool import ToolContext
from graphagent.models import ScriptedModel
from runner import Runner
from runner.outcome import OUTCOME
from runner.runner import RunnerPolicy
from runner.sessions import SqlSessions
from support.service_tables import query

APP = "load"


@dataclass
class World:
    """What models and tools did, kept outside of the database. `texts`: by session, in order; `told`: ids of events
    that a reader got; `asked`: messages of a request that were not those expected."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    told: dict[str, list[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def answer(self, request: ModelRequest) -> object:
        """A tool call in answer to a question, a text in answer to its result; the request must hold all that was
        said."""
        said = [message.text or f"call {message.tool_calls[0].arguments['about']}" for message in request.messages]
        asked = next(message.text for message in reversed(request.messages) if message.role == "user")
        session, _, turn = asked.partition(" ")
        if said != self.texts[session]:
            known = len(self.texts[session])
            self.wrong.append(f"{session}, turn {turn}: the model was sent {len(said)} messages of {known}, or others")
        if request.messages[-1].role == "tool":
            self.texts[session].append(f"answer {asked}")
            return f"answer {asked}"
        self.texts[session].append(f"call {asked}")
        return {"tool_calls": [{"name": "look", "arguments": {"about": asked}}]}

    def tools(self) -> list[object]:
        """A tool that writes down that it was called."""

        @tool
        async def look(about: str, ctx: ToolContext) -> str:
            """Look it up."""
            await anyio.lowlevel.checkpoint()
            self.texts[about.partition(" ")[0]].append(f"result {about}")
            return f"result {about}"

        return [look]


@dataclass(frozen=True)
class Sample:
    """Memory after everything has been collected: objects that the collector knows, and resident bytes."""

    objects: int
    resident: int

    @classmethod
    def now(cls) -> Sample:
        """What is there now."""
        for _ in range(3):
            gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        return cls(len(gc.get_objects()), resident())

    def __str__(self) -> str:
        return f"{self.objects:,} objects {self.resident / 2**20:.0f} MiB"


@dataclass(frozen=True)
class Load:
    """What came of a load. `samples`: of memory, after the warm-up and after each wave; `peak`: resident bytes;
    `statements`: those sent to PostgreSQL in the waves."""

    sessions: int
    turns: int
    events: int
    seconds: float
    faults: tuple[str, ...]
    samples: tuple[Sample, ...]
    peak: int
    slowest: float
    statements: int

    @property
    def growth(self) -> float:
        """By which part the number of objects grew after the first wave, when what a Runner holds is there."""
        return self.samples[-1].objects / self.samples[1].objects - 1

    def __str__(self) -> str:
        memory = ", ".join(str(one) for one in self.samples)
        return (
            f"{self.sessions} sessions x {self.turns} turns: {self.events} events in {self.seconds:.1f} s, "
            f"{self.events / self.seconds:.0f} events/s, {self.statements / (self.events / 4):.1f} statements a turn, "
            f"slowest turn {self.slowest:.2f} s, "
            f"{len(self.faults)} fault(s); memory after warm-up and each wave: {memory}; "
            f"peak {self.peak / 2**20:.0f} MiB"
        )


async def load(
    url: str,
    *,
    sessions: int,
    turns: int,
    waves: int = 2,
    policy: RunnerPolicy | None = None,
    tell: Callable[[str], None] = str,
) -> Load:
    """Hold `sessions` conversations of `turns` turns at the same time, `waves` times over, after a warm-up of the same
    width with two turns. A turn is a question, a tool call, its result and an answer: four events."""
    world, samples, faults, seconds, peak, sent = World(), [], [], 0.0, 0, 0
    async with held(url, world, policy) as runner:
        for wave, length in enumerate([2, *[turns] * waves]):
            names = [f"w{wave}s{number}" for number in range(sessions)]
            began = time.monotonic()
            with counted() as statements:
                async with anyio.create_task_group() as group:
                    for name in names:
                        group.start_soon(talk, runner, world, name, length)
            seconds += (time.monotonic() - began) if wave else 0.0
            sent += statements.total() if wave else 0
            peak = max(peak, resident())
            faults += lost_or_doubled(url, world, names)
            world.texts.clear()
            world.told.clear()
            samples.append(Sample.now())
            about = f"wave {wave}: {sessions} sessions x {length} turns, {time.monotonic() - began:.0f} s"
            tell(f"{about}, {len(faults)} fault(s), {samples[-1]}")
    return Load(
        sessions=sessions,
        turns=turns,
        events=sessions * turns * waves * 4,
        seconds=seconds,
        faults=(*world.wrong, *faults),
        samples=tuple(samples),
        peak=peak,
        slowest=world.slowest,
        statements=sent,
    )


@asynccontextmanager
async def held(url: str, world: World, policy: RunnerPolicy | None = None) -> AsyncIterator[Runner]:
    """A Runner whose sessions and checkpoints are in one database, with the limits that everybody has."""
    model = ScriptedModel(world.answer, keep_requests=False)
    agent = LLMAgent("bot", model, tools=world.tools())
    async with (
        SqlSessions(url) as kept,
        SqlCheckpoints(url) as checkpoints,
        Runner(APP, agent, sessions=kept, checkpoints=checkpoints, policy=policy) as runner,
    ):
        yield runner


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """How often each statement is sent to PostgreSQL."""
    sent: Counter[str] = Counter()
    real = psycopg.AsyncConnection.execute

    async def execute(self: Any, query: Any, *more: Any, **options: Any) -> Any:
        sent[str(query)] += 1
        return await real(self, query, *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.AsyncConnection, "execute", execute)
        yield sent


async def talk(runner: Runner, world: World, session: str, turns: int) -> None:
    """One conversation, turn after turn."""
    world.texts[session], world.told[session] = [], []
    for turn in range(turns):
        began = time.monotonic()
        world.texts[session].append(f"{session} {turn}")
        async for event in runner.run("ann", session, f"{session} {turn}"):
            if event.kind == "completion":
                if event.extensions[OUTCOME] != "completed":
                    world.wrong.append(f"{session}, turn {turn}: {event.extensions} {event.error}")
            elif not event.partial:
                world.told[session].append(event.id)
        world.slowest = max(world.slowest, time.monotonic() - began)


def lost_or_doubled(url: str, world: World, names: list[str]) -> list[str]:
    """What the rows of the database have more or less than what was done, for each session."""
    faults = []
    rows = query(url, EVENTS)
    kept: dict[str, list[dict[str, object]]] = {}
    for name, body in rows:
        kept.setdefault(name, []).append(json.loads(body))
    for name in names:
        events = kept.get(name, [])
        texts = [text for event in events for text in _texts(event)]
        if texts != world.texts[name]:
            more, less = Counter(texts), Counter(world.texts[name])
            faults.append(f"{name}: lost {dict(less - more)}, doubled {dict(more - less)}, or in another order")
        by_agent = [event["id"] for event in events if event["author"] != "user"]
        if by_agent != world.told[name]:
            faults.append(f"{name}: the reader was told {len(world.told[name])} events, {len(by_agent)} are stored")
    return faults


EVENTS = (
    "SELECT s.name, e.body FROM ga_events e JOIN ga_sessions s ON s.id = e.session "
    f"WHERE s.app = '{APP}' ORDER BY s.id, e.place"
)


def _texts(event: dict[str, object]) -> list[str]:
    found = []
    for message in event["messages"]:  # type: ignore[attr-defined]
        calls = message.get("tool_calls") or []
        found.append(f"call {calls[0]['arguments']['about']}" if calls else message["content"])
    return found


def resident() -> int:
    """Resident bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
