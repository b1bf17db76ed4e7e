"""What a report says of a run: plain values that every format is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphagent.checkpoint.finding import RunInfo
from graphagent.debug.moment import Moment
from graphagent.debug.writes import NodeWrite
from graphagent.engine.timetravel import Change

NOTHING: tuple[Any, ...] = (None, "", [], {}, ())
"""Values of fields that nothing was put into."""
FIRST, LAST = 200, 300
"""Rows of a long run that a report has: the oldest and the newest; those between are counted."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the run. `depth`: how many graphs it is inside of. `took`: seconds since the row before it of its frame,
    None for a first one. `changes`: the fields that differ from the row before. `writes`: what each activation of the
    step wrote; empty where nothing is known of it."""

    moment: Moment
    depth: int
    took: float | None
    changes: Mapping[str, Change]
    writes: tuple[NodeWrite, ...] = ()


@dataclass(frozen=True, slots=True)
class RunReport:
    """All that a report says. `info`: the run as a list of runs has it. `entries`: its rows in the order in which they
    happened; `left_out` of them are missing after the first `FIRST`. `state`: at the end, secrets masked. `picture`: an
    SVG, empty where the graph is not known. `route`: the nodes of the root's steps, those of one step together."""

    info: RunInfo
    advice: str
    entries: tuple[Entry, ...]
    left_out: int
    route: tuple[tuple[str, ...], ...]
    state: Mapping[str, Any]
    picture: str = ""

    @property
    def seconds(self) -> float:
        """From the oldest to the newest row."""
        return self.info.updated - self.info.began


def advice_for(info: RunInfo, target: str | None) -> str:
    """What a person may do next with a run, in one line."""
    graph = target or "MODULE:GRAPH"
    match info.status:
        case "interrupted":
            answers = " ".join(f"--answer {key}=..." for key in info.waits if ":" not in key)
            return f"graphagent resume {info.lineage} {graph} {answers}".rstrip()
        case "failed" | "stalled" | "limit_reached" | "unfinished":
            return f"graphagent debug {graph} --lineage {info.lineage}"
        case "running":
            return f"it goes on, held by {info.holder}"
        case _:
            return f"graphagent replay {info.lineage} --graph {graph}"


def route_text(route: tuple[tuple[str, ...], ...], most: int = 24) -> str:
    """The way of a run as a line: `load -> {chain, trust} -> verdict`."""
    told = [step[0] if len(step) == 1 else "{" + _several(step) + "}" for step in route]
    if len(told) > most:
        told = [*told[: most // 2], f"... {len(told) - most} more ...", *told[-(most // 2) :]]
    return " -> ".join(told)


def _several(step: tuple[str, ...]) -> str:
    names = list(dict.fromkeys(step))
    counted = [name if step.count(name) == 1 else f"{name} x{step.count(name)}" for name in names]
    return ", ".join(counted[:8]) + (f", and {len(counted) - 8} more" if len(counted) > 8 else "")
