"""Codecs of declared types: the annotation of a field is read once, values then go through prebuilt functions.

Every class comes from the annotation, none from stored data. A value must be of exactly the declared class: an
instance of a subclass would come back cut down to its base, so it is refused when it is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphagent.checkpoint.part import Part
from graphagent.checkpoint.part_scalars import Cipher
from graphagent.checkpoint.plan_builder import build_part
from graphagent.checkpoint.refusal import MAX_DEPTH, Refused

__all__ = ["Cipher", "Plan", "plan_for"]


@dataclass(frozen=True, slots=True)
class Plan:
    """The codec of one declared type.

    `open`: `encode` may refuse a value that pydantic's validation accepts, because somewhere inside it is a type that
    can't be stored, Any, or a class of which pydantic lets any instance pass.
    """

    open: bool
    _part: Part

    def encode(self, value: Any, path: str) -> Any:
        """Plain data of `value`, which stands at `path` of the state (such as `state.items`).

        The plain data may share objects with the value: write it before the value can change. Raises EncodeError with
        the path of the culprit inside the value.
        """
        try:
            return self._part.encode(value, MAX_DEPTH)
        except Refused as refused:
            raise refused.encode_error(path) from refused.__cause__

    def decode(self, plain: Any, path: str = "") -> Any:
        """The value that was encoded. Raises DecodeError if the plain data doesn't fit the type.

        Data of an older declaration is read where nothing has to be guessed: fields with a default may be new, union
        arms may be new, names of enum members may have become aliases.
        """
        try:
            return self._part.decode(plain)
        except Refused as refused:
            raise refused.decode_error(path) from refused.__cause__

    def accepts(self, value: object) -> bool:
        """Whether the exact class of `value` is one that the type declares; its contents are not looked at."""
        return self._part.accepts(value)


def plan_for(annotation: Any, *, cipher: Cipher | None = None, partial: bool = False) -> Plan:
    """The plan of an annotation; the same plan for an equal annotation.

    `cipher` stores secrets. `partial` is for a piece of a TypedDict (a patch): none of its own keys is required.
    Never fails: what can't be stored is refused when a value of it is encoded, since a field may never get one.
    """
    try:
        hash((annotation, cipher))
    except TypeError:  # metadata of `Annotated`, or a cipher that compares by value
        return _plan(annotation, cipher, partial)
    plan: Plan = _cached_plan(annotation, cipher, partial)
    return plan


def _plan(annotation: Any, cipher: Cipher | None, partial: bool) -> Plan:
    part = build_part(annotation, cipher, partial=partial)
    return Plan(part.open, part)


_cached_plan: Any = lru_cache(maxsize=1024)(_plan)
