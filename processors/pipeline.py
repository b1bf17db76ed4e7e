"""The chain: its steps, their order, and the messages that come out at its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphagent.messages import Message
from processors.assemble import assemble
from processors.attachments import Attachments
from processors.compaction import Compaction
from processors.history import HistoryLimit
from processors.instructions import Instructions
from processors.pairing import Pairing
from processors.projection import Projection, Step
from processors.recall import Recall
from processors.sanitise import Sanitise
from processors.summary import Summaries
from processors.tail import newest, run
from processors.visibility import Visibility
from processors.voice import Voice


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Steps that are applied one after the other. A step is pure, so the projection before the chain is all that is
    needed to make the same messages again."""

    steps: tuple[Step, ...]

    def __call__(self, projection: Projection) -> Projection:
        """The projection after all steps."""
        return run(self.steps, projection)

    def newest(self, projection: Projection) -> Projection:
        """The same with the same messages, at the cost of what is shown: where older events can't be in view, they are
        not looked at, and not noted one by one (see `processors.tail`)."""
        return newest(self.steps, projection)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def messages(self, projection: Projection) -> tuple[Message, ...]:
        """The messages that a model is sent."""
        return assemble(self.newest(projection))


def default_pipeline(
    *,
    instructions: Instructions | None = None,
    visibility: Visibility | None = None,
    summaries: Summaries | None = None,
    pairing: Pairing | None = None,
    compaction: Compaction | None = None,
    voice: Voice | None = None,
    limit: HistoryLimit | None = None,
) -> Pipeline:
    """The chain in its order: instructions, visibility, summary, recall, pairing, compaction, voice, history limit;
    then the names of files, and the last net before a provider.

    `instructions`: None leaves them to the model node. `summaries`: None sends the whole history, in which case
    `limit` may cut it. `compaction`: None leaves results of tools as they are. The others: None takes the policy's own
    defaults.
    """
    steps: list[Step] = [instructions] if instructions is not None else []
    steps.append(visibility or Visibility())
    if summaries is not None:
        steps.append(summaries)
    steps += [Recall(), pairing or Pairing(), *([] if compaction is None else [compaction])]
    steps += [voice or Voice(), limit or HistoryLimit(), Attachments(), Sanitise()]
    return Pipeline(tuple(steps))
