from __future__ import annotations

import array
import contextlib
import enum
import sys
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from codec_values import PLAIN, VALUES, traits
from hypothesis import given
from pydantic import BaseModel, SecretBytes, SecretStr, TypeAdapter

from graphagent.checkpoint.codec import decode_any, dumps, encode_any, loads
from graphagent.checkpoint.refusal import MAX_DEPTH
from graphagent.errors import DecodeError, EncodeError, LoadError

NEW_YORK = ZoneInfo("America/New_York")


def _stored(value: Any) -> Any:
    """The value after a save and a load."""
    return decode_any(loads(dumps(encode_any(value, "state.x"))))


def _nested(depth: int, wrap: Any = lambda value: [value]) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(float("nan"), id="nan"),
        pytest.param([float("inf"), float("-inf"), -0.0, 5e-324, 1.7976931348623157e308], id="floats"),
        pytest.param("a\0b", id="c134-nul"),
        pytest.param("\ud800 \udfff \ud83d\ude00 \U0001f600", id="lone-surrogates-next-to-a-real-pair"),
        pytest.param("\u2028 \x7f \x1b \ufeff", id="separators"),
        pytest.param({"\0": "\ud800"}, id="nul-key"),
        pytest.param([10**5000, -(10**5000), 2**64, "i5", "s", {"i1": "i1"}, None, 1.5], id="huge-integers-among-text"),
        pytest.param([True, 1, 1.0, False, 0, 0.0], id="true-is-not-one"),
        pytest.param({1: "int", "1": "text", 1.5: "float", None: "none", (1, "a"): "tuple"}, id="keys-of-many-classes"),
        pytest.param({"$": ["tuple", [1]]}, id="a-dict-that-looks-like-a-tag"),
        pytest.param({"$": 1, "a": {"$": {"$": 2}}}, id="tag-key-nested"),
        pytest.param({True: {frozenset({1, 2}): {b"x": bytearray(b"y")}}}, id="keys-nested"),
        pytest.param(({1, "a", None, (1, 2)}, set(), frozenset(), ()), id="sets-of-mixed-classes"),
        pytest.param(deque([1, 2], maxlen=2), id="c129-bounded-deque"),
        pytest.param(deque(), id="c129-unbounded-deque"),
        pytest.param(OrderedDict([("b", 1), ("a", OrderedDict())]), id="c129-ordered-map"),
        pytest.param(Counter("mississippi"), id="c129-counter"),
        pytest.param(Counter(a=-1, b=0), id="c129-counter-below-zero"),
        pytest.param(datetime(2026, 11, 1, 1, 30, tzinfo=NEW_YORK, fold=1), id="c131-repeated-hour"),
        pytest.param(datetime(2026, 3, 8, 2, 30, tzinfo=NEW_YORK, fold=1), id="c131-hour-that-never-was"),
        pytest.param(datetime(2026, 1, 1, fold=1), id="naive-with-fold"),
        pytest.param([datetime(2026, 1, 1, tzinfo=zone) for zone in (UTC, ZoneInfo("UTC"))], id="two-classes-of-utc"),
        pytest.param(datetime.max.replace(tzinfo=timezone(timedelta(hours=-23, minutes=-59), "X")), id="named-offset"),
        pytest.param(time(1, 2, 3, 4, tzinfo=timezone(timedelta(microseconds=1)), fold=1), id="tiny-offset"),
        pytest.param(time(1, 2, tzinfo=NEW_YORK), id="time-with-zone"),
        pytest.param(TypeAdapter(datetime).validate_python("2026-01-01T00:00:00+02:00"), id="zone-made-by-pydantic"),
        pytest.param([date.min, date.max, timedelta.min, timedelta.max, timedelta(microseconds=-1)], id="date-limits"),
        pytest.param([Decimal(text) for text in ("NaN", "sNaN12", "-Infinity", "-0.00", "1E+999999")], id="decimals"),
        pytest.param(UUID(int=0), id="uuid"),
        pytest.param([complex(-0.0, float("nan")), b"", b"\xff\0", bytearray(b"\xff")], id="complex-and-bytes"),
    ],
)
def test_values_come_back_as_they_were(value: Any) -> None:
    """A stored value comes back equal and of the same classes, whatever JSON thinks of it."""
    assert traits(_stored(value)) == traits(value)


