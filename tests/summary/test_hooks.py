"""What users' functions may change of a summary, and what they can't."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.summing import PLAIN, Summing, former, given
from support.talks import Talk

from graphagent.errors import SummaryError
from graphagent.messages import Message
from runner.summary.hooks import Draft, SummaryHooks
from runner.summary.summarizer import ModelSummarizer
from runner.summary.values import SummaryInput

pytestmark = pytest.mark.anyio
EVENTS = Talk().user("my number is 4711").bot("noted").events


def fail(*_: Any) -> Any:
    """A hook with a fault."""
    raise RuntimeError("hook is broken")


def maker(model: Any, **hooks: Any) -> ModelSummarizer:
    """A summariser with these hooks."""
    return ModelSummarizer(model, hooks=SummaryHooks(**hooks), **PLAIN)


async def test_before_a_call_text_and_former_summary_may_change() -> None:
    """What it gives back is asked; nothing given back changes nothing. What is covered stays the same."""

    async def redact(draft: Draft) -> Draft:
        assert draft.given.filter_key == "app"
        return replace(draft, text=draft.text.replace("4711", "***"), previous=draft.previous.lower())

    model = Summing()
    made = await maker(model, before=redact).summarize(given(EVENTS, key="app", previous=former("OLD")))
    assert model.asked == ["old|user: my number is ***\nbot: noted"]
    assert [event.id for event in made.covered] == ["e1", "e2"]
    await maker(model, before=lambda draft: None).summarize(given(EVENTS))
    assert model.asked[1] == "(none)|user: my number is 4711\nbot: noted"


async def test_before_a_call_events_may_change() -> None:
    """The text is made anew of them; covered are those that were given all the same."""

    def other(draft: Draft) -> Draft:
        events = tuple(event.model_copy(update={"messages": (Message.user("x"),)}) for event in draft.events[:1])
        return replace(draft, events=events)

    model = Summing()
    made = await maker(model, before=other).summarize(given(EVENTS))
    assert model.asked == ["(none)|user: x"]
    assert len(made.covered) == 2


async def test_a_text_in_the_place_of_a_draft_is_the_summary() -> None:
    """No model is asked, nothing is spent, and the report says so."""
    model = Summing()
    made = await maker(model, before=lambda draft: "mine").summarize(given(EVENTS))
    assert (made.text, made.mode, made.spent.calls, len(made.covered)) == ("mine", "custom", 0, 2)
    assert not model.requests


async def test_a_draft_that_grows_too_long_is_an_error() -> None:
    """The size is checked again after the hook: no call is made that can't fit."""
    model = Summing(window=1_000)
    with pytest.raises(SummaryError, match=r"'before' made the request for a summary \d+ tokens long; it may have 700"):
        await maker(model, before=lambda draft: replace(draft, text="x" * 900)).summarize(given(EVENTS))
    assert not model.requests


async def test_a_hook_sees_each_call_of_a_long_one() -> None:
    """Every portion has its own draft, with the events that it is of."""
    seen: list[list[str]] = []
    long = Talk()
    for number in range(4):
        long.turn(request_id=f"r{number}").user("u" * 40).bot("b" * 40)
    hook = SummaryHooks(before=lambda draft: seen.append([event.id for event in draft.events]))
    made = await ModelSummarizer(Summing(window=300), hooks=hook, **PLAIN).summarize(given(long.events))
    assert [id for ids in seen for id in ids] == [event.id for event in made.covered]
    assert len(seen) == 2


async def test_c046_the_text_of_the_hook_is_stored_and_the_boundary_stays() -> None:
    """After the call another text may take its place; a blank one doesn't."""

    async def after(input: SummaryInput, text: str) -> str:
        return f"{text} of {len(input.events)}"

    made = await maker(Summing(), after=after).summarize(given(EVENTS))
    assert (made.text, len(made.covered)) == ("S1 of 2", 2)
    assert (await maker(Summing(), after=lambda input, text: " ").summarize(given(EVENTS))).text == "S1"


@pytest.mark.parametrize("hook", ["before", "after"])
async def test_c046_a_hook_that_fails_and_aborts_leaves_no_summary(hook: str) -> None:
    """It says which hook and why, and what was spent until then."""
    with pytest.raises(SummaryError, match=f"hook '{hook}' .* failed: hook is broken") as caught:
        await maker(Summing(), abort=True, **{hook: fail}).summarize(given(EVENTS))
    assert caught.value.spent.calls == (hook == "after")


@pytest.mark.parametrize("hook", ["before", "after"])
async def test_a_hook_that_fails_is_left_out(hook: str, caplog: pytest.LogCaptureFixture) -> None:
    """Without abort it is logged, and what it was given is used."""
    model = Summing()
    made = await maker(model, **{hook: fail}).summarize(given(EVENTS))
    assert (made.text, model.asked) == ("S1", ["(none)|user: my number is 4711\nbot: noted"])
    assert "hook is broken" in caplog.text


async def test_a_hook_that_aborts_on_the_way_keeps_nothing() -> None:
    """Also where portions before it were summed up: that is what abort asks for."""
    calls = iter([None, None])
    long = Talk()
    for number in range(8):
        long.turn(request_id=f"r{number}").user("u" * 40).bot("b" * 40)
    hook = SummaryHooks(before=lambda draft: next(calls), abort=True)
    with pytest.raises(SummaryError, match="hook 'before'"):
        await ModelSummarizer(Summing(window=300), hooks=hook, **PLAIN).summarize(given(long.events))
