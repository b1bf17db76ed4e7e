"""The transition function: what runs next, and nothing else decides it.

`start`, `enabled` and `fire` are pure. The superstep engine fires all completions of a step in one call, the eager
engine one by one; the validator, the debugger and the replayer call the same functions. Triggers made by one call to
one node merge; across calls they queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.joins import arrive, can_still_come, close_lap, starved
from graphagent.graph.marking import (
    ALL_EDGES,
    Activation,
    Arrival,
    Branch,
    Completion,
    Group,
    JoinState,
    Marking,
    Starved,
    common,
)
from graphagent.graph.names import END_INDEX

Slot = tuple[int, int]
"""A join, and which of its sources."""
_by_node = itemgetter(0)
_position = itemgetter(0)


def start(graph: CompiledGraph) -> Marking:
    """The marking a run begins with: one activation per entry point, in graph order."""
    return graph.initial


def enabled(marking: Marking) -> tuple[Activation, ...]:
    """What may run now: the whole frontier."""
    return marking.frontier


def fire(graph: CompiledGraph, marking: Marking, completions: Sequence[Completion]) -> Marking:
    """The marking after these activations of the frontier have ended, in whatever order they did.

    `completions` may be any subset of the frontier, each position once. The frontier of the result has the
    activations that go on (the same objects) and the new ones, in graph order.
    """
    frontier = marking.frontier
    if len(completions) == 1 == len(frontier):
        single = _fire_lone(graph, marking, frontier[0], completions[0])
        if single is not None:
            return single
    firing = _Firing(graph, marking)
    for completion in sorted(completions, key=_position):
        firing.complete(frontier[completion.position], completion)
    done = {completion.position for completion in completions}
    return firing.result([a for i, a in enumerate(frontier) if i not in done])


def settle(graph: CompiledGraph, marking: Marking) -> Marking:
    """The marking after joins have been judged anew: for one that an earlier version of the graph stored.

    A join that is complete by the rules of this graph fires, and an `active` one that nothing more can reach. What
    was in the frontier keeps its place there; what fires comes behind it.
    """
    firing = _Firing(graph, marking)
    for j, state in enumerate(marking.joins):
        if state is not None and not state.fired:
            firing.joins[j] = None
            firing.arrived[j] = [(slot, arrival) for slot, queue in state.arrived for arrival in queue]
    after = firing.result(list(marking.frontier))
    if after.key() == marking.key():
        return marking
    kept = {id(activation) for activation in marking.frontier}
    return after._replace(frontier=(*marking.frontier, *(a for a in after.frontier if id(a) not in kept)))


def finished(marking: Marking) -> bool:
    """True if nothing is left to run."""
    return not marking.frontier


def starving(graph: CompiledGraph, marking: Marking) -> tuple[Starved, ...]:
    """The joins that wait or hold leftovers; when nothing is left to run they are starved."""
    return tuple(
        starved(table, state, graph.names, graph.name_of(table.target))
        for table, state in zip(graph.join_tables, marking.joins, strict=True)
        if state is not None and not (state.fired and all(len(queue) == 1 for _, queue in state.arrived))
    )


def _fire_lone(graph: CompiledGraph, marking: Marking, activation: Activation, done: Completion) -> Marking | None:
    """The common case made cheap: one activation leads to one node, no join, no group, no branch."""
    node = activation.node
    if done.sends is not None or done.error is not None or activation.branch or marking.groups:
        return None
    if graph.arrivals[node] or not graph.local:
        return None
    targets = done.goto if done.goto is not None else graph.plain[node] + done.chosen
    if len(targets) != 1 or (node, targets[0]) in graph.via_join:
        return None
    target = targets[0]
    if target == END_INDEX:
        return Marking((), marking.joins, (), True)
    if not marking.ended and marking.joins is graph.no_joins:
        return graph.singles[target]
    return Marking(graph.singles[target].frontier, marking.joins, (), marking.ended)


class _OpenGroup:
    """A Send group while one call of `fire` counts its members down."""

    __slots__ = ("branch", "exits", "open", "origins")

    def __init__(self, group: Group) -> None:
        self.open = group.open
        self.exits = dict.fromkeys(group.exits)
        self.branch = group.branch
        self.origins = list(group.origins)


class _Firing:
    """Collects what one call of `fire` triggers."""

    def __init__(self, graph: CompiledGraph, marking: Marking) -> None:
        self.graph = graph
        self.joins = list(marking.joins)
        self.groups = {group.id: _OpenGroup(group) for group in marking.groups}
        self.next_group = max(self.groups, default=0) + 1
        self.ended = marking.ended
        self.triggers: dict[int, list[Arrival]] = {}
        self.arrived: dict[int, list[tuple[int, Arrival]]] = {}
        self.new: list[Activation] = []

    def complete(self, activation: Activation, done: Completion) -> None:
        """Note what one ended activation triggers."""
        if activation.group:
            self._complete_member(activation, done)
        elif done.sends is not None:
            self._send(activation, done)
        elif done.goto is not None:
            self._leave(activation.node, activation.branch, done.goto, (), _origins(done), done.error)
        else:
            node = activation.node
            targets, arrivals = self.graph.plain[node] + done.chosen, self.graph.arrivals[node]
            if not targets and len(arrivals) == 1:  # a branch that only leads into its join
                (join, slot) = arrivals[0]
                path = _popped(activation.branch, self.graph.join_tables[join].target)
                self.arrived.setdefault(join, []).append((slot, Arrival(path, _origins(done))))
            else:
                self._leave(node, activation.branch, targets, arrivals, _origins(done))

    def _leave(
        self,
        node: int,
        branch: Branch,
        targets: Iterable[int],
        arrivals: tuple[Slot, ...],
        origins: tuple[str, ...],
        error: str | None = None,
    ) -> None:
        plain, joined = self._split(node, targets, arrivals)
        self._go(node, plain, joined, Arrival(branch, origins, error), many=len(plain) + len(joined) > 1)

    def _go(self, node: int, plain: list[int], joined: list[Slot], leaving: Arrival, *, many: bool) -> None:
        """Trigger nodes and arrive at join slots; `many`: more than one thing is fired at once, which splits."""
        for target in plain:
            self.triggers.setdefault(target, []).append(self._towards(node, target, leaving, many))
        for join, slot in joined:
            target = self.graph.join_tables[join].target
            self.arrived.setdefault(join, []).append((slot, self._towards(node, target, leaving, many)))

    def _towards(self, node: int, target: int, leaving: Arrival, many: bool) -> Arrival:
        path = _popped(leaving.branch, target)
        return leaving._replace(branch=(*path, (self.graph.name_of(target), node)) if many else path)

    def _split(self, node: int, targets: Iterable[int], arrivals: tuple[Slot, ...]) -> tuple[list[int], list[Slot]]:
        """Distinct nodes to trigger and distinct join slots to arrive at; END is noted."""
        plain: dict[int, None] = {}
        joined = dict.fromkeys(arrivals)
        for target in targets:
            through = self.graph.via_join.get((node, target)) if self.graph.via_join else None
            if through and target not in self.graph.plain[node]:
                joined.update(dict.fromkeys(through))
            elif target == END_INDEX:
                self.ended = True
            else:
                plain[target] = None
        return list(plain), list(joined)

    def _send(self, activation: Activation, done: Completion) -> None:
        sends = done.sends or ()
        if not sends:
            return
        group = self.next_group
        self.next_group += 1
        self.groups[group] = _OpenGroup(Group(group, len(sends), (), activation.branch))
        trigger = _origins(done) or None
        for index, (target, overlay) in enumerate(sends):
            path = _popped(activation.branch, target)
            path = (*path, (f"{self.graph.names[target]}[{index}]", activation.node))
            self.new.append(Activation(target, path, overlay, group, index, trigger))

    def _complete_member(self, activation: Activation, done: Completion) -> None:
        """A member of a Send group: its own jumps fire now, its plain edges and arrivals when the group has ended."""
        node = activation.node
        group = self.groups[activation.group]
        if done.sends is not None:
            self._send(activation, done)
        elif done.goto is None:
            group.exits[node, ALL_EDGES] = None
        chosen = done.chosen if done.goto is None else done.goto
        if chosen:
            through = self.graph.via_join
            group.exits.update({(node, target): None for target in chosen if (node, target) in through})
            now = [target for target in chosen if (node, target) not in through]
            self._leave(node, activation.branch, now, (), _origins(done), done.error)
        group.open -= 1
        group.origins += _origins(done)
        if not group.open:
            del self.groups[activation.group]
            self._release(group)

    def _release(self, group: _OpenGroup) -> None:
        """What was due behind a group that has ended; with several targets it splits, whichever members lead there."""
        ways: dict[int, tuple[list[int], list[Slot]]] = {}
        for node in dict.fromkeys(node for node, _ in group.exits):
            whole = (node, ALL_EDGES) in group.exits
            targets = [target for source, target in group.exits if source == node and target != ALL_EDGES]
            arrivals = self.graph.arrivals[node] if whole else ()
            edges = self.graph.plain[node] if whole else ()
            ways[node] = self._split(node, [*edges, *targets], arrivals)
        ends = {end for plain, joined in ways.values() for end in (*plain, *joined)}
        for node, (plain, joined) in ways.items():
            self._go(node, plain, joined, Arrival(group.branch, tuple(group.origins)), many=len(ends) > 1)

    def result(self, going_on: list[Activation]) -> Marking:
        """The new marking."""
        graph = self.graph
        for join in sorted(self.arrived):
            state, firings = arrive(graph.join_tables[join], self.joins[join], self.arrived[join])
            self.joins[join] = state
            for firing in firings:
                self._fire_join(join, firing)
        if not graph.local:
            leaving = {node for group in self.groups.values() for node, _ in group.exits}
            self._judge({activation.node for activation in (*going_on, *self.new)} | self.triggers.keys() | leaving)
        for target, arrivals in self.triggers.items():
            origins = tuple(origin for arrival in arrivals for origin in arrival.origins)
            error = next((arrival.error for arrival in arrivals if arrival.error is not None), None)
            branch = common([arrival.branch for arrival in arrivals])
            self.new.append(Activation(target, branch, trigger=origins or None, error=error))
        frontier = [*going_on, *self.new]
        frontier.sort(key=_by_node)
        joins = tuple(self.joins)
        groups = tuple(
            Group(key, group.open, tuple(group.exits), group.branch, tuple(group.origins))
            for key, group in sorted(self.groups.items())
        )
        if not any(joins):
            joins = graph.no_joins
        marking = Marking(tuple(frontier), joins, groups, self.ended)
        if len(frontier) == 1 and not going_on and marking == graph.singles[frontier[0].node]:
            return graph.singles[frontier[0].node]  # the engine knows a lone activation by this very object
        return marking

    def _fire_join(self, join: int, arrivals: list[Arrival]) -> None:
        """What arrived triggers the target; like all triggers of one call to one node, firings merge."""
        target = self.graph.join_tables[join].target
        if target == END_INDEX:
            self.ended = True
        else:
            self.triggers.setdefault(target, []).extend(arrivals)

    def _judge(self, nodes: set[int]) -> None:
        """Fire active joins, and end fired laps, where no missing source can come any more; judged at one instant."""
        tables = self.graph.join_tables
        waiting = [j for j, state in enumerate(self.joins) if state is not None and tables[j].mode == "active"]
        judged: list[tuple[int, JoinState]] = []
        for j, state in enumerate(self.joins):
            if state is None or tables[j].mode == "all" or (tables[j].need and not state.fired):
                continue
            live = nodes | {tables[other].target for other in waiting if tables[other].target != tables[j].target}
            if state.fired:
                live = live - {tables[j].target}  # what comes through the target is of the next lap
            if not can_still_come(tables[j], state, live):
                judged.append((j, state))
        for j, state in judged:
            self.joins[j], firings = close_lap(tables[j], state)
            for firing in firings:
                self._fire_join(j, firing)


def _origins(done: Completion) -> tuple[str, ...]:
    return () if done.origin is None else (done.origin,)


def _popped(branch: Branch, target: int) -> Branch:
    """Coming back to the node that split pops its segment, so that loops don't grow a path."""
    for i, (_, splitter) in enumerate(branch):
        if splitter == target:
            return branch[:i]
    return branch
