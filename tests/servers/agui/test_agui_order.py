"""The translator: whatever a run tells, in whatever order, the stream is one that the protocol's client takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agui_rules import Broken, Client, patched, verified
from hypothesis import given, settings
from hypothesis import strategies as st

from graphagent.ledger import ErrorInfo, Event, TokenUsage
from graphagent.messages import Message, ToolCall
from runner.servers.agui.encode import encoded
from runner.servers.agui.marks import ASKED, CALLED
from runner.servers.agui.state import ShownState, difference
from runner.servers.agui.translator import RunNames, Translator

NAMES = RunNames("thread", "run")
_short = st.sampled_from(["", "a", "b", "ab", "abc", "\ud83d", "é"])
_id = st.sampled_from(["m1", "m2", "m3"])
_branch = st.sampled_from(["bob", "bob/left", "bob/right"])
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | _short,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y/z", "~w"]), inner, max_size=2),
    max_leaves=6,
)
_calls = st.lists(st.builds(ToolCall, id=st.sampled_from(["c1", "c2"]), name=st.just("look")), max_size=2)
_message = st.one_of(
    st.builds(Message, role=st.just("assistant"), content=_short, reasoning=st.none() | _short,
              tool_calls=_calls.map(tuple)),
    st.builds(Message, role=st.just("tool"), content=_short, tool_call_id=st.sampled_from(["c1", "c2", "c9"])),
    st.builds(Message, role=st.just("user"), content=_short),
    st.builds(Message, role=st.just("user"), content=st.just([{"type": "image_url", "image_url": {"url": "x"}}])),
)  # fmt: skip
_where = st.fixed_dictionaries({"node": st.just("n"), "activation": st.sampled_from(["n#1", "n#2"])})
_mark = st.one_of(
    st.fixed_dictionaries(
        {ASKED: st.fixed_dictionaries({"message": _id, "step": _short, "attempt": st.integers(1, 2)})}
    ),
    st.fixed_dictionaries({CALLED: st.fixed_dictionaries({"call": _id, "step": _short})}),
    st.fixed_dictionaries({ASKED: _values}),
)
_custom = st.one_of(
    st.fixed_dictionaries({"progress": st.fixed_dictionaries({"fraction": st.floats(0, 1), "message": _short})}),
    st.fixed_dictionaries({"tool_delta": st.fixed_dictionaries({"call_id": _id, "delta": _values})}),
    st.fixed_dictionaries({"own": _values}),
)
_merged = st.tuples(_where, st.one_of(_mark, _custom, st.just({}))).map(lambda both: {**both[0], **both[1]})
_error = st.builds(ErrorInfo, type=st.sampled_from(["api_error", "run_error", "cancelled"]), message=_short,
                   code=st.none() | st.just("timeout"))  # fmt: skip
_question = st.fixed_dictionaries({"id": _id, "key": _short, "prompt": _values, "schema": _values})
_event = st.one_of(
    st.builds(Event, author=st.just("bob"), branch=_branch, delta=_short, reasoning_delta=_short, partial=st.just(True),
              extensions=_where),
    st.builds(Event, author=st.just("bob"), branch=_branch, kind=st.just("graph"), partial=st.just(True),
              extensions=_merged),
    st.builds(Event, id=_id, author=st.just("bob"), branch=_branch, messages=st.lists(_message, max_size=2).map(tuple),
              error=st.none() | _error, state_delta=st.dictionaries(st.sampled_from(["s", "t"]), _values, max_size=2),
              finish_reason=st.none() | st.just("cancelled"), long_running_tool_ids=st.just(frozenset({"c1"}))),
    st.builds(Event, author=st.just("bob"), branch=_branch, messages=st.lists(_message, max_size=1).map(tuple)),
)  # fmt: skip
_outcomes = ["completed", "interrupted", "cancelled", "failed", "limit_reached", "stalled", "odd"]
_completion = st.builds(
    Event,
    kind=st.just("completion"),
    error=st.none() | _error,
    interrupts=st.lists(_question, max_size=2).map(tuple),
    usage=st.none() | st.just(TokenUsage(input_tokens=1)),
    extensions=st.fixed_dictionaries({"outcome": st.sampled_from(_outcomes)}) | st.just({}),
)


def wire(events: Any) -> list[dict[str, Any]]:
    """Events as a client gets them."""
    return [json.loads(encoded(event, 1).partition("data: ")[2]) for event in events]


@settings(max_examples=400, deadline=None)
@given(st.lists(_event | _completion, max_size=14), st.booleans(), st.sampled_from([None, 0, 3]))
def test_any_events_give_a_legal_stream(events: list[Event], snapshot: bool, ends: int | None) -> None:
    """Cut-offs, duplicates, errors and late events: the order is legal and there is one terminal event, the last."""
    translator = Translator(NAMES, state=ShownState(("s",), {"s": 1}))
    out = translator.begin([("r1", Message.tool("done", "c9"))])
    for place, event in enumerate(events):
        out += translator.take(event)
        if place == ends:
            out += translator.fail("failed", "broke off")
        if snapshot and place == 2:
            out += translator.snapshot([])
    out += translator.fail("incomplete", "the end")
    for event in events:
        assert translator.take(event) == []
    Client().read(verified(wire(out)))


@settings(max_examples=200, deadline=None)
@given(st.lists(_event, max_size=10), st.lists(_event | _completion, max_size=6))
def test_a_picture_is_a_legal_beginning(before: list[Event], after: list[Event]) -> None:
    """Who comes later gets where the run is, and from there on the same events as everybody."""
    translator = Translator(NAMES, state=ShownState(("s",), {}))
    translator.begin()
    for event in before:
        translator.take(event)
    out = translator.picture([], first=True)
    for event in after:
        out += translator.take(event)
    out += [] if translator.over else translator.fail("incomplete", "the end")
    Client().read(verified(wire(out)))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=5), st.data())
def test_speakers_side_by_side_keep_their_texts(texts: list[str], data: st.DataObject) -> None:
    """Pieces of parallel branches in any interleaving give each message once, whole, under its own id."""
    rest = {f"bob/{place}": text for place, text in enumerate(texts)}
    translator = Translator(NAMES)
    out = translator.begin()
    while rest:
        branch = data.draw(st.sampled_from(sorted(rest)))
        text = texts[int(branch[4:])]
        if rest[branch]:
            out += translator.take(Event(author="bob", branch=branch, partial=True, delta=rest[branch][0]))
            rest[branch] = rest[branch][1:]
        else:
            del rest[branch]
            out += translator.take(Event(author="bob", branch=branch, messages=(Message.assistant(text),)))
    out += translator.take(Event(kind="completion", extensions={"outcome": "completed"}))
    assert sorted(Client().read(verified(wire(out))).texts) == sorted(texts)
    assert not translator.changed


_objects = st.dictionaries(st.sampled_from(["a", "b/c", "~d", ""]), _values, max_size=3)


@settings(max_examples=300, deadline=None)
@given(st.lists(_objects, max_size=5))
def test_state_is_what_a_client_makes_of_its_deltas(deltas: list[dict[str, Any]]) -> None:
    """Patches can always be applied, and give the state that the session has."""
    shown = ShownState(("k",), {})
    client = Client().read(wire(shown.snapshot()))
    for delta in deltas:
        client.read(wire(shown.change({"k": delta})))
        assert client.state == wire(ShownState(("k",), {"k": delta}).snapshot())[0]["snapshot"]


def test_c214_a_new_key_is_added_before_it_is_replaced() -> None:
    """A node adds a nested key, then changes it: first an 'add', then a 'replace', and both can be applied."""
    shown = ShownState(("plan",), {"plan": {}})
    first, second = (wire(shown.change({"plan": {"step": n}}))[0]["delta"] for n in (1, 2))
    assert [first[0]["op"], second[0]["op"]] == ["add", "replace"]
    assert patched(patched({"plan": {}}, first), second) == {"plan": {"step": 2}}
    assert difference({"a": 1, "b": True}, {"b": 1}) == [
        {"op": "remove", "path": "/a"}, {"op": "replace", "path": "/b", "value": 1},
    ]  # fmt: skip
    with pytest.raises(Broken):
        patched({"plan": {}}, second)