@given(VALUES)
def test_any_nesting_of_any_values_comes_back(value: Any) -> None:
    """Storing is the identity for every value of the table of classes, in any nesting."""
    assert traits(_stored(value)) == traits(value)


@given(VALUES)
def test_plain_data_survive_bytes(value: Any) -> None:
    """`loads` undoes `dumps`, and the same plain data make the same bytes."""
    plain = encode_any(value, "state.x")
    data = dumps(plain)
    assert traits(loads(data)) == traits(plain)
    assert dumps(loads(data)) == data


@given(PLAIN)
def test_damaged_data_are_refused_by_name(plain: Any) -> None:
    """Plain data that no encoder made either decode or raise DecodeError; nothing else gets out."""
    with contextlib.suppress(DecodeError):
        decode_any(plain, "state.x")


def test_c131_arithmetic_after_loading_is_the_same() -> None:
    """A New York time before the clock change, and one in the repeated hour, step over it as before saving."""
    before = datetime(2026, 10, 31, 12, 0, tzinfo=NEW_YORK)
    repeated = datetime(2026, 11, 1, 1, 30, tzinfo=NEW_YORK, fold=1)
    for moment in (before, repeated):
        loaded = _stored(moment)
        assert loaded.tzinfo is NEW_YORK
        assert loaded.utcoffset() == moment.utcoffset()
        assert (loaded + timedelta(days=1)).astimezone(UTC) == (moment + timedelta(days=1)).astimezone(UTC)


def test_sets_are_stored_in_one_order() -> None:
    """Equal sets make equal bytes although they iterate in different orders."""
    one, other = {0, 8, 16, "a", None}, {None, "a", 16, 8, 0}
    assert dumps(encode_any(one, "x")) == dumps(encode_any(other, "x"))


def test_common_data_are_stored_as_plain_json() -> None:
    """Messages of a chat are stored as the JSON that everyone reads, without a tag and without a copy."""
    messages = [{"role": "ai", "content": "ä", "n": 1, "calls": [{"id": "1"}]}]
    assert dumps(encode_any(messages, "x")) == '[{"role":"ai","content":"ä","n":1,"calls":[{"id":"1"}]}]'.encode()
    flat = ["a", 1, None]
    assert encode_any(flat, "x") is flat


class Text(str):
    """A subclass of a builtin."""


class Colour(enum.StrEnum):
    RED = "red"


class Model(BaseModel):
    x: int = 1


@dataclass
class Point:
    x: int = 1


Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    ("value", "where", "mend"),
    [
        ({"items": [0, {"when": array.array("i")}]}, "state.v['items'][1]['when']", "convert the value to plain data"),
        ({"d": defaultdict(list)}, "state.v['d']", "dict(...)"),
        ([Text("a")], "state.v[0]", "str(...)"),
        ((1, Pair(1, 2)), "state.v[1]", "tuple(...)"),
        ({Colour.RED: 1}, "state.v[<test_codec.Colour>]", "declare the field's type"),
        ([Model()], "state.v[0]", "declare the field's type"),
        (deque([Point()]), "state.v[0]", "declare the field's type"),
        (OrderedDict(a={1: {2: Path("x")}}), "state.v['a'][1][2]", "declare the field's type"),
        ({(1, Text("a"))}, "state.v{<tuple>}[1]", "str(...)"),
        (frozenset({Colour.RED}), "state.v{<test_codec.Colour>}", "declare the field's type"),
        ({"f": sys.stdout}, "state.v['f']", "'Transient'"),
        (datetime(2026, 1, 1, tzinfo=type("Own", (type(UTC).__base__,), {})()), "state.v", "zoneinfo.ZoneInfo"),
        ({"k": SecretStr("hush")}, "state.v['k']", "give the store a cipher"),
        ([SecretBytes(b"hush")], "state.v[0]", "give the store a cipher"),
        (object, "state.v", "'type'"),
    ],
)
def test_refusals_name_path_class_and_mend(value: Any, where: str, mend: str) -> None:
    """What has no stored form is refused with its exact path, its class and what to do; its value is never shown."""
    with pytest.raises(EncodeError) as caught:
        encode_any(value, "state.v")
    assert caught.value.path == where
    assert str(caught.value).startswith(f"{where} can't be stored: ")
    assert mend in str(caught.value)
    assert "hush" not in str(caught.value)


