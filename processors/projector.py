"""Projects a session for a run of an agent: what `graphagent.agents.projector.Projector` asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from graphagent.agents.invocation import Invocation
from graphagent.agents.offers import offered_tools
from graphagent.agents.placeholders import artifact_names
from graphagent.agents.projector import NONE_AHEAD, Projected
from graphagent.clock import Clock, SystemClock
from graphagent.ledger import Session, Summary
from graphagent.messages import Message
from graphagent.services import SessionService, read_again
from processors.assemble import assemble
from processors.compaction import Compaction
from processors.instructions import Instructions
from processors.pipeline import Pipeline, default_pipeline
from processors.projection import Block, Budget, Given, Note, Projection, Reader
from processors.spans import spans_of
from processors.tail import areas_of

Preload = Callable[[Invocation], Awaitable[Sequence[Block]]]
"""Fetches memories and evidence for a run. If it fails, the run goes on without, and a note says so."""

INCLUDE_CONTENTS = "include_contents"
"""The option of a run (in `extra`) that says `none` to leave the session's history out."""


class SessionProjector:
    """Makes a run's messages from its session, what is new in it read anew each time.

    `pipeline`: None takes the default one. `sessions`: where the session is read; None takes the run's service, and
    without one the run's own copy is used. `preload`: what goes in beside the history, of several each fails on its
    own. `budget`: tokens for it all.
    """

    def __init__(
        self,
        pipeline: Pipeline | None = None,
        sessions: SessionService | None = None,
        *,
        preload: Preload | Sequence[Preload] | None = None,
        budget: Budget | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.pipeline = pipeline or default_pipeline()
        self.budget = budget
        self._sessions = sessions
        self._preloads = (preload,) if callable(preload) else tuple(preload or ())
        self._clock = clock or SystemClock()

    async def messages(self, invocation: Invocation) -> tuple[Message, ...]:
        """The messages for a run; the current one is among them. Raises what reading the session raises."""
        return assemble(await self.projection(invocation))

    async def projected(self, invocation: Invocation, ahead: Mapping[str, Summary] = NONE_AHEAD) -> Projected:
        """The same messages, with what became of the events; this is kept with the answers that are made from them.
        `ahead`: summaries by key that take the place of stored ones."""
        start = await self.snapshot(invocation)
        if ahead:
            start = replace(start, summaries={**start.summaries, **ahead})
        made = self.pipeline.newest(start)
        resumed = any(line.resumed for line in made.lines)
        return Projected(assemble(made), spans_of(start, made), self._covered(start), resumed)

    async def covered(self, invocation: Invocation) -> int:
        """The number of the last event that a stored summary would stand for now; 0 if none would. Raises what reading
        the session raises."""
        session = await self._session(invocation)
        return self._covered(Projection.of(session, Reader.of(invocation)))

    def _covered(self, start: Projection) -> int:
        return max((area.boundary.seq for area in areas_of(tuple(self.pipeline), start)), default=0)

    async def projection(self, invocation: Invocation) -> Projection:
        """The projection after the chain, with its notes; see `Pipeline.newest`."""
        return self.pipeline.newest(await self.snapshot(invocation))

    async def snapshot(self, invocation: Invocation) -> Projection:
        """The projection before the chain: from it the same messages can be made again."""
        session = await self._session(invocation)
        compacts = any(isinstance(step, Compaction) for step in self.pipeline)
        tools = await offered_tools(invocation) if compacts else frozenset()
        reader = Reader.of(invocation, now=self._clock.now(), tools=tools)
        options = invocation.options
        given = Given(
            instruction=options.instruction,
            values=options.extra,
            runtime=options.state,
            own_run_only=str(options.extra.get(INCLUDE_CONTENTS, "")).lower() == "none",
        )
        start = Projection.of(session, reader, given=given, budget=self.budget)
        return await self._with_artifacts(await self._with_blocks(start, invocation), invocation)

    async def _session(self, invocation: Invocation) -> Session | None:
        """The session as it is now; the run's own copy where there is no service, or no such session in it."""
        service, copy = self._sessions or invocation.services.sessions, invocation.session
        return copy if service is None or copy is None else await read_again(service, copy) or copy

    async def _with_blocks(self, start: Projection, invocation: Invocation) -> Projection:
        """With preloaded blocks. A failure costs the blocks, not the run: they are a help, not the conversation."""
        if not self._preloads or start.given.own_run_only:
            return start
        blocks: list[Block] = []
        notes: list[Note] = []
        for preload in self._preloads:
            try:
                blocks += await preload(invocation)
            except Exception as error:
                notes.append(Note("recall", "ignored", f"preloading failed: {type(error).__name__}: {error}"))
        return start.noted(notes, given=replace(start.given, blocks=tuple(blocks)))

    async def _with_artifacts(self, start: Projection, invocation: Invocation) -> Projection:
        """With the texts of the artifacts that the instructions name; one that isn't there stays unresolved."""
        service = invocation.services.artifacts
        templates = [step.templates(start) for step in self.pipeline if isinstance(step, Instructions)]
        names = artifact_names("\n".join(text for pair in templates for text in pair))
        if service is None or invocation.session is None or not names:
            return start
        texts = {}
        for name in names:
            found = await service.load(invocation.session.key, name)
            if found is not None:
                texts[name] = found.data.decode("utf-8", "replace")
        return start.noted([], given=replace(start.given, artifacts=texts))
