"""What is measured, against what: peers, sizes, targets. The meaning of each workload is in README.md."""

from __future__ import annotations

from dataclasses import dataclass

Cell = tuple[str, int]  # workload, size


@dataclass(frozen=True)
class Peer:
    """Module ``workloads_<module>`` run with a variant, by this interpreter or that of a venv in ``.peers``.

    ``only``: the workloads that it has, if it does not have them all.
    """

    module: str
    variant: str = ""
    venv: str | None = None
    only: tuple[str, ...] = ()

    def has(self, cell: Cell) -> bool:
        return not self.only or cell[0] in self.only


@dataclass(frozen=True)
class Target:
    """Upper bounds, in times of the limit."""

    must: float
    aim: float
    database_bytes: float | None = None

    def times(self, factor: float) -> Target:
        return Target(self.must * factor, self.aim * factor, self.database_bytes)


AGENT = ("W9", "W9m", "W9s")  # workloads of agents, which some peers have alone
REFERENCE = "limit"
OURS = "ours"
PEERS = {
    REFERENCE: Peer("limit"),
    OURS: Peer("ours"),
    "ours-listen": Peer("ours", variant="listen"),
    "langgraph": Peer("langgraph", venv="langgraph"),
    "adk": Peer("adk", venv="adk", only=AGENT),
}
ALLOWANCE = {OURS: 1.0, "ours-listen": 3.0}  # times the target; the other peers have none
QUICK_PEERS = (REFERENCE, OURS, "langgraph", "adk")

FULL: tuple[Cell, ...] = (
    *(("W1", size) for size in (10, 100, 1000)),
    *(("W2", size) for size in (1000, 10000)),
    *(("W3", size) for size in (10, 100, 1000)),
    *(("W3d", size) for size in (10, 100, 1000)),
    *(("W4", size) for size in (10, 100, 1000)),
    *(("W5m", size) for size in (100, 300, 1000)),
    *(("W5s", size) for size in (100, 300, 1000)),
    ("W6", 200),
    *(("W7", size) for size in (100, 1000)),
    ("W8", 10),
    *(("W9", size) for size in (1, 10)),
    ("W9m", 1),
    ("W9s", 1),
    *(("W10", size) for size in (100, 1000)),
)

TARGETS: dict[Cell, Target] = {
    ("W1", 1000): Target(10, 5),
    ("W2", 10000): Target(10, 5),
    ("W3", 1000): Target(2.5, 1.8),
    ("W3d", 1000): Target(2.5, 1.8),
    ("W4", 1000): Target(1.5, 1.1),
    ("W5m", 1000): Target(12, 6),
    ("W5s", 1000): Target(3, 2, database_bytes=2),
    ("W6", 200): Target(3, 2, database_bytes=2),
    ("W7", 1000): Target(4, 2),
    ("W8", 10): Target(6, 3),
    ("W9", 1): Target(25, 10),
    ("W9", 10): Target(25, 10),
    ("W10", 1000): Target(2.5, 1.8),
}
QUICK: tuple[Cell, ...] = tuple(
    cell for cell in FULL if cell in TARGETS or cell in (("W7", 100), ("W9m", 1), ("W9s", 1))
)

FLAT = (("W7", 100), ("W7", 1000), 1.3)  # loading a long lineage may cost this many times loading a short one
STORED = (("W9m", 1), ("W9s", 1), 2.0)  # keeping a run may cost this many times not keeping it, and the limit's commits
