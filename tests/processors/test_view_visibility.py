"""Which events a reader sees: filter keys, times, and what it was asked."""

from __future__ import annotations

from typing import Any

import pytest
from support.talks import Talk, short

from graphagent.errors import AgentError
from graphagent.ledger import ErrorInfo, Event
from graphagent.messages import Message
from processors import (
    FULL_CONTEXT,
    ISOLATED_INVOCATION,
    ISOLATED_REQUEST,
    REQUEST_CONTEXT,
    SEED_HISTORY,
    Given,
    Projection,
    Reader,
    Visibility,
    assemble,
    default_pipeline,
)


@pytest.mark.parametrize(
    ("key", "reader", "expected"),
    [
        ("app/a", "app", True),
        ("app/a", "app/a/x", True),
        ("app/a", "app/b", False),
        ("app/a", "app/ab", False),
        ("app/a", "", True),
        ("", "app/a", True),
    ],
)
def test_c001_c002_filter_keys_match_both_ways(key: str, reader: str, expected: bool) -> None:
    """A key matches its ancestors and descendants, not siblings nor longer names; an empty one matches everything."""
    assert Event(filter_key=key).matches(reader) is expected


KEYS = ["app", "app/a", "app/a/x", "app/b", ""]


@pytest.mark.parametrize(
    ("branch", "reader", "visible"),
    [
        ("exact", "app", ["app"]),
        ("subtree", "app/a", ["app/a", "app/a/x", ""]),
        ("prefix", "app/a", ["app", "app/a", "app/a/x", ""]),
        ("prefix", "app", KEYS),
        ("all", "app/b", KEYS),
        ("exact", "", [""]),
        ("subtree", "", KEYS),
    ],
)
def test_c064_branch_modes(branch: Any, reader: str, visible: list[str]) -> None:
    """`exact` takes equal keys only, also blank ones; `subtree` takes no ancestors; `prefix` both ways; `all` all."""
    talk = Talk()
    for key in KEYS:
        talk.user(f"at {key}", filter_key=key, request_id="r0")
    pipeline = default_pipeline(visibility=Visibility(branch=branch))
    assert talk.seen(None, pipeline, filter_key=reader) == [f"user at {key}" for key in visible]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (FULL_CONTEXT, ["old", "mine", "other run", "now"]),
        (REQUEST_CONTEXT, ["other run", "now"]),
        (ISOLATED_REQUEST, ["now"]),
        (ISOLATED_INVOCATION, ["now"]),
    ],
)
def test_presets(policy: Visibility, expected: list[str]) -> None:
    """Presets: all times and both ways; this request; this request and key; this run and key."""
    talk = Talk().bot("old", request_id="r0", invocation_id="i0").bot("mine", request_id="r0", invocation_id="i0")
    talk.bot("other run", invocation_id="i2", filter_key="app/x").user("now")
    found = talk.seen("now", default_pipeline(visibility=policy), filter_key="app")
    assert [words.split(" ", 1)[1] for words in found] == expected


def test_parallel_branches_see_their_own_and_their_ancestors() -> None:
    """Keys app/a and app/b: each sees its own events and those of app, nothing of the other."""
    talk = Talk().user("go", invocation_id="root")
    for key in ("app/a", "app/b", "app/a", "app/b"):
        talk.bot(f"{key} {len(talk.events)}", filter_key=key, invocation_id=key)
    assert talk.seen("go", filter_key="app/a", invocation_id="app/a") == [
        "user go",
        "assistant app/a 1",
        "assistant app/a 3",
    ]
    assert talk.seen("go", filter_key="app/b", invocation_id="app/b")[1:] == ["assistant app/b 2", "assistant app/b 4"]


def test_a_sibling_with_the_same_task_is_not_taken_for_the_own_one() -> None:
    """Two branches were asked the same words, each with a copy of its own: each sees one, its own."""
    talk = Talk().user("go", filter_key="app/a", invocation_id="a").user("go", filter_key="app/b", invocation_id="b")
    found = talk.run(talk.reader("go", filter_key="app/a", invocation_id="a")).lines
    assert [line.event.id for line in found] == ["e1"]


def test_the_message_is_put_in_where_the_session_lacks_it() -> None:
    """What the agent was asked stands before the first event of its run, or at the end, with a note."""
    talk = Talk().user("before", request_id="r0", invocation_id="i0").bot("working", invocation_id="i1")
    projection = talk.run(talk.reader("do it"))
    assert short(assemble(projection)) == ["user before", "user do it", "assistant working"]
    assert [note.action for note in projection.notes if not note.event] == ["added"]
    assert talk.seen("do it", request_id="r9", invocation_id="i9")[-1] == "user do it"


def test_c073_seed_history_is_not_the_current_turn() -> None:
    """A seed with the words of the current message is history: it is hidden like any other event."""
    talk = Talk().user("hello", extensions={SEED_HISTORY: True}, filter_key="elsewhere").user("hello")
    found = talk.run(talk.reader("hello")).lines
    assert [(line.event.id, line.current) for line in found] == [("e2", True)]


def test_what_never_goes_to_a_model() -> None:
    """Pieces, empty events and completions stay out; an error without content is told as text."""
    talk = Talk().user("hi").bot("half", partial=True).event(author="bot", state_delta={"k": 1})
    talk.event(author="bot", error=ErrorInfo(type="api_error", message="down"))
    talk.bot("hi again", kind="completion").event(Message.assistant(""), author="bot")
    assert talk.seen("hi") == ["user hi", "assistant type: api_error, message: down"]


def test_c072_only_the_own_run() -> None:
    """With contents of its own run only: no other run, no summary, no recall; its tool rounds are whole."""
    talk = Talk().user("old", request_id="r0", invocation_id="i0").bot("old too", request_id="r0", invocation_id="i0")
    talk.user("now").bot("", "c1").results("c1").summary("app", "SUM", upto="e2", before=2)
    start = Projection.of(talk.session, talk.reader("now"), given=Given(own_run_only=True))
    assert short(assemble(default_pipeline()(start))) == ["user now", "assistant >c1", "tool c1 ok"]


def test_without_a_session_there_is_the_message() -> None:
    """No session: what the agent was asked, alone."""
    reader = Reader(agent="bot", message=Message.user("hi"))
    assert short(assemble(default_pipeline()(Projection.of(None, reader)))) == ["user hi"]


def test_an_unknown_mode_is_an_error() -> None:
    """A policy says which values it takes."""
    with pytest.raises(AgentError, match=r"'Visibility\(branch=...\)' got 'up'; it takes 'prefix', 'subtree'"):
        Visibility(branch="up")  # type: ignore[arg-type]
