"""What comes next: a step, or a reason to stop. Pure: nothing is awaited, read from a clock or written here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from graphagent.checkpoint.record import Question
from graphagent.engine.frame import RECENT, Frame, Step
from graphagent.engine.questions import pending, question_id
from graphagent.errors import NodeError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Marking
from graphagent.graph.transitions import starving


class Stop(NamedTuple):
    """Why the loop ends. `kind`: `completed`, `stalled`, `cancelled`, `limit`, `asked` or `failed`. `landed`: the
    landing node that has run."""

    kind: Literal["completed", "stalled", "cancelled", "limit", "asked", "failed"]
    reason: str = ""
    questions: tuple[Question, ...] = ()
    error: Exception | None = None
    landed: str | None = None


def plan(frame: Frame, running: frozenset[int] = frozenset()) -> Step | Stop:
    """The next step of the frame, in graph order, or why there is none. `running`: positions that have started."""
    frontier = frame.marking.frontier
    if not frontier:
        return natural_end(frame.graph, frame.marking)
    tree = frame.tree
    if tree.stop is not None:
        return (
            Stop("cancelled", "cancelled")
            if tree.stop == "cancel"
            else Stop("asked", "pause", (pause_question(frame),))
        )
    if frame.steps >= frame.step_bound:
        return Stop("limit", _steps_reason(frame))
    if tree.meter.budget is not None and (bound := tree.meter.exceeded()) is not None:
        return Stop("limit", f"budget: {bound}")
    if frame.graph.before and (stop := _breaks_before(frame, running)) is not None:
        return stop
    if len(frontier) == 1 and not frame.held and not frame.questions:
        return frame.setup.lone_steps[frontier[0].node]
    names = frame.graph.names
    moved = {question.position for question in frame.questions if question.answered and question.frame is not None}
    waiting = {question.position for question in pending(frame.questions)} - moved
    todo = tuple(i for i in range(len(frontier)) if i not in frame.held and i not in waiting)
    if not todo and waiting:
        return Stop("asked", "unanswered")
    return Step(todo, tuple(names[activation.node] for activation in frontier))


def natural_end(graph: CompiledGraph, marking: Marking) -> Stop:
    """How a run ends that has nothing left to run: completed, or stalled with the reason."""
    if any(marking.joins):
        starved = starving(graph, marking)
        if starved:
            return Stop("stalled", "; ".join(map(str, starved)))
    if graph.names_end and not marking.ended:
        return Stop("stalled", "end_not_reached: the graph names END, nothing is left to run, and END was not reached")
    return Stop("completed", "completed")


def _steps_reason(frame: Frame) -> str:
    limit = frame.setup.limits.max_steps
    names = ", ".join(f"'{frame.graph.names[a.node]}'" for a in frame.marking.frontier[:5])
    where = f" in child '{frame.namespace}'" if frame.namespace else ""
    cycle = _cycle(frame)
    looping = f"; it went round {' -> '.join(map(repr, cycle))}" if cycle else ""
    return f"steps: {limit} steps are done{where} and {names} would be next{looping}; raise Limits(max_steps=...)"


def _cycle(frame: Frame) -> list[str]:
    """The shortest cycle that the last steps repeated, if there is one."""
    last = frame.recent[-RECENT:]
    recent = [nodes for nodes in last if len(nodes) == 1]
    if len(recent) < len(last):
        return []
    trail = [nodes[0] for nodes in recent]
    for size in range(1, len(trail) // 2 + 1):
        if trail[-size:] == trail[-2 * size : -size]:
            return trail[-size:]
    return []


def _breaks_before(frame: Frame, running: frozenset[int]) -> Stop | None:
    started = running | frame.passed | frame.held.keys()
    places = [position for position in range(len(frame.marking.frontier)) if position not in started]
    return _breaks(frame, frame.graph.before, frame.values, places, "before")


def breaks_after(frame: Frame, state: dict[str, Any], only: int | None = None) -> Stop | None:
    """The stop at breakpoints after the step that has just run (or after one activation of it), if there are any.

    They are judged on the new state. A condition that fails stops the run as failed.
    """
    places = range(len(frame.marking.frontier)) if only is None else [only]
    return _breaks(frame, frame.graph.after, state, places, "after")


def _breaks(
    frame: Frame,
    points: Mapping[int, bool | Callable[[Any], bool]],
    state: dict[str, Any],
    places: Iterable[int],
    kind: str,
) -> Stop | None:
    nodes = [(position, frame.marking.frontier[position].node) for position in places]
    try:
        hits = [(position, node) for position, node in nodes if _holds(frame, points.get(node, False), node, state)]
    except NodeError as error:
        return Stop("failed", str(error), error=error)
    return Stop("asked", "breakpoint", _break_questions(frame, hits, kind)) if hits else None


def _holds(frame: Frame, condition: bool | Callable[[Any], bool], node: int, state: dict[str, Any]) -> bool:
    if not callable(condition):
        return condition
    try:
        return condition(frame.graph.schema.view(state))
    except Exception as error:
        name = frame.graph.names[node]
        text = f"the breakpoint condition of node '{name}' failed: {type(error).__name__}: {error}"
        raise NodeError(text, node=name) from error


def _break_questions(frame: Frame, hits: list[tuple[int, int]], kind: str) -> tuple[Question, ...]:
    names = frame.graph.names
    active = [names[activation.node] for activation in frame.marking.frontier]
    return tuple(
        Question(
            id=question_id(frame.namespace, frame.activation_id(position), 0) + f"-{kind}",
            key=f"{kind}:{names[node]}",
            node=names[node],
            position=position,
            ordinal=0,
            prompt={"phase": kind, "nodes": [names[n] for _, n in hits], "active": active},
            kind=kind,
        )
        for position, node in hits
    )


def pause_question(frame: Frame) -> Question:
    """What a paused run waits with; it only wants a resume."""
    forced = frame.tree.stop == "forced"
    return Question(
        id=question_id(frame.namespace, "pause", frame.step + 1),
        key="pause",
        node="",
        position=-1,
        ordinal=0,
        prompt={"forced": forced},
        kind="pause",
    )
