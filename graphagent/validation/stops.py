"""What is wrong in an exploration: stops, repeated runs, loops without a way out. One function a question."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from graphagent.graph.marking import Starved
from graphagent.graph.transitions import starving
from graphagent.validation.explore import Exploration, Hop, Move


class Stall(NamedTuple):
    """A join that waits for ever, or holds leftovers, in a state where nothing is left to run."""

    state: int
    starved: Starved


def stalls(found: Exploration) -> Iterator[Stall]:
    """The first stall of every join, nearest first."""
    seen: set[str] = set()
    for state in found.terminals:
        for starved in starving(found.graph, found.markings[state]):
            if starved.join not in seen:
                seen.add(starved.join)
                yield Stall(state, starved)


def silent_ends(found: Exploration) -> Iterator[int]:
    """States in which nothing is left to run, no join waits, and END was not reached though the graph names it."""
    if found.graph.names_end:
        for state in found.terminals:
            marking = found.markings[state]
            if not marking.ended and not starving(found.graph, marking):
                yield state


def crowded(found: Exploration) -> Iterator[tuple[int, str, str]]:
    """The first state in which a source has arrived at a join that still has its last arrival: state, join, source."""
    seen: set[tuple[int, int]] = set()
    for state, marking in enumerate(found.markings):
        for j, join in enumerate(marking.joins):
            table = found.graph.join_tables[j]
            if join is None or table.mode not in ("all", "active"):
                continue
            for slot, queue in join.arrived:
                if len(queue) > 1 and (j, slot) not in seen:
                    seen.add((j, slot))
                    yield state, table.id, found.graph.names[table.sources[slot]]


def ran(found: Exploration) -> set[int]:
    """The nodes that run in some behaviour."""
    return {pick.node for moves in found.moves for move in moves or () for pick in move.picks}


def overlaps(found: Exploration, cyclic: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first state in which a node of a loop is due twice: state and node."""
    left = set(cyclic)
    for state, marking in enumerate(found.markings):
        due = [activation.node for activation in marking.frontier if not activation.group]
        for node in {node for node in due if node in left and due.count(node) > 1}:
            left.discard(node)
            yield state, node


class Events(NamedTuple):
    """What happens at the start and at every move, as numbers; used to find what happens twice on one path."""

    at_start: tuple[int, ...]
    of_moves: list[list[tuple[int, ...]]]


def runs(found: Exploration, cyclic: Iterable[int]) -> Events:
    """An event is a run of a node outside every loop. Members of a Send group don't count."""
    loops = set(cyclic)
    return Events(
        (),
        [
            [tuple(p.node for p in move.picks if not p.grouped and p.node not in loops) for move in moves or ()]
            for moves in found.moves
        ],
    )


def entries(found: Exploration, loops: Mapping[int, int]) -> Events:
    """An event is the entry into a loop from outside, by its number; `loops` has that of each node on one."""

    def inside(state: int) -> Counter[int]:
        frontier = found.markings[state].frontier
        return Counter(loops[a.node] for a in frontier if not a.group and a.node in loops)

    def of(state: int, move: Move) -> tuple[int, ...]:
        left = {loops[pick.node] for pick in move.picks if pick.node in loops}
        more = inside(move.target) - inside(state)
        return tuple(loop for loop, count in more.items() if loop not in left for _ in range(count))

    moves = [[of(state, move) for move in moves or ()] for state, moves in enumerate(found.moves)]
    return Events(tuple(inside(0).elements()), moves)


def twice(found: Exploration, events: Events) -> set[int]:
    """The events that happen twice on one path: forward analysis with one bit an event, over what may have happened."""
    before = [0] * len(found.markings)
    again, before[0] = _added(0, events.at_start)
    queue = deque(range(len(found.markings)))
    waiting = [True] * len(found.markings)
    while queue:
        state = queue.popleft()
        waiting[state] = False
        for move, happening in zip(found.moves[state] or (), events.of_moves[state], strict=True):
            repeated, mask = _added(before[state], happening)
            again |= repeated
            if mask & ~before[move.target]:
                before[move.target] |= mask
                if not waiting[move.target]:
                    waiting[move.target] = True
                    queue.append(move.target)
    return {number for number in range(again.bit_length()) if again >> number & 1}


def _added(mask: int, events: Iterable[int]) -> tuple[int, int]:
    """What of the events had happened before, and all that has happened after."""
    again = 0
    for event in events:
        again |= mask & (1 << event)
        mask |= 1 << event
    return again, mask


def way_to_second(found: Exploration, events: Events, event: int) -> list[Hop]:
    """A shortest way on which an event happens twice; the last hop is the second time."""
    begin = (0, event in events.at_start)
    first: dict[tuple[int, bool], tuple[tuple[int, bool], Hop]] = {}
    queue: deque[tuple[int, bool]] = deque([begin])
    seen = {begin}
    while queue:
        state, once = queue.popleft()
        for move, happening in zip(found.moves[state] or (), events.of_moves[state], strict=True):
            hop = Hop(state, move.picks, move.target)
            count = happening.count(event)
            if once + count > 1:
                return [*_back(first, (state, once)), hop]
            following = (move.target, once or count > 0)
            if following not in seen:
                seen.add(following)
                first[following] = ((state, once), hop)
                queue.append(following)
    return []  # twice at the very start


def _back(first: dict[tuple[int, bool], tuple[tuple[int, bool], Hop]], place: tuple[int, bool]) -> list[Hop]:
    hops = []
    while place in first:
        place, hop = first[place]
        hops.append(hop)
    return hops[::-1]


def endless(found: Exploration) -> tuple[int, list[Hop]] | None:
    """The nearest state from which no end can be reached, and a lap that begins there; None if there is none.

    A state that was not followed counts as one that may end.
    """
    before: list[list[int]] = [[] for _ in found.markings]
    ends = []
    for state, moves in enumerate(found.moves):
        for move in moves or ():
            before[move.target].append(state)
        if not moves or not found.markings[state].frontier:
            ends.append(state)
    good = set(ends)
    while ends:
        for earlier in before[ends.pop()]:
            if earlier not in good:
                good.add(earlier)
                ends.append(earlier)
    bad = next((state for state in range(len(found.markings)) if state not in good), None)
    return None if bad is None else (bad, _lap(found, bad))


def _lap(found: Exploration, state: int) -> list[Hop]:
    """Moves from a state until one is met again."""
    hops: list[Hop] = []
    met = {state}
    while True:
        moves: Sequence[Move] = found.moves[state] or ()
        hop = Hop(state, moves[0].picks, moves[0].target)
        hops.append(hop)
        if hop.target in met:
            return hops
        met.add(hop.target)
        state = hop.target
