from __future__ import annotations

import ipaddress
import re
import typing
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal
from uuid import UUID

import pydantic
import pytest
from codec_values import label, traits
from declared_types import (
    DAY,
    Access,
    Animal,
    Cat,
    Checked,
    Colour,
    Computed,
    Counting,
    DayPoint,
    Dog,
    Empty,
    Failure,
    Generics,
    Ids,
    Late,
    Later,
    Level,
    Login,
    Loose,
    Movie,
    Node,
    Place,
    Point,
    Slotted,
    Tree,
    Two,
    UserId,
    Wide,
    half,
    local_class,
    pseudo_member,
    stray,
)
from pydantic import Field, JsonValue, SecretBytes, SecretStr

from graphagent.checkpoint.codec import dumps, loads
from graphagent.checkpoint.plans import Plan, plan_for
from graphagent.errors import DecodeError, EncodeError

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def _stored(annotation: Any, value: Any, **options: Any) -> Any:
    """The value of a field declared as `annotation` after a save and a load."""
    plan = plan_for(annotation, **options)
    return plan.decode(loads(dumps(plan.encode(value, "state.x"))), "state.x")


@pytest.mark.parametrize(
    ("annotation", "value", "plain"),
    [
        (int, True, True),
        (float, 3, 3),
        (None, None, None),
        (UserId, 7, 7),
        (Annotated[str, Field(min_length=1)], "a", "a"),
        (pydantic.PositiveInt, 3, 3),
        (pydantic.PastDate | None, DAY, "2026-11-30"),
        (datetime, NOW, ["2026-11-30T12:00:00", 0, 0]),
        (timedelta, timedelta(seconds=1), 1_000_000),
        (Decimal | None, Decimal("1.50"), "1.50"),
        (Path, Path("a/b"), "a/b"),
        (pydantic.ByteSize, pydantic.ByteSize(10), 10),
        (PurePosixPath, PurePosixPath("/x"), "/x"),
        (pydantic.IPvAnyAddress, ipaddress.ip_address("::1"), {"$": ["arm", "IPv6Address", "::1"]}),
        (pydantic.HttpUrl, pydantic.HttpUrl("http://a.b"), "http://a.b/"),
        (Literal["a", 1, None], 1, 1),
        (Literal["auto"] | str, "auto", "auto"),
        (Literal[Colour.RED, "x"], Colour.RED, {"$": ["arm", "Colour", "RED"]}),
        (Colour, Colour.CRIMSON, "RED"),
        (Level, Level.LOW, "LOW"),
        (int | Level, Level.LOW, "LOW"),
        (Access, Access.ALL, ["READ", "WRITE"]),
        (Access, Access(9), ["READ", 8]),
        (list, [(1,)], [{"$": ["tuple", [1]]}]),
        (list[str], ["a"], ["a"]),
        (tuple[int, ...], (1, 2), [1, 2]),
        (tuple[int, date], (1, DAY), [1, "2026-11-30"]),
        (tuple[()], (), []),
        (typing.Tuple, (DAY,), [{"$": ["date", "2026-11-30"]}]),  # noqa: UP006
        (set[int], {16, 8, 0}, [0, 16, 8]),
        (frozenset[str] | None, frozenset("ba"), ["a", "b"]),
        (deque[date], deque([DAY], 3), [3, ["2026-11-30"]]),
        (dict[str, date], {"$": DAY}, {"$": ["dict", [["$", "2026-11-30"]]]}),
        (dict[date, int], {DAY: 1}, {"2026-11-30": 1}),
        (dict[int | str, int], {1: 1, "1": 2}, {"$": ["dict", [[1, 1], ["1", 2]]]}),
        (Mapping[str, int], {"a": 1}, {"a": 1}),
        (OrderedDict[str, int], OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (Counter[str], Counter("aab"), {"a": 2, "b": 1}),
        (defaultdict[str, list[date]], defaultdict(list, a=[DAY]), {"a": ["2026-11-30"]}),
        (Sequence[int], [1], [1]),
        (Sequence[int] | None, (1,), {"$": ["arm", "tuple[int, ...]", [1]]}),
        (str | date, DAY, {"$": ["arm", "date", "2026-11-30"]}),
        (str | date, "2026-11-30", "2026-11-30"),
        (list[int] | list[str], ["a"], {"$": ["arm", "list[str]", ["a"]]}),
        (Animal | None, Animal(name="a"), {"name": "a"}),
        (Animal | Cat | int, Cat(lives=9), {"$": ["arm", "Cat", {"lives": 9}]}),
        (Annotated[Animal | Annotated[Cat | None, 1], 2], Cat(lives=9), {"$": ["arm", "Cat", {"lives": 9}]}),
        (Any | Cat, Cat(lives=9), {"$": ["arm", "Cat", {"lives": 9}]}),
        (Any | None, {1: None}, {"$": ["dict", [[1, None]]]}),
        (Tree, {"a": {"b": DAY}}, {"a": {"b": "2026-11-30"}}),
        (Two[date], (DAY, DAY), ["2026-11-30", "2026-11-30"]),
        (JsonValue, {"a": [1, None, {"$": 2.5}]}, {"a": [1, None, {"$": ["dict", [["$", 2.5]]]}]}),
        (Generics[date], Generics[date](item=DAY), {"item": "2026-11-30"}),
        (Ids, Ids([UUID(int=1)]), {"root": [str(UUID(int=1))]}),
        (Point[date], Point(DAY, Point(DAY)), {"x": "2026-11-30", "rest": {"x": "2026-11-30", "rest": None}}),
        (DayPoint, DayPoint(DAY), {"x": "2026-11-30", "rest": None, "note": ""}),
        (Checked, Checked(1, [Checked(2)]), {"n": 1, "inner": [{"n": 2, "inner": []}]}),
        (Empty, Empty(), {}),
        (Late, Late(later=Later(day=DAY)), {"later": {"day": "2026-11-30"}, "$": {"private": {"_hidden": [1]}}}),
        (UserId | int, 3, 3),
        (Place, Place("a"), {"street": "a", "day": "2026-11-30"}),
        (Movie, {"title": "a"}, {"title": "a"}),
        (Wide, {"a": b"x", "b": DAY}, {"a": "eA==", "b": {"$": ["date", "2026-11-30"]}}),
        (Node, Node(value=1, next=None, kids=[]), {"value": 1, "next": None, "kids": []}),
        (Node, Node(value=1), {"value": 1, "$": {"unset": {"next": None, "kids": []}}}),
        (Loose, Loose(z=DAY), {"$": {"unset": {"a": 1}, "extra": {"z": {"$": ["date", "2026-11-30"]}}}}),
    ],
    ids=label,
)
def test_values_of_declared_types_come_back(annotation: Any, value: Any, plain: Any) -> None:
    """A value of each kind of declared type is stored in the form shown and comes back equal, classes included."""
    assert plan_for(annotation).encode(value, "state.x") == plain
    back = _stored(annotation, value)
    assert back == value
    assert traits(back) == traits(value)


def test_c129_container_subclasses_keep_their_behaviour() -> None:
    """A default map makes, a counter counts, an ordered map orders and a deque drops, as before saving."""
    groups = _stored(defaultdict[str, list[int]], defaultdict(list))
    assert groups["new"] == []
    assert _stored(Counter[str], Counter("aab")).most_common(1) == [("a", 2)]
    assert list(_stored(OrderedDict[int, int], OrderedDict([(2, 0), (1, 0)]))) == [2, 1]
    full = _stored(deque[int], deque([1, 2], maxlen=2))
    full.append(3)
    assert list(full) == [2, 3]


def test_c130_computed_fields_of_a_dataclass_are_restored() -> None:
    """A field outside of `__init__` comes back with its value, without `__post_init__` running again."""
    value = Computed(3, NOW, tags=["a"])
    value.area = 10
    made = Computed.made
    assert _stored(Computed, value) == value
    assert Computed.made == made


def test_models_are_restored_without_validators() -> None:
    """Private attributes, the set of given fields and excluded fields come back; no validator or hook runs again."""
    value = Counting(base=4)
    value._seen = {DAY: 1}
    value.log.append("x")
    assert value.total == 9
    made = Counting.made
    back = _stored(Counting, value)
    del value.total  # a cached property is worked out anew
    assert (back, back.total) == (value, 9)
    assert back.model_fields_set == {"base"}
    assert back.__pydantic_private__ == {"_seen": {DAY: 1}}
    assert (Counting.made, back.log) == (made, ["x"])


def test_given_fields_are_kept_whatever_they_are() -> None:
    """`model_fields_set` survives also where it has extras, lacks extras, or names no field at all."""
    later = Loose.model_construct(a=2)
    later.__pydantic_extra__["b"] = DAY
    strange = Loose.model_construct(_fields_set={"zzz"}, a=2)
    for value in (Loose(b=1), Loose(a=1, b=1), later, strange):
        back = _stored(Loose, value)
        assert (back, back.model_fields_set) == (value, value.model_fields_set)
        assert back.__pydantic_extra__ == value.__pydantic_extra__


def test_json_exact_data_are_not_copied() -> None:
    """Data that are their own stored form pass through as the same object, both ways."""
    for annotation, value in ((list[str], ["a"]), (dict[str, int | None], {"a": None}), (list, ["a", 1.5])):
        plan = plan_for(annotation)
        assert plan.encode(value, "x") is value
        assert plan.decode(value) is value


class Reverse:
    """A toy cipher."""

    def encrypt(self, data: bytes) -> bytes:
        return bytes(byte ^ 0x5A for byte in data)

    decrypt = encrypt


class Broken(Reverse):
    def encrypt(self, data: bytes) -> bytes:
        raise ValueError(f"bad data: {data!r}")


class Wrong(Reverse):
    def decrypt(self, data: bytes) -> bytes:
        raise ValueError(f"bad data: {data!r} hush")


def test_c241_secrets_are_refused_without_a_cipher() -> None:
    """A secret isn't stored in clear: without a cipher it is refused with its path, and the message doesn't show it."""
    login = Login(user="u", password=SecretStr("hush"))
    with pytest.raises(EncodeError, match=r"state\.x\.password can't be stored.*cipher.*'Transient'") as caught:
        plan_for(Login).encode(login, "state.x")
    assert "hush" not in str(caught.value)
    assert plan_for(SecretStr | None).encode(None, "state.x") is None


def test_c241_secrets_are_stored_encrypted_with_a_cipher() -> None:
    """With a cipher a secret comes back, and the stored bytes don't contain it; a wrong cipher doesn't leak it."""
    login = Login(user="u", password=SecretStr("hush\ud800"), keys=[SecretBytes(b"hush\xff")])
    assert _stored(Login, login, cipher=Reverse()) == login
    data = dumps(plan_for(Login, cipher=Reverse()).encode(login, "state.x"))
    assert b"hush" not in data
    with pytest.raises(EncodeError, match=r"state\.x\.password.*can't encrypt.*ValueError") as refused:
        plan_for(Login, cipher=Broken()).encode(login, "state.x")
    assert "hush" not in str(refused.value)
    for cipher in (Wrong(), None):
        with pytest.raises(DecodeError, match=r"state\.x\.password can't be restored.*cipher") as caught:
            plan_for(Login, cipher=cipher).decode(loads(data), "state.x")
        assert "hush" not in str(caught.value)


def test_open_tells_whether_a_valid_value_may_be_refused() -> None:
    """`open` is False only where pydantic lets nothing through that can't be stored."""
    closed = (int, list[str | None], dict[str, Colour], tuple[int, ...], Literal["a"], Sequence[int], JsonValue)
    opened = (Any, list, dict[str, Any], tuple[int, object], Animal, Computed, SecretStr, re.Pattern[str], datetime)
    assert [plan_for(item).open for item in closed] == [False] * len(closed)
    assert [plan_for(item).open for item in opened] == [True] * len(opened)


def test_accepts_is_the_exact_class_test() -> None:
    """`accepts` looks at the exact class only: no subclass, no look inside."""
    plan = plan_for(Animal | list[int] | None)
    assert [plan.accepts(value) for value in (Animal(), ["x"], None, Dog(), (), 1)] == [True] * 3 + [False] * 3
    assert plan_for(Any).accepts(Dog())


def test_plans_are_shared() -> None:
    """One plan serves all fields of an equal annotation; one without a hash gets its own."""
    assert plan_for(list[Animal]) is plan_for(list[Animal])
    assert isinstance(plan_for(Annotated[int, []]), Plan)


@pytest.mark.parametrize(
    ("annotation", "value", "where", "text"),
    [
        (list[Animal], [Animal(), Dog()], "state.x[1]", "'declared_types.Dog' is not the declared 'Animal'"),
        (
            dict[str, Animal | None],
            {"a": Dog()},
            "state.x['a']",
            "Dog' is not the declared 'Animal | None'",
        ),
        (Point[int], Point(1, Point("a")), "state.x.rest.x", "'str' is not the declared 'int'"),
        (Node, Node(value=1).model_copy(update={"kids": [Node(value=1), "a"]}), "state.x.kids[1]", "'str'"),
        (list[Any], [{"a": Cat(lives=1)}], "state.x[0]['a']", "declare the field's type"),
        (Loose, Loose(z=[Cat(lives=1)]), "state.x.z[0]", "declare the field's type"),
        (int, Level.LOW, "state.x", "'declared_types.Level'"),
        (datetime | None, DAY, "state.x", "'datetime.date' is not the declared 'datetime | None'"),
        (list[int] | list[str], [1.5], "state.x[0]", "'float'"),
        (Literal["a"], "b", "state.x", "'b' is none of the declared 'Literal['a']'"),
        (dict[str, int], OrderedDict(a=1), "state.x", "'collections.OrderedDict' is not the declared 'dict[str, int]'"),
        (tuple[int, str], (1,), "state.x", "1 items"),
        (defaultdict[str, list[int]], defaultdict(set), "state.x", "must be 'list'"),
        (defaultdict[str, int | str], defaultdict(int), "state.x", "builtin class"),
        (defaultdict, defaultdict(int), "state.x", "or use a 'dict'"),
        (re.Pattern[str], re.compile("a"), "state.x", "'Transient'"),
        (typing.Callable[[], int], int, "state.x", "'Transient'"),
        (Failure, Failure(), "state.x", "Failure' has no stored form"),
        (Cat | list["Nowhere"] | None, [1], "state.x[0]", "'Nowhere' has no stored form"),  # noqa: F821
        (*local_class(), "state.x", "name 'Inner' is not defined"),
        (Computed, stray(), "state.x.cache", "declare it as a field"),
        (Slotted, Slotted(1), "state.x.cache", "declare it as a field"),
        (pydantic.create_model("Money", **{"$": (int, 1)}), 1, "state.x", "a name the codec needs"),
        (Colour, pseudo_member(), "state.x", "no declared member"),
        (Computed, half(), "state.x", "'width' of 'Computed' is not set"),
        (Cat, Cat.model_construct(), "state.x", "'lives' of 'Cat' is not set"),
        (Movie, {"title": "a", "dya": DAY}, "state.x['dya']", "did you mean 'day'?"),
        (Movie, {"day": DAY}, "state.x['title']", "NotRequired"),
    ],
)
def test_refusals_name_path_and_mend(annotation: Any, value: Any, where: str, text: str) -> None:
    """What isn't of exactly the declared class, or of a class without stored form, is refused with its path."""
    with pytest.raises(EncodeError) as caught:
        plan_for(annotation).encode(value, "state.x")
    assert caught.value.path == where
    assert text in str(caught.value)


def test_records_that_contain_themselves_are_refused() -> None:
    """A cycle through models and lists is told as a cycle with its path, not as a RecursionError."""
    node = Node(value=1)
    node.kids.append(Node(value=2, next=node))
    with pytest.raises(EncodeError, match=r"state\.x\.kids\[0\]\.next can't be stored: it is 'state\.x' again"):
        plan_for(Node).encode(node, "state.x")
    chain = None
    for value in range(5000):
        chain = Node.model_construct(value=value, next=chain, kids=[])
    with pytest.raises(EncodeError, match="nested deeper than 100 levels"):
        plan_for(Node).encode(chain, "state.x")


def test_types_of_one_name_are_told_apart_by_module() -> None:
    """Two classes of one name get their modules as tags; where those are equal too, values are refused, None is not."""
    one, other = (pydantic.create_model("Twin", __module__=module, x=(int, 1)) for module in ("a", "b"))
    assert plan_for(one | other | None).encode(other(), "x")["$"][:2] == ["arm", "b.Twin"]
    assert type(_stored(list[one] | list[other], [other()])[0]) is other
    again = pydantic.create_model("Twin", __module__="a", x=(int, 1))
    assert _stored(one | again | None, None) is None
    with pytest.raises(EncodeError, match=r"two types named 'Twin'.*rename one"):
        plan_for(one | again | None).encode(again(), "x")


def test_a_piece_of_a_typeddict_may_lack_keys() -> None:
    """With `partial` a patch of a TypedDict is stored; unknown keys are still refused."""
    assert _stored(Movie, {"day": DAY}, partial=True) == {"day": DAY}
    with pytest.raises(EncodeError, match="declares no such key"):
        plan_for(Movie, partial=True).encode({"x": 1}, "state.x")
