"""A summary that costs more than it saves is not made."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import pytest
from support.summing import KEY, Summing, former, given, numbered, seen
from support.talks import Talk

from graphagent.ledger import Boundary, Summary
from graphagent.models.tokens import SIMPLE, TokenCounter
from runner.summary.checks import AnyOf, ContextOver, triggered
from runner.summary.estimate import FULL_OR_WORTH_IT, PaysBack, requests_so_far
from runner.summary.summarizer import ModelSummarizer
from runner.summary.values import SummaryContext, SummaryInput

pytestmark = pytest.mark.anyio
WORD = TokenCounter(lambda text: len(text.split()), overhead=4)
"""A token is a word."""


def dialogue(turns: int, words: int) -> Talk:
    """So many turns; question and answer have so many words together."""
    talk = Talk()
    for turn in range(turns):
        talk.turn(request_id=f"r{turn}", invocation_id=f"i{turn}")
        talk.user("ask " * (words // 2)).bot("say " * (words // 2))
    return talk


async def test_it_pays_if_enough_requests_follow() -> None:
    """The same conversation: one request more saves less than the call takes, three save more."""
    events = dialogue(8, 500).events
    for expected, fired in ((0.0, False), (1.0, False), (3.0, True)):
        trigger = await triggered([PaysBack()], seen(given(events, expected_requests=expected), counter=WORD))
        assert (trigger.fired, trigger.name, trigger.metric) == (fired, "pays_back", "tokens")


async def test_a_short_conversation_never_pays() -> None:
    """Below the floor it isn't worth a thought, whatever is expected."""
    trigger = await triggered([PaysBack()], seen(given(dialogue(2, 500).events, expected_requests=99), counter=WORD))
    assert (trigger.fired, trigger.name, trigger.threshold) == (False, "pays_back_floor", 2_000)


async def test_prices_decide_too() -> None:
    """Where reading is nearly free because of a cache, and writing dear, the same summary doesn't pay."""
    input = given(dialogue(8, 500).events, expected_requests=3)
    assert (await triggered([PaysBack()], seen(input, counter=WORD))).fired
    assert not (await triggered([PaysBack(reading=0.1, writing=4)], seen(input, counter=WORD))).fired


async def test_a_counter_that_fails_is_no_reason(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged and the check doesn't pass."""
    broken = TokenCounter(lambda text: 1 / 0)
    assert not (await triggered([PaysBack()], seen(given(dialogue(8, 500).events), counter=broken))).fired
    assert "could not be counted" in caplog.text


@pytest.mark.parametrize(
    ("turns", "tokens", "skip", "fired", "name"),
    [
        pytest.param(40, 9_000, 10, True, "pays_back", id="worth it"),
        pytest.param(40, 9_000, 0, False, "context_over", id="worth it, but nothing stays in view"),
        pytest.param(3, 70_000, 2, True, "context_over", id="full"),
        pytest.param(3, 70_000, 0, True, "context_over", id="full, nothing stays in view"),
        pytest.param(3, 1_200, 2, False, "context_over", id="short"),
    ],
)
async def test_when_a_summary_is_due_by_default(turns: int, tokens: int, skip: int, fired: bool, name: str) -> None:
    """When more than half of the window is full, and where the newest events stay in view also as soon as it pays:
    else the last answer would soon be gone from a model's sight for the sake of some tokens."""
    maker = ModelSummarizer(Summing(), counter=WORD, skip_recent=skip)
    trigger = await maker.due(given(dialogue(turns, 200).events, window=128_000, request_tokens=tokens))
    assert (trigger.fired, trigger.name) == (fired, name)
    named = ModelSummarizer(Summing(), checks=[FULL_OR_WORTH_IT], counter=WORD, skip_recent=skip)
    assert (await named.due(given(dialogue(40, 200).events, window=128_000, request_tokens=9_000))).fired


def test_requests_before_the_last_summary_are_guessed() -> None:
    """Ten events from number 91 on show five answers: about fifty in the session; without numbers only those seen."""
    events = dialogue(5, 2).events
    assert requests_so_far(numbered(events, first=91)) == pytest.approx(50)
    assert requests_so_far(events) == 5
    assert requests_so_far(()) == 0


class Bill(NamedTuple):
    """Tokens of a conversation: of all requests without summaries, with them, of the calls for them."""

    without: int
    with_summaries: int
    calls: int


async def bill(talk: Talk, size: int, counter: TokenCounter, pays: PaysBack, keep: int = 0) -> Bill:
    """What a conversation costs with a summariser that asks whether it pays, a summary having `size` tokens."""
    model = Summing(lambda request: "word " * size)
    maker = ModelSummarizer(model, checks=[AnyOf(ContextOver(), pays)], counter=counter, skip_recent=keep)
    without = shown = calls = covered = 0
    previous: Summary | None = None
    events = numbered(talk.events)
    for at, event in enumerate(events):
        if event.is_user:
            held = 0 if previous is None else counter.text(previous.text)
            without += counter.messages(m for one in events[: at + 1] for m in one.messages)
            shown += held + counter.messages(m for one in events[covered : at + 1] for m in one.messages)
            continue
        input = SummaryInput(KEY, "", previous, events[covered : at + 1], SummaryContext(window=128_000))
        if (await maker.due(input)).fired:
            made = await maker.summarize(input)
            calls += made.spent.input_tokens + made.spent.output_tokens
            covered += len(made.covered)
            boundary = Boundary(seq=made.covered[-1].seq, cutoff_at=1.0)
            previous = Summary(text=made.text, boundary=boundary, updated_at=1.0)
    return Bill(without, shown, calls)


@pytest.mark.parametrize("floor", [0, 2_000])
@pytest.mark.parametrize("seed", range(20))
async def test_no_short_dialogue_costs_more_with_summaries(seed: int, floor: int) -> None:
    """Up to seven turns and 1,200 tokens, as in public sets, each summary's call counted: never dearer than without,
    also if only the estimate says so and not the floor."""
    random = Random(seed)
    talk = Talk()
    for turn in range(random.randint(2, 7)):
        talk.turn(request_id=f"r{turn}", invocation_id=f"i{turn}")
        talk.user("ask " * random.randint(5, 40)).bot("say " * random.randint(20, 130))
    found = await bill(talk, random.choice([64, 128, 400]), SIMPLE, PaysBack(floor))
    assert found.with_summaries + found.calls <= found.without


async def test_a_long_session_costs_a_fifth_or_less() -> None:
    """A hundred turns with the last five in view: at least 80 % saved, the calls counted."""
    found = await bill(dialogue(100, 500), 400, WORD, PaysBack(), keep=10)
    assert found.with_summaries + found.calls <= 0.2 * found.without


def test_the_former_summary_is_worth_what_it_takes() -> None:
    """It is read by the call and by each later request, and the new one takes its place."""
    input = given(dialogue(8, 500).events, previous=former("word " * 400), expected_requests=2)
    plain = given(dialogue(8, 500).events, expected_requests=2)
    _, saved, spent = PaysBack().estimated(seen(input, counter=WORD))
    _, saved_before, spent_before = PaysBack().estimated(seen(plain, counter=WORD))
    assert spent - spent_before == 400
    assert saved - saved_before > 2 * 400