def test_c129_subclasses_of_containers_are_refused_not_flattened() -> None:
    """A default map in an undeclared field is refused with the mend instead of coming back as a plain dict."""
    with pytest.raises(EncodeError, match=r"state\.m\['a'\] can't be stored: class 'collections.defaultdict'.*dict\("):
        encode_any({"a": defaultdict(int)}, "state.m")


def test_c132_c133_arrays_and_array_scalars_are_refused_with_the_mend() -> None:
    """No array or scalar of a numeric library is stored as bytes or addresses: it is refused, saying how to convert."""
    numpy = pytest.importorskip("numpy", reason="numpy is not installed; array.array stands in the table above")
    values = (numpy.float64(1), numpy.int64(1), numpy.bool_(True), numpy.zeros(2), numpy.array([object()]))
    for value in (*values, numpy.zeros(2, dtype=[("a", "i4")])):
        with pytest.raises(EncodeError, match=r"state\.m\['mean'\].*'numpy\..*\.item\(\) or \.tolist\(\)"):
            encode_any({"mean": value}, "state.m")


def test_c140_an_open_handle_fails_at_its_path(tmp_path: Path) -> None:
    """A client handle inside a value is refused with its path and the advice to mark the field transient."""
    with (
        (tmp_path / "log").open("w") as handle,
        pytest.raises(EncodeError, match=r"state\.result\['raw'\]\[0\].*'_io\.TextIOWrapper'.*'Transient'"),
    ):
        encode_any({"text": "ok", "raw": [handle]}, "state.result")


def test_a_value_that_contains_itself_is_refused_with_its_path() -> None:
    """A cycle is told as a cycle, naming both ends, and isn't a RecursionError."""
    looped: dict[str, Any] = {"a": [1]}
    looped["a"].append((looped,))
    with pytest.raises(EncodeError, match="contains itself") as caught:
        encode_any([looped], "state.v")
    assert caught.value.path == "state.v[0]['a'][1][0]"
    assert "it is 'state.v[0]' again" in str(caught.value)


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda value: [value], id="list"),
        pytest.param(lambda value: {1: value}, id="pairs"),
        pytest.param(lambda value: (value,), id="tuple"),
        pytest.param(lambda value: frozenset({value}), id="frozenset"),
    ],
)
def test_depth_has_a_fixed_limit(wrap: Any) -> None:
    """The deepest value that can be stored can be loaded, on a stack already half used; one level more is refused."""

    def deep_down(frames: int) -> Any:
        return deep_down(frames - 1) if frames else _stored(deepest)

    deepest = _nested(MAX_DEPTH, wrap)
    assert deep_down(400) == deepest
    for excess in (MAX_DEPTH + 2, 5000):
        with pytest.raises(EncodeError, match=rf"nested deeper than {MAX_DEPTH} levels"):
            encode_any(_nested(excess, wrap), "state.v")


@pytest.mark.parametrize(
    ("plain", "where", "text"),
    [
        ([{"$": ["tupel", []]}], "state.v[0]", "did you mean 'tuple'?"),
        ({"a": {"$": ["datetime", ["2026-01-01T00:00:00", 0, "Mars/Phobos"]]}}, "state.v['a']", "Mars/Phobos"),
        ({"$": ["set", [[1]]]}, "state.v", "stored"),
        ({"$": ["decimal", "abc"]}, "state.v", "decimal.Decimal"),
        ({"$": ["os.system", "true"]}, "state.v", "unknown"),
        ({"$": 3}, "state.v", "stored"),
        ({"$": ["tuple", [1]], "b": 1}, "state.v", "stored"),
        ((1, 2), "state.v", "tuple"),
    ],
)
def test_stored_data_of_foreign_make_are_refused(plain: Any, where: str, text: str) -> None:
    """Tags are a closed table: an unknown or damaged one is a DecodeError with its path, never a class to load."""
    with pytest.raises(DecodeError) as caught:
        decode_any(plain, "state.v")
    assert caught.value.path == where
    assert text in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"#{", b'#["x"]', b'#[""]', b"[" * 100_000])
def test_damaged_bytes_are_a_load_error(data: bytes) -> None:
    """Bytes that aren't ours are told as such."""
    with pytest.raises(LoadError, match="stored bytes can't be read"):
        loads(data)
