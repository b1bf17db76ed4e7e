"""From the outcomes of a step to the state and the marking after it: reducers, then routers, then the transition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from graphagent.engine.frame import Frame, Step
from graphagent.engine.merge import Merged, merge_writes, writers_of
from graphagent.engine.outcome import Outcome
from graphagent.engine.plan import Stop
from graphagent.errors import GraphAgentError, RouteError, StepFailed
from graphagent.graph.marking import Completion, Marking
from graphagent.graph.routes import Route, resolve
from graphagent.graph.transitions import fire
from graphagent.unset import UNSET

_ALONE = Completion(0)
MEMO_WIDTH, MEMO_SIZE = 8, 1024
"""Frontiers that are remembered, and how many transitions of a graph."""


class Result(NamedTuple):
    """A step that can be written: what changed, and where the run stands then. `note` has decisions to replay, and who
    of several activations wrote what (see `writers_of`)."""

    merged: Merged
    marking: Marking
    note: Any = None


async def settle(frame: Frame, step: Step) -> Result | Stop:
    """The result of a step whose activations have all ended well, or why it has none.

    Nothing is changed: results of a step that has none are held, and a resume goes on from them.
    """
    held = frame.held
    frontier = frame.marking.frontier
    if len(held) < len(frontier):
        return _unfinished(frame)
    by: Mapping[str, Any] = {}
    try:
        if len(frontier) == 1:
            outcome = held[0]
            if outcome.failure is not None or outcome.asked or outcome.limit is not None:
                return _unfinished(frame)
            merged = merge_writes(frame.graph.schema, frame.values, ((step.nodes[0], outcome.update),))
            completions: tuple[Completion, ...] = (await completion(frame, 0, outcome, merged.state),)
        else:
            outcomes = [held[position] for position in range(len(frontier))]
            if not all(outcome.done for outcome in outcomes):
                return _unfinished(frame)
            writes = [(step.nodes[i], outcome.update) for i, outcome in enumerate(outcomes)]
            merged = merge_writes(frame.graph.schema, frame.values, writes)
            if frame.store is not None and frame.setup.save_each_step:
                by = writers_of(frame.graph.schema, frame.values, merged)
            completions = tuple(
                [await completion(frame, i, outcome, merged.state) for i, outcome in enumerate(outcomes)]
            )
    except GraphAgentError as error:
        return Stop("failed", str(error), error=error)
    decisions = _decisions(frame, completions)
    return Result(merged, _fired(frame, completions), {**(decisions or {}), "by": by} if by else decisions)


def _fired(frame: Frame, completions: tuple[Completion, ...]) -> Marking:
    """`fire`, remembered: it is pure, and small markings come again run after run."""
    marking = frame.marking
    if len(marking.frontier) > MEMO_WIDTH:
        return fire(frame.graph, marking, completions)
    memo = frame.setup.fired
    # the marking of a lone activation is always the same object: its node says as much as all that is in it
    alone = len(marking.frontier) == 1 and marking is frame.graph.singles[marking.frontier[0].node]
    standing: Any = marking.frontier[0].node if alone else marking
    try:
        known = memo.get((standing, completions))
    except TypeError:  # an overlay can't be hashed
        return fire(frame.graph, marking, completions)
    if known is None:
        known = fire(frame.graph, marking, completions)
        if any(done.origin for done in completions):
            return known
        if len(memo) >= MEMO_SIZE:
            memo.clear()
        memo[standing, completions] = known
    return known


async def settle_one(frame: Frame, position: int, outcome: Outcome) -> Result | Stop:
    """The result of one activation that ended well, on its own: how the eager engine goes on."""
    node = frame.graph.names[frame.marking.frontier[position].node]
    try:
        merged = merge_writes(frame.graph.schema, frame.values, ((node, outcome.update),))
        completions = [await completion(frame, position, outcome, merged.state)]
    except GraphAgentError as error:
        return Stop("failed", str(error), error=error)
    return Result(merged, fire(frame.graph, frame.marking, completions), _decisions(frame, completions))


async def completion(frame: Frame, position: int, outcome: Outcome, state: dict[str, Any]) -> Completion:
    """What a finished activation chose; its routers see the merged state, without overlay."""
    graph, frontier = frame.graph, frame.marking.frontier
    node = frontier[position].node
    origin = None
    if frame.tree.durable and (len(frontier) > 1 or graph.arrivals[node] or frame.origins is not None):
        origin = frame.activation_id(position)
    if outcome.goto is not None or outcome.sends is not None:
        return Completion(position, (), outcome.goto, outcome.sends, origin, outcome.error)
    routers = graph.routers[node]
    if not routers:
        return _ALONE if origin is None and position == 0 else Completion(position, (), None, None, origin)
    if len(routers) == 1:
        return Completion(position, await _route(frame, routers[0], state), None, None, origin)
    chosen = [target for route in routers for target in await _route(frame, route, state)]
    return Completion(position, tuple(dict.fromkeys(chosen)), None, None, origin)


async def _route(frame: Frame, route: Route, state: dict[str, Any]) -> tuple[int, ...]:
    ran = frame.ran
    try:
        if ran is not None and ran.route_error is not None:
            raise ran.route_error
        if ran is not None and ran.label is not UNSET:
            returned = ran.label
        else:
            view = frame.graph.schema.view(state)
            returned = await route.router(view) if route.is_async else route.router(view)
    except Exception as error:
        raise RouteError(
            f"the router of '{route.source}' failed: {type(error).__name__}: {error}", node=route.source
        ) from error
    return resolve(frame.graph, route, returned)


def _unfinished(frame: Frame) -> Stop:
    """Failures first, all of them; then a limit inside a child; then questions."""
    held = sorted(frame.held.items())
    failures = [outcome.failure for _, outcome in held if outcome.failure is not None]
    if failures:
        error = (
            failures[0]
            if len(failures) == 1
            else StepFailed(f"{len(failures)} activations of step {frame.step + 1} failed", failures)
        )
        return Stop("failed", str(failures[0]), error=error)
    limits = [outcome.limit for _, outcome in held if outcome.limit is not None]
    if limits:
        return Stop("limit", limits[0])
    asked = tuple(question for _, outcome in held for question in outcome.asked)
    return Stop("asked", "interrupt", asked)


def _decisions(frame: Frame, completions: Sequence[Completion]) -> Mapping[str, Any] | None:
    """Gotos and Sends, which no router can be asked for again: what a replay needs beside the state."""
    for done in completions:
        if done.goto is not None or done.sends is not None:
            break
    else:
        return None
    names = frame.graph.name_of
    return {
        "goto": [[d.position, [names(t) for t in d.goto], d.error] for d in completions if d.goto is not None],
        "sends": [[d.position, [names(t) for t, _ in d.sends]] for d in completions if d.sends is not None],
    }
