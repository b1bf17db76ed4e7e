"""A conversation in portions, each small enough for one call: whole tool rounds, or pieces of one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from graphagent.models.tokens import TokenCounter
from runner.summary.budget import head, shortened
from runner.summary.prefix import Coverable
from runner.summary.text import Item, conversation

MOST_CHARACTERS = 16
"""Characters of a token, at most, where a text is cut to tokens; keeps the search short in a very long one."""


class Portion(NamedTuple):
    """What one call sums up. `end`: how many events the summary then stands for, if `whole`; else more of them is to
    come (`rest`) before it does. `shortened`: a part in the middle is left out."""

    text: str
    end: int
    rest: str = ""
    shortened: bool = False

    @property
    def whole(self) -> bool:
        """True if nothing of its events is still to come."""
        return not self.rest


class Portions:
    """Hands out one portion after the other. `done`: how many events those that were taken stand for."""

    def __init__(self, todo: Coverable, items: Sequence[Item], counter: TokenCounter) -> None:
        self._events, self._ends = todo.events, todo.ends
        self._items = items
        self._counter = counter
        self._first = [0] * (len(todo.events) + 1)  # the first item of each event
        sizes = [0] * len(todo.events)
        for item in items:
            self._first[item.at + 1] += 1
            sizes[item.at] += counter.text(item.text) + 1  # the one stands for the break, and for what was cut off
        self._first = list(accumulate(self._first))
        self._sizes = list(accumulate(sizes, initial=0))
        self._rest: Portion | None = None
        self.done = 0

    @property
    def over(self) -> bool:
        """True if there is nothing left to hand out."""
        return self.done == len(self._events)

    def next(self, room: int, calls: int) -> Portion | None:
        """As much as fits into `room` tokens, ending where no tool round is open; the same again until it is taken.

        What is too long alone comes in pieces, as many as there are `calls` left. If those don't do, it is left for
        the next summary (None), or shortened in its middle where it is the first already.
        """
        if self._rest is not None:
            return self._on(self._rest, room, calls)
        end = self._largest(room)
        if end is not None:
            return Portion(self._text(end), end)
        end = next(end for end in self._ends if self._first[end] > self._first[self.done])
        text = self._text(end)
        if self._counter.text(text) > room * calls * 0.8:  # pieces end at words and lines, so none is quite full
            if self.done:
                return None
            most = int(room * calls * 0.8)
            text = shortened(text, lambda text: self._counter.text(text) <= most, most * MOST_CHARACTERS)
            return self._piece(Portion(text, end, text, True), room)
        return self._piece(Portion(text, end, text), room)

    def take(self, portion: Portion) -> None:
        """Go on behind a portion that was summed up."""
        self._rest = None if portion.whole else portion
        if portion.whole:
            silent = self._first[portion.end] == len(self._items)  # what follows has nothing to be summed up
            self.done = len(self._events) if silent else portion.end

    def between(self, end: int) -> slice:
        """The events that a portion with this end is of."""
        return slice(self.done, end)

    def _on(self, of: Portion, room: int, calls: int) -> Portion | None:
        """The next piece. The last call takes all that is left: half a message is of no use to anybody."""
        if calls > 1 or self._counter.text(of.rest) <= room:
            return self._piece(of, room)
        if self.done:
            return None
        text = shortened(of.rest, lambda text: self._counter.text(text) <= room, room * MOST_CHARACTERS)
        return of._replace(text=text, rest="", shortened=True)

    def _piece(self, of: Portion, room: int) -> Portion:
        text = of.rest
        piece = head(text, lambda text: self._counter.text(text) <= room, room * MOST_CHARACTERS) or text[:1]
        return of._replace(text=piece, rest=text[len(piece) :])

    def _text(self, end: int) -> str:
        return conversation(self._items[self._first[self.done] : self._first[end]])

    def _largest(self, room: int) -> int | None:
        """The largest end that fits. One behind somebody's words is taken only if it brings much more: it parts a
        question from its answer."""
        last = len(self._events)
        left = self._sizes[last] - self._sizes[self.done]
        if left - 2 * (len(self._items) - self._first[self.done]) <= room and self._fits(last, room):
            return last
        start = bisect_right(self._ends, self.done)
        stop = start
        while stop < len(self._ends) and self._sizes[self._ends[stop]] - self._sizes[self.done] <= room:
            stop += 1
        fitting = [end for end in self._ends[start:stop] if self._first[end] > self._first[self.done]]
        if not fitting:
            return None
        clean = [end for end in fitting if not self._events[end - 1].is_user]
        half = (self._sizes[fitting[-1]] + self._sizes[self.done]) / 2
        return clean[-1] if clean and self._sizes[clean[-1]] >= half else fitting[-1]

    def _fits(self, end: int, room: int) -> bool:
        return self._counter.text(self._text(end)) <= room
