"""How a SQL store is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Sync = Literal["normal", "full", "group"]
"""When a commit to SQLite is safe: `normal` survives a killed process, `full` and `group` also a loss of power."""


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """PostgreSQL connections.

    At most `max_size` are open at once; whoever needs one more stands in line, for up to `timeout` seconds, which don't
    count as time that a write takes (`limits.save_timeout`). A connection that was idle for `max_idle` seconds, or is
    `max_lifetime` seconds old, is closed instead of used again; one that the server ended is noticed before it is used.
    Work cut off by a lost connection is repeated on a fresh one, `attempts` times in all: at once, then after 0.1, 0.4,
    0.9 seconds. `pooler`: the server is reached through a pooler that hands out connections per transaction
    (PgBouncer's transaction mode), so no prepared statements are used.
    """

    max_size: int = 8
    timeout: float = 120.0
    max_idle: float = 120.0
    max_lifetime: float = 3600.0
    attempts: int = 4
    pooler: bool = False
