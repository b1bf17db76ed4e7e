"""What a run comes back with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from graphagent.checkpoint.record import Question
from graphagent.engine.html import table
from graphagent.engine.limits import Usage
from graphagent.errors import LimitReached, RunCancelled, RunInterrupted, RunStalled

Status = Literal["completed", "interrupted", "failed", "cancelled", "limit_reached", "stalled"]


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A question that a run waits with. Answer it by `id`, or by `key` where only one is pending under that key.

    `kind`: `ask` wants an answer; `before`, `after` (breakpoints) and `pause` only want a resume. `schema` is the
    JSON schema of the answer. `path` is the namespace of the child graph that asks, empty for the root.
    """

    id: str
    key: str
    node: str
    prompt: Any = None
    schema: Any = None
    kind: str = "ask"
    path: str = ""


def public(question: Question) -> Interrupt:
    """The stored question as callers see it."""
    path = question.id.rpartition("/")[0] if question.frame is not None else ""
    return Interrupt(question.id, question.key, question.node, question.prompt, question.schema, question.kind, path)


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended.

    `status` and `reason`: why it stopped (which limit, which join is starved, `end_not_reached`, which node failed).
    `state`: the state at the end; after a failed or interrupted step the one before it. `interrupts`: what it waits
    for. `checkpoint`: id of the newest row, or None without a store. `steps`: supersteps of this run. `error`: the
    typed error of a failed run. `warnings`: what was odd but not wrong. `landed`: the landing node that ended well when
    a limit cut the run off, or None.
    """

    status: Status
    reason: str
    state: Any
    interrupts: tuple[Interrupt, ...] = ()
    checkpoint: str | None = None
    steps: int = 0
    error: Exception | None = None
    usage: Usage = field(default_factory=Usage)
    warnings: tuple[str, ...] = ()
    lineage: str = ""
    run_id: str = ""
    landed: str | None = None

    @property
    def ok(self) -> bool:
        """True if the run completed."""
        return self.status == "completed"

    def _repr_html_(self) -> str:
        """How notebooks show it."""
        return table(self)

    def unwrap(self) -> Any:
        """The state of a completed run; raises the typed error of any other."""
        if self.status == "completed":
            return self.state
        if self.status == "failed" and self.error is not None:
            raise self.error
        if self.status == "interrupted":
            keys = ", ".join(f"'{i.key}' ({i.id})" for i in self.interrupts)
            raise RunInterrupted(f"the run waits for {keys}; resume('{self.lineage}', answers=...)", self.interrupts)
        kinds = {"limit_reached": LimitReached, "stalled": RunStalled, "cancelled": RunCancelled}
        raise kinds[self.status](f"the run is {self.status}: {self.reason}")
