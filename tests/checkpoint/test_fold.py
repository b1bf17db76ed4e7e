"""Folding and retention, apart from any store."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphagent.checkpoint.codec import decode_any, encode_any
from graphagent.checkpoint.fold import Change, fold_lists, fold_values, merge_lists, merge_mapping
from graphagent.checkpoint.plain_json import dumps
from graphagent.checkpoint.record import ListDelta, Retention
from graphagent.checkpoint.retention import RowFacts, bases_to_keep, gaps, origins_of, rows_to_keep
from graphagent.checkpoint.sql.plain import loads_each, merge_plain

KEYS = st.one_of(st.integers(-3, 3), st.sampled_from(["a", "b", "$", "1", ""]), st.tuples(st.booleans()), st.none())
MAPPINGS = st.dictionaries(KEYS, st.integers(), max_size=4)


@st.composite
def list_changes(draw: st.DrawFn) -> tuple[list[Any], list[ListDelta]]:
    """A list and changes that can be made to it one after the other."""
    start = [object() for _ in range(draw(st.integers(0, 4)))]
    old, changes = start, []
    for _ in range(draw(st.integers(1, 5))):
        places = draw(st.permutations(range(len(old))))
        puts, drops = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        delta = ListDelta(
            items=[object() for _ in range(draw(st.integers(0, 3)))],
            put=tuple((place, object()) for place in places[:puts]),
            drop=tuple(places[puts : puts + drops]),
        )
        changes.append(delta)
        old = delta.apply(old)
    return start, changes


@given(list_changes())
def test_merged_list_changes_do_what_they_did_one_by_one(case: tuple[list[Any], list[ListDelta]]) -> None:
    """Whatever was appended, put and dropped, the merged change leads from the same list to the same list."""
    start, changes = case
    rows = [{"log": delta} for delta in changes]
    after = start
    for delta in changes:
        after = delta.apply(after)
    merged = merge_lists(rows, {"log": start})
    assert merged is not None
    assert merged["log"].apply(start) == after
    assert fold_lists([{"log": ListDelta(start)}, *rows]) == {"log": after}
    only_appends = not any(delta.put or delta.drop for delta in changes)
    assert (merge_lists(rows, None) is not None) == only_appends


def test_a_merged_change_writes_no_more_than_it_must() -> None:
    """What both lists begin with stays where it is; fields that no change names aren't in the merged one."""
    before = {"log": ["a", "b", "c"], "other": [1]}
    merged = merge_lists([{"log": ListDelta(["d"])}, {"log": ListDelta(["e"], put=((2, "C"),))}], before)
    assert merged == {"log": ListDelta(["C", "d", "e"], drop=(2,))}


def test_lists_are_new_ones() -> None:
    """A folded list shares nothing with the rows, so that what is done to it doesn't reach them."""
    items = ["a"]
    folded = fold_lists([{"log": ListDelta(items)}, {"log": ListDelta(["b"])}])
    assert folded == {"log": ["a", "b"]}
    assert items == ["a"]


@given(st.lists(MAPPINGS, min_size=1, max_size=4))
def test_patches_merge_alike_before_and_after_decoding(mappings: list[dict[Any, Any]]) -> None:
    """The plain data of a mapping takes patches as the mapping itself does, for keys of any type and the key '$'."""
    changes = [Change({"data": mappings[0]}, {}), *(Change({}, {"data": patch}) for patch in mappings[1:])]
    plain = [
        Change(*({name: encode_any(value, name) for name, value in part.items()} for part in change))
        for change in changes
    ]
    expected = fold_values(changes)["data"]
    found = decode_any(fold_values(plain, merge_plain)["data"])
    assert list(found.items()) == list(expected.items())


