"""Events: what a run tells whoever listens."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

StreamMode = Literal["updates", "messages", "tasks", "checkpoints", "custom", "debug", "error"]
MODES: tuple[str, ...] = ("updates", "messages", "tasks", "checkpoints", "custom", "debug")


class RunEvent(NamedTuple):
    """One event of a run.

    `seq`: gap-free within a stream. `mode` and `kind`: `updates`/update (a node's checked update); `messages`/text
    and reasoning (pieces, live); `tasks`/start, end, error (a failed attempt); `checkpoints`/<source of the row>;
    `custom`/<the node's own kind>, progress; `debug`/plan, merged, ended; `error`/failed (sent whatever the modes).
    `namespace`: path of the child graph, empty in the root. `step`, `node`, `branch`, `activation`: where it comes
    from, fixed when it is made. `data`: the payload.
    """

    seq: int
    mode: StreamMode
    kind: str
    lineage: str
    run_id: str
    namespace: str = ""
    data: Any = None
    step: int = 0
    node: str = ""
    branch: str = ""
    activation: str = ""
