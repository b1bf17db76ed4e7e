"""The value that means 'nothing was given', where None is a value like any other."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Unset(Enum):
    """Type of `UNSET`."""

    UNSET = "UNSET"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
