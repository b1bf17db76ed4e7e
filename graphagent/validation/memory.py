"""Choices that are tied to each other: routes that decide alike (`same_as`) and outcomes that never meet (`assume`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Activation
from graphagent.validation.outcomes import Choices, Outcome

Kept = tuple[str | None, ...]
"""Per node of an assumption the label it chose last, then per follower what is between it and its leader: `=label` if
the leader has chosen and the follower not yet, `?label` if the follower went first, None if they are even."""


class Memory:
    """What of the choices made so far must be kept to know which are possible now."""

    def __init__(self, graph: CompiledGraph) -> None:
        index = graph.index
        named = {name for choice in graph.definition.assumptions for name in choice if name in index}
        self.places = {index[name]: i for i, name in enumerate(sorted(named))}
        self.never = [
            {self.places[index[name]]: str(label) for name, label in choice.items() if name in index}
            for choice in graph.definition.assumptions
        ]
        self.leader = {
            index[route.source]: index[route.same_as]
            for route in graph.routes
            if route.same_as is not None and route.same_as in index
        }
        self.slots = {node: len(named) + i for i, node in enumerate(sorted(self.leader))}
        self.empty: Kept = (None,) * (len(named) + len(self.slots))

    @property
    def used(self) -> bool:
        """True if any choice depends on an earlier one."""
        return bool(self.empty)

    def allowed(self, node: int, kept: Kept, choices: Choices) -> Iterable[tuple[int, Outcome]]:
        """The alternatives of a node that agree with what was chosen before, with their numbers."""
        every = list(enumerate(choices.of[node]))
        if not self.empty:
            return every
        bound = self._bound(node, kept)
        if bound is not None:
            every = [(i, outcome) for i, outcome in every if ",".join(outcome.labels) == bound] or every
        return [(i, outcome) for i, outcome in every if self._possible(self.after(kept, node, outcome))]

    def _bound(self, node: int, kept: Kept) -> str | None:
        """The label that a node has to choose; None if it is free."""
        own = kept[self.slots[node]] if node in self.slots else None
        if own is not None:
            return own[1:]
        leader = self.leader.get(node, node)
        owed = (kept[slot] for follower, slot in self.slots.items() if self.leader[follower] == leader)
        return next((said[1:] for said in owed if said is not None and said[0] == "?"), None)

    def after(self, kept: Kept, node: int, outcome: Outcome) -> Kept:
        """What is kept once the node has chosen."""
        if not self.empty:
            return kept
        now, label = list(kept), ",".join(outcome.labels)
        if node in self.places:
            now[self.places[node]] = label
        for follower, slot in self.slots.items():
            said = now[slot]
            if node == self.leader[follower]:
                now[slot] = None if said is not None and said[0] == "?" else f"={label}"
            elif node == follower:
                now[slot] = None if said is not None and said[0] == "=" else f"?{label}"
        return tuple(now)

    def together(self, frontier: Sequence[Activation], chosen: Sequence[tuple[int, Outcome]], kept: Kept) -> bool:
        """True if these choices of one superstep can be made together: a leader and its followers decide alike."""
        if not self.empty:
            return True
        labels = {a.node: outcome.labels for a, (_, outcome) in zip(frontier, chosen, strict=True)}
        for activation, (_, outcome) in zip(frontier, chosen, strict=True):
            kept = self.after(kept, activation.node, outcome)
        alike = all(
            labels[leader] == labels[node]
            for node, leader in self.leader.items()
            if node in labels and leader in labels
        )
        return alike and self._possible(kept)

    def _possible(self, kept: Kept) -> bool:
        return not any(choice and all(kept[p] == label for p, label in choice.items()) for choice in self.never)
