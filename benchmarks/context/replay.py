"""Conversations put into a session, summed up on the way, and asked about: with the parts that a Runner has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.context.data import Said
from benchmarks.context.meter import Exchange, Metered
from benchmarks.context.standin import summariser
from graphagent import LLMAgent
from graphagent.agents.invocation import Invocation, Services
from graphagent.agents.model import Model
from graphagent.agents.toolset import ToolLike
from graphagent.ledger import Event, Session, SessionKey
from graphagent.messages import Message
from graphagent.services import SessionService
from processors import SessionProjector, Summaries, default_pipeline
from runner.summary.checks import EventsOver, SummaryCheck
from runner.summary.rolling import RollingSummary
from runner.summary.summarizer import ModelSummarizer
from runner.summary.values import Attempt, SummaryInput

APP, USER, READER = "bench", "ann", "reader"
KEEP, EVERY = 20, 40
"""The newest messages that stay in view, and how many beyond them call for a summary: as in the reference's report."""
START = 1_700_000_000.0
FULL = SessionProjector(default_pipeline())
SHORT = SessionProjector(default_pipeline(summaries=Summaries()))


@dataclass(frozen=True, slots=True)
class Rolled:
    """A session that was summed up while it grew. `rolling`: tokens of each of the summariser's calls; `anew`: of
    calls that would sum up everything each time instead (empty: not asked for)."""

    sessions: SessionService
    session: Session
    rolling: tuple[Exchange, ...]
    anew: tuple[Exchange, ...]

    @property
    def costs(self) -> tuple[int, int]:
        """Tokens of both."""
        return sum(one.both for one in self.rolling), sum(one.both for one in self.anew)


def event_of(said: Said, at: int, key: str = APP) -> Event:
    """A message as an event of a turn of its own; what an assistant said, the reader has said."""
    by_reader = said.role == "assistant"
    message = Message.assistant(said.text) if by_reader else Message.user(said.text)
    author = READER if by_reader else "user"
    request = f"r{at}"
    return Event(
        id=said.id,
        author=author,
        messages=(message,),
        request_id=request,
        invocation_id=request,
        branch=READER,
        filter_key=key,
        timestamp=START + 60.0 * at,
    )


async def stored(sessions: SessionService, said: Iterable[Said], key: SessionKey) -> None:
    """Put a conversation into a new session."""
    await sessions.create(*key)
    for at, one in enumerate(said):
        await sessions.append(key, event_of(one, at))


def _summarizer(model: Model, keep: int, every: int, size: int) -> ModelSummarizer:
    checks: list[SummaryCheck] = [EventsOver(keep + every)]
    return ModelSummarizer(model, checks=checks, skip_recent=keep, max_words=max(1, size * 3 // 4))


async def rolled(
    sessions: SessionService,
    said: Sequence[Said],
    size: int,
    *,
    keep: int = KEEP,
    every: int = EVERY,
    model: Model | None = None,
) -> Rolled:
    """The conversation in a session, looked at after each message, and at the end summed up but for the newest ones.

    `model`: sums up in the place of the stand-in; then nothing is summed up anew for comparison.
    """
    key, anew = SessionKey(APP, USER, said[0].session), model is None
    model, again = Metered(model or summariser(size)), Metered(summariser(size))
    rolling = RollingSummary(sessions, _summarizer(model, keep, every, size))
    whole = _summarizer(again, 0, every, size)

    async def looked(force: bool) -> None:
        attempt: Attempt = await rolling.summarize(key, APP, force=force)
        if attempt.error is not None:
            raise attempt.error
        if attempt.summary is not None and anew:
            covered = [e for e in (await rolling.read(key)).events if attempt.summary.boundary.covers(e)]
            await whole.summarize(SummaryInput(key, APP, None, tuple(covered), force=True))

    await sessions.create(*key)
    for at, one in enumerate(said):
        await sessions.append(key, event_of(one, at))
        await looked(force=False)
    if len(said) > keep:
        await looked(force=True)
    session = await rolling.read(key)
    return Rolled(sessions, session, tuple(model.exchanges), tuple(again.exchanges))


async def asked(
    sessions: SessionService,
    session: Session,
    question: str,
    model: Model,
    *,
    projector: SessionProjector,
    tools: Sequence[ToolLike] = (),
    instruction: str = "",
) -> tuple[Metered, list[Event]]:
    """What a model is sent and answers when the reader is asked, and the events of that run; none of it is stored."""
    metered = Metered(model)
    agent = LLMAgent(READER, metered, instruction, tools)
    services = Services(sessions=sessions, projector=projector)
    told = {"filter_key": APP, "branch": READER, "services": services}
    invocation = Invocation(agent, Message.user(question), session, **told)
    return metered, [event async for event in agent.run(invocation)]
