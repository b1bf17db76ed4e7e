"""Random sessions: what holds of every projection."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.talks import faults

from graphagent.ledger import Boundary, ErrorInfo, Event, Session, Summary, keys_match
from graphagent.messages import Message, ToolCall
from processors import (
    Budget,
    HistoryLimit,
    Pairing,
    Projection,
    Reader,
    Summaries,
    Visibility,
    Voice,
    assemble,
    default_pipeline,
    explain,
)

KEYS = ["", "app", "app/a", "app/b", "app/a/x", "other"]
IDS = ["c1", "c2", "c3", ""]
TEXTS = ["", "go", "yes", "For context: no"]
few = st.integers(0, 2)


@st.composite
def messages(draw: Any) -> Message:
    """Any message, well-behaved or not."""
    role = draw(st.sampled_from(["user", "assistant", "assistant", "tool", "tool", "system"]))
    text = draw(st.sampled_from(TEXTS))
    if role == "tool":
        return Message.tool(text, draw(st.sampled_from(IDS)))
    if role != "assistant":
        parts = draw(st.booleans())
        return Message(role=role, content=[{"type": "text", "text": text}] if parts else text)
    calls = draw(st.lists(st.sampled_from(IDS), max_size=3))
    names = draw(st.sampled_from(["look", ""]))
    made = tuple(ToolCall(id=call, name=names) for call in calls)
    return Message.assistant(text, tool_calls=made, reasoning=draw(st.sampled_from([None, "hm"])))


@st.composite
def events(draw: Any, place: int) -> Event:
    """Any event of up to three requests and runs, by three authors."""
    return Event(
        id=f"e{place}",
        author=draw(st.sampled_from(["user", "bot", "b"])),
        messages=tuple(draw(st.lists(messages(), max_size=3))),
        partial=draw(st.sampled_from([False, False, False, True])),
        request_id=f"r{draw(few)}",
        invocation_id=f"i{draw(few)}",
        filter_key=draw(st.sampled_from(KEYS)),
        branch=draw(st.sampled_from(["", "bot", "bot/b"])),
        timestamp=float(draw(st.integers(0, 5))),
        error=ErrorInfo(type="api_error", message="x") if draw(few) == 2 else None,
        long_running_tool_ids=frozenset(draw(st.lists(st.sampled_from(IDS), max_size=1))),
    )


@st.composite
def sessions(draw: Any) -> Session:
    """Any session, with any summaries."""
    size = draw(st.integers(0, 12))
    listed = [draw(events(place)) for place in range(size)]
    summaries = {}
    for key in draw(st.sets(st.sampled_from(KEYS), max_size=3).map(sorted)):
        last = f"e{draw(st.integers(0, 14))}" if draw(st.booleans()) else ""
        boundary = Boundary(filter_key=key, cutoff_at=float(draw(st.integers(0, 6))), last_event_id=last)
        summaries[key] = Summary(text=draw(st.sampled_from(["SUM", ""])), boundary=boundary, updated_at=0.0)
    return Session(app="app", user="u", id="s", events=listed, summaries=summaries)


@st.composite
def readers(draw: Any, asked: bool = True) -> Reader:
    """Any reader; what it was asked may or may not be in the session."""
    message = draw(st.one_of(st.sampled_from([Message.user("go"), Message.user("yes")]), messages()))
    if not message.content:
        message = Message.user("go")
    return Reader(
        agent=draw(st.sampled_from(["bot", ""])),
        filter_key=draw(st.sampled_from(KEYS)),
        branch="bot",
        request_id=f"r{draw(few)}",
        invocation_id=f"i{draw(few)}",
        message=message if asked and message.role == "user" else Message.user("go"),
    )


pipelines = st.builds(
    default_pipeline,
    visibility=st.builds(
        Visibility,
        branch=st.sampled_from(["prefix", "subtree", "exact", "all"]),
        timeline=st.sampled_from(["all", "request", "invocation"]),
        contents=st.sampled_from(["session", "session", "invocation"]),
    ),
    summaries=st.sampled_from([None, Summaries(), Summaries("user")]),
    pairing=st.builds(
        Pairing,
        unanswered=st.sampled_from(["close", "strip"]),
        transcript=st.sampled_from(["keep_all", "omit_previous_completed"]),
    ),
    voice=st.builds(
        Voice,
        prefix=st.booleans(),
        preserve=st.sampled_from(["none", "same_branch", "all"]),
        reasoning=st.sampled_from(["discard_previous_turns", "keep_all", "discard_all"]),
    ),
    limit=st.builds(HistoryLimit, messages=st.integers(0, 6)),
)
budgets = st.one_of(st.none(), st.integers(0, 12).map(lambda tokens: Budget(tokens, lambda m: len(m.text.split()) + 1)))


@settings(max_examples=250, deadline=None)
@given(sessions(), readers(), pipelines, budgets)
def test_what_holds_of_every_projection(session: Session, reader: Reader, pipeline: Any, budget: Budget | None) -> None:
    """No call or result without its partner; what was asked is there; events are never changed; same in, same out."""
    stored = session.model_dump_json()
    start = Projection.of(session, reader, budget=budget)
    projection = pipeline(start)
    found = assemble(projection)
    assert faults(found) == []
    assert any(reader.message is not None and reader.message.text in m.text for m in found if m.role == "user")
    assert session.model_dump_json() == stored
    assert pipeline(Projection.of(session.model_copy(deep=True), reader, budget=budget)) == projection


@settings(max_examples=120, deadline=None)
@given(sessions(), readers(), pipelines)
def test_every_event_is_accounted_for(session: Session, reader: Reader, pipeline: Any) -> None:
    """An event that is not in view, or not as it was stored, has a note that says why; one that is in has its words."""
    start = Projection.of(session, reader)
    explained = explain(start, pipeline(start))
    for entry in explained.entries:
        assert entry.reasons or entry.verdict == "in", entry
    assert len(explained.entries) == len(session.events)
    assert str(explained)


@settings(max_examples=120, deadline=None)
@given(sessions(), readers())
def test_a_branch_sees_its_own_path_only(session: Session, reader: Reader) -> None:
    """Nothing of a sibling's key is ever in view, except events of the agent's own run that hold what it was asked."""
    for line in default_pipeline()(Projection.of(session, reader)).lines:
        assert keys_match(line.event.filter_key, reader.filter_key) or reader.in_run(line.event)


@settings(max_examples=120, deadline=None)
@given(sessions(), readers())
def test_what_is_hidden_is_covered(session: Session, reader: Reader) -> None:
    """With summaries, every event that would be in view without them is in view or covered by the text that is."""
    plain = default_pipeline()(Projection.of(session, reader))
    with_text = default_pipeline(summaries=Summaries())(Projection.of(session, reader))
    if not with_text.blocks:
        assert assemble(plain) == assemble(with_text)
        return
    covered = {note.event for note in with_text.notes if note.step == "summary" and note.action == "dropped"}
    shown = {line.place for line in with_text.lines} | {p for line in with_text.lines for p in line.also}
    pairing = {n.event for n in with_text.notes if n.step in ("pairing", "voice") and n.action == "dropped"}
    for line in plain.lines:
        assert line.place in shown or line.event.id in covered | pairing
