"""Merge rules of state fields: how what nodes return becomes the new value, and what of it a checkpoint stores.

A rule is an annotation: `Annotated[list[str], append]`. All rules copy on write: the old value is never changed.
"""

from __future__ import annotations

import collections.abc
import typing
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

from typing_extensions import TypedDict, is_typeddict

from graphagent.graph.signature import takes_arguments
from graphagent.messages import Message, RemoveMessage, ReplaceLastUser
from graphagent.unset import UNSET

T = TypeVar("T")
_ID = attrgetter("id")
Form = Literal["value", "patch", "list"]
Writers = Literal["one", "agree", "many"]


class Reducer(Generic[T]):
    """A merge rule.

    `form` is the delta form of a checkpoint: `value` stores the new value, `patch` the changed entries of a
    mapping, `list` the new items. `writers` says what several writers in one step mean: `many` merge one after the
    other in graph order, `one` is a conflict, `agree` is a conflict unless all values are equal.
    """

    name: str = ""
    form: Form = "value"
    writers: Writers = "many"

    def update_type(self, declared: Any) -> Any:
        """The type that an update is validated as, given the field's declared type."""
        return declared

    def problem(self, declared: Any) -> str | None:
        """Why this rule can't work on a field of that type, or None."""
        return None

    def apply(self, old: Any, update: Any) -> Any:
        """The new value; `old` is UNSET for the first write. Must be pure."""
        raise NotImplementedError

    def between(self, start: Any, end: Any) -> Any:
        """The update that leads from `start` to `end`: how a child graph's work reaches its parent's field.

        Raises TypeError where the rule can't say.
        """
        return end

    def __repr__(self) -> str:
        return self.name


class _Last(Reducer[Any]):
    name = "last"
    writers: Writers = "one"

    def apply(self, old: Any, update: Any) -> Any:
        return update


class _AnyOf(_Last):
    name = "any_of"
    writers = "agree"


class _Latest(_Last):
    name = "latest"
    writers: Writers = "many"


class _Add(Reducer[Any]):
    name = "add"

    def problem(self, declared: Any) -> str | None:
        origin = get_origin(declared) or declared
        if isinstance(origin, type) and origin is not object and not hasattr(origin, "__add__"):
            return "'add' needs a type with '+'"
        return None

    def apply(self, old: Any, update: Any) -> Any:
        return update if old is UNSET else old + update

    def between(self, start: Any, end: Any) -> Any:
        return end if start is UNSET else end - start


class _Merge(Reducer[Any]):
    name = "merge"
    form = "patch"

    def problem(self, declared: Any) -> str | None:
        origin = get_origin(declared) or declared
        if is_typeddict(origin) or (isinstance(origin, type) and issubclass(origin, collections.abc.Mapping)):
            return None
        return "'merge' needs a mapping"

    def update_type(self, declared: Any) -> Any:
        if not is_typeddict(declared):
            return declared
        hints = typing.get_type_hints(declared, include_extras=True)  # a patch may lack keys that the whole needs
        return TypedDict(declared.__name__, hints, total=False)  # type: ignore[operator]

    def apply(self, old: Any, update: Any) -> Any:
        return dict(update) if old is UNSET else {**old, **update}

    def between(self, start: Any, end: Any) -> Any:
        if start is UNSET:
            return end
        return {key: value for key, value in end.items() if key not in start or not same(start[key], value)}


def same(a: Any, b: Any) -> bool:
    """True for one object, and for equal ones of one type (0 is not False); what can't be compared differs."""
    try:
        return a is b or (type(a) is type(b) and bool(a == b))
    except Exception:
        return False


CONTAINERS: tuple[type, ...] = (list, tuple, set, frozenset)


def container_of(declared: Any) -> type:
    """The concrete container class of a list-like type; list for abstract ones such as Sequence."""
    origin = get_origin(declared) or declared
    return origin if origin in CONTAINERS else list


class _Append(Reducer[Any]):
    name = "append"
    form = "list"

    def problem(self, declared: Any) -> str | None:
        origin = get_origin(declared) or declared
        sequence = isinstance(origin, type) and issubclass(origin, collections.abc.Iterable)
        if sequence and not issubclass(origin, str | bytes | collections.abc.Mapping | collections.abc.Set):
            return None
        return f"'{self.name}' needs a list or a tuple"

    def apply(self, old: Any, update: Any) -> Any:
        return update if old is UNSET else old + update

    def between(self, start: Any, end: Any) -> Any:
        if start is UNSET:
            return end
        if end[: len(start)] != start:
            raise TypeError("items that were there before have changed")
        return end[len(start) :]


