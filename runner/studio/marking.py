"""What the nodes of a picture are marked with at a moment, as headers and frontier tell."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from graphagent.checkpoint.record import Header
from graphagent.debug.moment import Moment
from graphagent.graph.compiled import CompiledGraph
from runner.picture import Mark, State
from runner.studio.model import StudioRun

_COMING: dict[str, State] = {"ready": "next", "held": "held", "waiting": "waiting"}


def marks_of(run: StudioRun, graph: CompiledGraph) -> dict[str, Mark]:
    """The marks at the run's cursor. Nodes that come next are shown as running while somebody runs them."""
    moment = run.moment
    line = way_to(run.rows.by_frame.get(moment.namespace, ()), moment.seq)
    elsewhere = run.info is not None and run.info.status == "running" and run.rows.newest_id == moment.id
    going = elsewhere and not (run.session is not None and run.session.live)
    return node_marks(graph, moment, line, going=going or run.busy in ("run", "step", "next", "out", "until"))


def way_to(headers: Sequence[Header], seq: int) -> list[Header]:
    """The rows that lead to a row of a frame, the oldest first; forks and edits leave others aside."""
    at = {header.seq: place for place, header in enumerate(headers)}
    found: list[Header] = []
    place = at.get(seq)
    if place is None:
        return list(headers[: bisect_right([header.seq for header in headers], seq)])
    while place is not None:
        header = headers[place]
        found.append(header)
        place = None if header.parent is None else at.get(header.parent)
    return found[::-1]


def node_marks(graph: CompiledGraph, moment: Moment, line: Sequence[Header], *, going: bool) -> dict[str, Mark]:
    """The marks of nodes that ran on the way, or come next. `going`: what comes next is running now."""
    visits = Counter(node for header in line if header.source == "step" for node in header.nodes)
    states: dict[str, State] = dict.fromkeys(visits, "done")
    for coming in moment.coming:
        state = _COMING[coming.state]
        states[coming.node] = "running" if going and state == "next" else state
    if moment.source == "error" and isinstance(moment.note, dict) and "error" in moment.note:
        open_ones = [coming.node for coming in moment.coming if coming.state == "ready"]
        named = [node for node in open_ones if f"'{node}'" in str(moment.error)]
        states.update(dict.fromkeys(named or open_ones, "failed"))
    for question in moment.waits:
        if question.node in graph.index:
            states[question.node] = "waiting"
    return {node: Mark(state, visits[node]) for node, state in states.items() if node in graph.index}
