"""Parts of unions: which arm a value belongs to is told by its class, and later by the stored form if that suffices.

An arm whose stored form no other arm has is stored without a tag, so `T | None` costs nothing. The others are stored
as `{"$": ["arm", name, payload]}`; names, not positions, since arms get reordered (and Python takes `A | B` and
`B | A` for equal).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphagent.checkpoint.containers import TAG
from graphagent.checkpoint.part import Part
from graphagent.checkpoint.part_scalars import refusing_part
from graphagent.checkpoint.refusal import Refused, not_declared, not_stored_as, shown
from graphagent.errors import alternatives

_Choice = tuple[str | None, Part]
"""An arm and the tag it is stored with."""


def union_part(arms: Sequence[Part], label: str = "", *, names: Sequence[str] = (), plain: Part | None = None) -> Part:
    """A value of the first arm that takes it.

    Arms that are stored as themselves (JSON scalars) need no tag and no choice. `names` are the tags, by default the
    labels. `label` is the name in messages, by default those of the arms. `plain` is an arm that never gets a tag.
    """
    label = label or " | ".join(arm.label for arm in arms)
    names = names or [arm.label for arm in arms]
    exact = frozenset[type]().union(*(arm.exact for arm in arms))
    others = [
        (name, arm if names.count(name) == 1 else _nameless(arm, label))
        for name, arm in zip(names, arms, strict=True)
        if arm.classes is None or not arm.classes <= exact
    ]
    plain = next((arm for _, arm in others if arm.classes is None), plain)
    choices: list[_Choice] = [
        (name if arm is not plain and _is_ambiguous(arm, [other for _, other in others], exact) else None, arm)
        for name, arm in others
    ]
    return Part(
        label,
        _encoder(choices, exact, label),
        _decoder(choices, exact, label),
        classes=_classes(arms),
        forms=exact.union(*({dict} if tag else arm.forms for tag, arm in choices)),
        exact=exact,
        open=any(arm.open for arm in arms),
    )


def _nameless(arm: Part, label: str) -> Part:
    reason = f"'{label}' has two types named '{arm.label}', which stored data couldn't tell apart; rename one of them"
    return refusing_part(arm.label, reason, *(arm.classes or ()))


def _is_ambiguous(arm: Part, arms: Sequence[Part], exact: frozenset[type]) -> bool:
    return bool(arm.forms & exact) or any(other is not arm and arm.forms & other.forms for other in arms)


def _classes(arms: Sequence[Part]) -> frozenset[type] | None:
    known = [arm.classes for arm in arms if arm.classes is not None]
    return frozenset[type]().union(*known) if len(known) == len(arms) else None


def _encoder(choices: Sequence[_Choice], exact: frozenset[type], label: str) -> Any:
    untyped = tuple(choice for choice in choices if choice[1].classes is None)
    by_class: dict[type, tuple[_Choice, ...]] = {}
    for choice in choices:
        for cls in choice[1].classes or ():
            by_class[cls] = (*by_class.get(cls, ()), choice)
    by_class = {cls: fitting + untyped for cls, fitting in by_class.items()}

    def encode(value: Any, room: int) -> Any:
        kind = type(value)
        if kind in exact:
            return value
        refusal = None
        for tag, arm in by_class.get(kind, untyped):
            try:
                stored = arm.encode(value, room)
            except Refused as refused:  # another arm of the same class may take it: `list[int] | list[str]`
                refusal = refused
            else:
                return stored if tag is None else {TAG: ["arm", tag, stored]}
        raise refusal or not_declared(value, label)

    return encode


def _decoder(choices: Sequence[_Choice], exact: frozenset[type], label: str) -> Any:
    by_form = {form: arm for tag, arm in choices if tag is None for form in arm.forms}
    by_tag = {tag: arm for tag, arm in choices if tag is not None}

    def decode(plain: Any) -> Any:
        kind = type(plain)
        if kind in exact:
            return plain
        tag = _arm_tag(plain) if kind is dict and TAG in plain else None
        if tag in by_tag:
            return by_tag[tag].decode(plain[TAG][2])
        if kind in by_form:
            return by_form[kind].decode(plain)
        if tag is not None:
            raise Refused(f"stored type '{tag}' is none of the declared '{label}' ({alternatives(tag, by_tag)})")
        return _only_fit(plain, [arm for arm in by_tag.values() if kind in arm.forms], label)

    return decode


def _arm_tag(plain: dict[str, Any]) -> str | None:
    match plain:
        case {"$": ["arm", str(tag), _]}:
            return tag
    return None


def _only_fit(plain: Any, arms: Sequence[Part], label: str) -> Any:
    """The value of data without tag, written when the declared type had fewer arms: only one arm may read it."""
    values = []
    for arm in arms:
        try:
            values.append(arm.decode(plain))
        except Refused:
            continue
    if len(values) == 1:
        return values[0]
    if values:
        raise Refused(f"stored {shown(plain)} fits {len(values)} types of the declared '{label}'; migrate the data")
    raise not_stored_as(plain, label)