class _Union(_Append):
    name = "union"

    def problem(self, declared: Any) -> str | None:
        origin = get_origin(declared) or declared
        if isinstance(origin, type) and issubclass(origin, collections.abc.Set):
            return None
        return super().problem(declared)

    def apply(self, old: Any, update: Any) -> Any:
        if isinstance(update, set | frozenset):
            return update if old is UNSET else old | update
        known = [] if old is UNSET else list(old)
        start = len(known)
        for item in update:
            if item not in known:
                known.append(item)
        if old is not UNSET and len(known) == start:
            return old
        return type(update)(known)

    def between(self, start: Any, end: Any) -> Any:
        if start is UNSET:
            return end
        if isinstance(end, set | frozenset):
            return end - start
        return type(end)(item for item in end if item not in start)


class _Messages(_Append):
    name = "messages"

    def update_type(self, declared: Any) -> Any:
        return list[Message | RemoveMessage | ReplaceLastUser]

    def problem(self, declared: Any) -> str | None:
        if get_origin(declared) is list and get_args(declared)[0] is Message:
            return None
        return "'messages' needs list[Message]"

    def apply(self, old: Any, update: Any) -> Any:
        known: list[Message] = [] if old is UNSET else list(old)
        for item in update:
            if isinstance(item, Message):
                place = _place(known, item.id) if item.id is not None and item.id in map(_ID, known) else None
                if place is None:
                    known.append(item)
                else:
                    known[place] = item
            elif isinstance(item, RemoveMessage):
                known = [] if item.remove == "*" else [m for m in known if m.id != item.remove]
            else:
                _replace_last_user(known, item.last_user)
        return known

    def between(self, start: Any, end: Any) -> Any:
        if start is UNSET:
            return end
        if end[: len(start)] == start:
            return end[len(start) :]
        kept = {m.id for m in end if m.id is not None}
        if any(m.id is None and m not in end for m in start):
            return [RemoveMessage.all(), *end]
        gone = [RemoveMessage(remove=m.id) for m in start if m.id is not None and m.id not in kept]
        return [*gone, *(m for m in end if m not in start)]


def _place(known: list[Message], wanted: str) -> int | None:
    return next((i for i in range(len(known) - 1, -1, -1) if known[i].id == wanted), None)


def _replace_last_user(known: list[Message], text: str) -> None:
    for i in range(len(known) - 1, -1, -1):
        if known[i].role == "user":
            content = known[i].content
            parts = text if isinstance(content, str) else _with_text(content, text)
            known[i] = known[i].model_copy(update={"content": parts})
            return
    known.append(Message.user(text))


def _with_text(parts: Iterable[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}, *(part for part in parts if part.get("type") != "text")]


class _Custom(Reducer[Any]):
    def __init__(self, fn: Callable[[Any, Any], Any], update: Any) -> None:
        self.fn = fn
        self.update = update
        self.name = getattr(fn, "__name__", "custom")

    def update_type(self, declared: Any) -> Any:
        return declared if self.update is UNSET else self.update

    def problem(self, declared: Any) -> str | None:
        if takes_arguments(self.fn, 2):
            return None
        return f"its merge rule '{self.name}' can't be called with the old value and the update"

    def apply(self, old: Any, update: Any) -> Any:
        return self.fn(None if old is UNSET else old, update)

    def between(self, start: Any, end: Any) -> Any:
        raise TypeError("a custom reducer doesn't say how to get from one value to another")


append: Reducer[Any] = _Append()
merge: Reducer[Any] = _Merge()
add: Reducer[Any] = _Add()
union: Reducer[Any] = _Union()
messages: Reducer[Any] = _Messages()
last: Reducer[Any] = _Last()
latest: Reducer[Any] = _Latest()
any_of: Reducer[Any] = _AnyOf()
BUILTIN: dict[str, Reducer[Any]] = {r.name: r for r in (append, merge, add, union, messages, last, latest, any_of)}


def reducer(fn: Callable[[Any, Any], Any], update: Any = UNSET) -> Reducer[Any]:
    """A rule made of a pure function `fn(old, update) -> new`; `old` is None before the first write.

    `update` is the type an update is validated as, by default the field's own type. The checkpoint stores the
    result.
    """
    return _Custom(fn, update)
