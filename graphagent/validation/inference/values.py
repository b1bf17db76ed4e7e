"""What the abstract run knows of a value: it is the state, a mapping with these keys, a node's result, an object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

Kind = Literal["state", "perhaps", "keys", "result", "object", "pack", "other"]


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a mapping: `known` may be there, those of `surely` are; `open`: there may be others."""

    known: frozenset[str] = frozenset()
    surely: frozenset[str] = frozenset()
    open: bool = False

    def either(self, other: Keys) -> Keys:
        """What holds if it is the one or the other."""
        return Keys(self.known | other.known, self.surely & other.surely, self.open or other.open)

    def and_also(self, other: Keys) -> Keys:
        """The one updated with the other."""
        return Keys(self.known | other.known, self.surely | other.surely, self.open or other.open)

    def without(self, name: str) -> Keys:
        """With a key taken out that may have been there."""
        return replace(self, surely=self.surely - {name})

    def unsure(self) -> Keys:
        """With none that must still be there."""
        return replace(self, surely=frozenset())

    def opened(self) -> Keys:
        """With keys that can't be known."""
        return replace(self, open=True)


def keys(names: Iterable[str]) -> Keys:
    """A mapping that has just these keys."""
    every = frozenset(names)
    return Keys(every, every)


NO_KEYS = Keys()
ANY_KEYS = Keys(open=True)


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """`state`: the state, or a copy of it; `perhaps`: that, or something else; `keys`: a mapping; `result`: what a node
    returns to update and to jump, with the target (None: not known) and overlay of each Send; `object`: an object that
    is there already (a constant, what a closure or a global holds); `pack`: arguments the first of which is the state.
    """

    kind: Kind = "other"
    keys: Keys = NO_KEYS
    sends: tuple[tuple[str | None, Keys], ...] = ()
    object: Any = None

    @property
    def text(self) -> str | None:
        """The text that it is, if it is one."""
        return self.object if self.kind == "object" and isinstance(self.object, str) else None

    @property
    def mapping(self) -> Keys | None:
        """Its keys if it is a mapping, or nothing at all (which updates nothing); None for what is no mapping."""
        if self.kind == "keys":
            return self.keys
        if self.kind == "object" and self.object is None:
            return NO_KEYS
        if self.kind == "object" and isinstance(self.object, dict):
            named = [key for key in self.object if isinstance(key, str)]
            return keys(named) if len(named) == len(self.object) else keys(named).opened()
        return None

    @property
    def holds_state(self) -> bool:
        """True if it is the state or may be."""
        return self.kind in ("state", "perhaps", "pack")

    def same(self, other: Value) -> bool:
        """True if nothing more is known of one than of the other."""
        alike = self.object is other.object or (self.text is not None and self.text == other.text)
        return alike and (self.kind, self.keys, self.sends) == (other.kind, other.keys, other.sends)


STATE = Value("state")
PERHAPS = Value("perhaps")
PACK = Value("pack")
OTHER = Value()
NOTHING = Value("object")


def mapping(of: Keys) -> Value:
    """A mapping with these keys."""
    return Value("keys", of)


def known(thing: Any) -> Value:
    """An object that is there already."""
    return Value("object", object=thing)


def either(one: Value, other: Value) -> Value:
    """What is known of a value that is the one or the other."""
    if one.same(other):
        return one
    if one.holds_state or other.holds_state:
        return PERHAPS
    a, b = one.mapping, other.mapping
    if a is not None and b is not None:
        return mapping(a.either(b))
    if "result" in (one.kind, other.kind):
        a, b = as_result(one), as_result(other)
        return Value("result", a.either(b), (*one.sends, *(item for item in other.sends if item not in one.sends)))
    found = a if b is None else b
    return mapping(found.either(ANY_KEYS)) if found is not None and found.known else OTHER


def as_result(value: Value) -> Keys:
    """The fields that a node updates by returning this."""
    if value.kind == "result":
        return value.keys
    found = value.mapping
    return ANY_KEYS if found is None else found
