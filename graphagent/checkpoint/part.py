"""One piece of a codec: how values of one type become plain data, and what else the pieces around it must know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Any

Encode = Callable[[Any, int], Any]
"""A value and the levels still allowed (`refusal.MAX_DEPTH` at the top) to plain data. Raises Refused."""

Decode = Callable[[Any], Any]
"""Plain data to the value. Raises Refused."""

NOTHING: frozenset[type] = frozenset()
ATOMS: frozenset[type] = frozenset({NoneType, bool, int, float, str})
"""The classes that JSON tells apart by itself."""
FORMS: frozenset[type] = ATOMS | {list, dict}
"""The classes of plain data."""


@dataclass(slots=True, eq=False)
class Part:
    """A piece of a codec. Filled in place after its construction only where a type contains itself.

    `classes`: exact classes of the values it takes, None for any. `forms`: classes of the plain data it makes.
    `exact`: classes of values that are stored as themselves without a further look; walkers skip the call of
    `encode` and `decode` for them. `open`: `encode` may refuse a value that pydantic's validation accepts.

    Plain data may share objects with the value it was made from, and a decoded value with the plain data.
    """

    label: str
    encode: Encode
    decode: Decode
    classes: frozenset[type] | None
    forms: frozenset[type]
    exact: frozenset[type] = NOTHING
    open: bool = False

    def accepts(self, value: object) -> bool:
        """Whether the exact class of `value` is one of this part's."""
        return self.classes is None or type(value) in self.classes

    def become(self, other: Part) -> None:
        """Take over all of `other`: the end of the construction of a type that contains itself."""
        for name in self.__slots__:
            setattr(self, name, getattr(other, name))
