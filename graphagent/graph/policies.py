"""Retry and cache policies of nodes: plain frozen values; the engine acts on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

RetryCondition = type[BaseException] | Callable[[BaseException], bool]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When and how often a failed attempt is repeated.

    `max_attempts` includes the first try (below 1 counts as 1). The delay before attempt n+1 is
    `initial * factor ** (n - 1)` seconds, capped by `max_interval` (by `initial` if that is None, so that the delay is
    constant); `jitter` adds up to the same again, never above the cap. `max_elapsed` seconds after the first try
    began no further attempt starts. `retry_on` holds exception types and predicates; interrupts and cancellation are
    never retried.
    """

    max_attempts: int = 3
    initial: float = 0.5
    factor: float = 2.0
    max_interval: float | None = 8.0
    jitter: bool = True
    max_elapsed: float | None = None
    retry_on: tuple[RetryCondition, ...] = (Exception,)

    def matches(self, error: BaseException) -> bool:
        """True if this policy repeats after that error; an empty `retry_on` matches nothing."""
        return any(isinstance(error, rule) if isinstance(rule, type) else bool(rule(error)) for rule in self.retry_on)

    def delay(self, attempt: int, random: Callable[[], float]) -> float:
        """Seconds to wait after failed attempt number `attempt` (from 1); `random` returns a number in [0, 1)."""
        factor = self.factor if self.factor > 0 else 1.0
        cap = self.initial if self.max_interval is None else self.max_interval
        try:
            base = min(self.initial * factor ** (max(attempt, 1) - 1), cap)
        except OverflowError:
            base = cap
        return min(base * (1 + random()), max(cap, base)) if self.jitter else base


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """When a node's recorded result stands for running it again.

    The key is made of `fields` of the state (None: all that are set), or by `key(state)`. `ttl`: seconds, None or
    below: for ever. Only for nodes whose result depends on nothing else.
    """

    ttl: float | None = None
    fields: tuple[str, ...] | None = None
    key: Callable[[Any], Any] | None = None
