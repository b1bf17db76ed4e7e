"""Limits and budgets: what a run may take, what it has taken, and which bound ended it."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphagent.clock import Clock


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of every run of an executor.

    `max_steps`: supersteps (eager: completions) of one run; a child graph has its own count under the same bound.
    `max_concurrency`: activations that run at the same time (None or below 1: no bound). `step_timeout`,
    `node_timeout`: seconds for a step and for an attempt; with a step timeout and no node timeout, an attempt may
    take the larger of half of it and one second. `save_timeout`: seconds a write of a checkpoint may take,
    from when it has a connection.
    `landing`: a node that runs once, on the last allowed step, when the limit would cut the run off; its update is
    kept, its edges don't fire, and the result is still `limit_reached`.
    """

    max_steps: int = 1000
    max_concurrency: int | None = None
    step_timeout: float | None = None
    node_timeout: float | None = None
    save_timeout: float | None = 10
    landing: str | None = None

    @property
    def attempt_timeout(self) -> float | None:
        """Seconds that one attempt of a node may take, or None."""
        if self.node_timeout is not None or self.step_timeout is None:
            return self.node_timeout
        return max(self.step_timeout / 2, 1.0)


@dataclass(frozen=True, slots=True)
class Budget:
    """What one run may take in all, its child graphs included. None: no bound. `cost` is in whatever money the
    nodes report, and counts only what they report; `seconds` is wall time."""

    steps: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


@dataclass(slots=True)
class Usage:
    """What a run has taken so far: steps of it and its children, tokens, money, model calls. `spent`: the money that
    was told; `unpriced`: calls of which none was told."""

    steps: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    spent: float = 0.0
    calls: int = 0
    unpriced: int = 0

    @property
    def cost(self) -> float | None:
        """What it has cost; None if that is not known of every call."""
        return None if self.unpriced else self.spent

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens


@dataclass(slots=True)
class Meter:
    """Usage of a run tree against its budget; one object is shared by a run and its child graphs."""

    clock: Clock
    budget: Budget | None = None
    usage: Usage = field(default_factory=Usage)
    began: float = 0.0

    def __post_init__(self) -> None:
        if self.budget is not None:
            self.began = self.clock.monotonic()

    def add(self, *, input_tokens: int = 0, output_tokens: int = 0, cost: float | None = None, calls: int = 0) -> None:
        """Count what a node has used. `cost` None: not known."""
        self.usage.input_tokens += input_tokens
        self.usage.output_tokens += output_tokens
        if cost is None:
            self.usage.unpriced += calls
        else:
            self.usage.spent += cost
        self.usage.calls += calls

    def warnings(self) -> tuple[str, ...]:
        """What a budget could not hold against the run."""
        if self.budget is None or self.budget.cost is None or not self.usage.unpriced:
            return ()
        return (f"the price of {self.usage.unpriced} model calls is not known: the budget of cost did not count them",)

    def exceeded(self) -> str | None:
        """The bound that leaves no room for another step (`steps`, `tokens`, `cost`, `time`), or None."""
        budget = self.budget
        if budget is None:
            return None
        usage = self.usage
        if budget.steps is not None and usage.steps >= budget.steps:
            return "steps"
        if budget.tokens is not None and usage.tokens >= budget.tokens:
            return "tokens"
        if budget.cost is not None and usage.spent >= budget.cost:
            return "cost"
        if budget.seconds is not None and self.clock.monotonic() - self.began >= budget.seconds:
            return "time"
        return None
