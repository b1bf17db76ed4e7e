"""What an abstract run has found out about a function, and what it is looking for."""

from __future__ import annotations

import types
from collections.abc import Collection
from dataclasses import dataclass, field

from pydantic import BaseModel

from graphagent.validation.inference.values import ANY_KEYS, Keys


@dataclass(frozen=True, slots=True)
class Inferred:
    """What a function does with the state.

    `reads`: fields it looks at; `needs`: those of them that must be set, or it fails; `reads_open`: there may be more.
    `writes`: the fields of what it returns. `overlays`: the overlay of each Send, with the id of its target (None: not
    known). `undeclared`: names it takes from the state that are no fields.
    """

    reads: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    reads_open: bool = True
    writes: Keys = ANY_KEYS
    overlays: tuple[tuple[str | None, Keys], ...] = ()
    undeclared: frozenset[str] = frozenset()


UNSEEN = Inferred()
"""Of a function whose source can't be had."""


@dataclass(slots=True)
class Reads:
    """Collects, over a function and the functions it hands the state to, what is read.

    `state`: the class of the state, `fields` its fields. `careful`: how many handlers stand around that take the error
    of an unset field; `guarded`: fields that are asked for before they are used. `active`: the functions that are being
    followed, innermost last.
    """

    state: type
    fields: Collection[str]
    reads: set[str] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)
    guarded: set[str] = field(default_factory=set)
    undeclared: set[str] = field(default_factory=set)
    open: bool = False
    careful: int = 0
    active: list[types.CodeType] = field(default_factory=list)

    @property
    def custom(self) -> bool:
        """True if the class of the state says itself what an attribute is that it doesn't have."""
        own = [c for c in self.state.__mro__ if c not in (BaseModel, object, dict)]
        return any("__getattr__" in vars(c) or "__getattribute__" in vars(c) for c in own)

    def read(self, name: str, *, need: bool) -> None:
        """The field, or what is taken for one, is read; `need`: it fails if the field is unset."""
        if name not in self.fields:
            self.undeclared.add(name)
            return
        self.reads.add(name)
        if need and not self.careful:
            self.needs.add(name)

    def guard(self, name: str) -> None:
        """The function asks whether the field is set."""
        self.guarded.add(name)
        if name in self.fields:
            self.reads.add(name)