def test_a_patch_keeps_the_class_of_the_mapping() -> None:
    """An ordered dict stays one; neither it nor the patch is changed."""
    old = OrderedDict(a=1)
    assert merge_mapping(old, {"b": 2}) == OrderedDict(a=1, b=2)
    assert old == OrderedDict(a=1)
    assert type(merge_mapping(old, {})) is OrderedDict
    plain = merge_plain(encode_any(old, ""), encode_any({"b": 2}, ""))
    assert decode_any(plain) == OrderedDict(a=1, b=2)
    assert type(decode_any(plain)) is OrderedDict


def test_a_patch_of_a_field_that_is_unset_is_its_value() -> None:
    """The first patch of a mapping makes it."""
    assert fold_values([Change({}, {}), Change({}, {"data": {"a": 1}})]) == {"data": {"a": 1}}


@given(st.lists(st.one_of(st.integers(), st.text(), st.just(10**5000), st.lists(st.integers()))))
def test_many_blobs_are_read_as_each_alone(values: list[Any]) -> None:
    """Also when one of them is in the marked form, which JSON can't hold."""
    assert loads_each([dumps(value) for value in values]) == values


def facts(seq: int, **more: Any) -> RowFacts:
    """A row of a frame whose values and lists begin at row 0."""
    place = {"seq": seq, "parent": seq - 1 if seq else None, "base": seq, "snap": 0, "root": 0, "pointer": None}
    return RowFacts(**{**place, "created_at": float(seq), "size": 10, "changes": True, "listed": True, **more})


FRAME = [facts(seq) for seq in range(10)]


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        (Retention(), range(10)),
        (Retention(keep_last=3), range(7, 10)),
        (Retention(keep_last=0), [9]),
        (Retention(max_age=2.5), [8, 9]),
        (Retention(max_age=-1), [9]),
        (Retention(max_bytes=40), range(6, 10)),
        (Retention(max_bytes=0), [9]),
        (Retention(keep_last=8, max_age=4.5, max_bytes=60), range(6, 10)),
    ],
)
def test_a_row_goes_when_any_bound_says_so(policy: Retention, kept: Any) -> None:
    """Bounds add up, and the newest row stays whatever they say."""
    assert rows_to_keep({"": FRAME}, policy, now=10.0) == {"": set(kept)}


def test_references_are_followed_to_their_end() -> None:
    """A row that stays keeps what it points to, which keeps what it asks for, which keeps what it was forked from."""
    root = [*(facts(seq) for seq in range(4)), facts(4, parent=2, snap=4, root=4, pointer=2), facts(5, snap=4, root=4)]
    root[2] = facts(2, asks=(("child", 3), ("gone", 1), ("child", 77)))
    child = [*(facts(seq) for seq in range(3)), facts(3, parent=1, snap=3, root=3), facts(4, snap=3, root=3)]
    keep = rows_to_keep({"": root, "child": child}, Retention(keep_last=1), now=10.0)
    assert keep == {"": {5, 2}, "child": {4, 3, 1}}


def test_bases_are_those_of_rows_that_stay() -> None:
    """A row, its base, and what its marking says that its activations started from."""
    rows = [facts(0), facts(1, base=0), facts(2, base=2, origins=(0, 1))]
    assert bases_to_keep(rows, {1}) == {0, 1}
    assert bases_to_keep(rows, {2}) == {0, 1, 2}
    assert origins_of({"m": "work", "o": [[3, 0, 3], [5, 1, 4]]}) == (3, 5)
    assert [origins_of(marking) for marking in ("work", {"f": []}, None, {"o": [[1]]})] == [()] * 4


def test_gaps_of_a_long_frame_are_found_in_linear_time() -> None:
    """Planning for 50,000 rows, every third pinned, takes a fraction of a second."""
    rows = [facts(seq, pinned=seq % 3 == 0) for seq in range(50_000)]
    started = time.perf_counter()
    keep = rows_to_keep({"": rows}, Retention(keep_last=1), now=0.0)[""]
    found = list(gaps(rows, keep))
    assert time.perf_counter() - started < 5
    assert len(found) == 16_666
    assert [gap.heir for gap in found[:2]] == [3, 6]
    assert found[0].seqs == (1, 2)
    assert found[0].snapshot
    assert found[0].before == 0
