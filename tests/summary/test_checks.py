"""When a summary is due, and what the report says."""

from __future__ import annotations

from typing import Any

import pytest
from support.summing import CHARACTERS, PLAIN, Summing, former, given, seen
from support.talks import Talk

from graphagent.errors import AgentError
from graphagent.models.tokens import TokenCounter
from runner.summary.checks import AllOf, AnyOf, ContextOver, EventsOver, SummaryCheck, TimeOver, TokensOver, triggered
from runner.summary.summarizer import ModelSummarizer
from runner.summary.values import SummaryInput, Trigger

pytestmark = pytest.mark.anyio


class At:
    """A clock that stands still."""

    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def talk(count: int, **fields: Any) -> Talk:
    """So many events in turn, `e1` first."""
    made = Talk(**fields)
    for number in range(count):
        made.user("hi") if number % 2 == 0 else made.bot("ho")
    return made


async def ask(input: SummaryInput, *checks: Any, **options: Any) -> Trigger:
    """What a summariser with these checks says."""
    return await ModelSummarizer(Summing(), checks=checks, **(PLAIN | options)).due(input)


async def one(check: SummaryCheck, input: SummaryInput, **options: Any) -> bool:
    """Whether a check passes."""
    return (await triggered([check], seen(input, **options))).fired


async def test_c036_more_events_than_the_threshold() -> None:
    """Three of three: not due; four: due; three after a former summary, which counts as one: due."""
    assert not await one(EventsOver(3), given(talk(3).events))
    assert await one(EventsOver(3), given(talk(4).events))
    assert await one(EventsOver(3), given(talk(3).events, previous=former()))


async def test_c036_events_that_are_left_for_later_count() -> None:
    """Five events of which two stay: four is passed."""
    trigger = await ask(given(talk(5).events), EventsOver(4), skip_recent=2)
    assert (trigger.fired, trigger.value, trigger.threshold, trigger.unit) == (True, 5, 4, "events")


async def test_c037_the_whole_session_counts_its_root_agent_only() -> None:
    """Events of 'app/sub' don't count for it, blank ones and those of 'app' do; a branch counts itself and below."""
    made = talk(2, filter_key="app").turn(filter_key="app/sub")
    made.user("a").bot("b").turn(filter_key="").user("c")
    assert not await one(EventsOver(3), given(made.events))
    assert await one(EventsOver(2), given(made.events))
    below = talk(2, filter_key="app/sub").turn(filter_key="app/sub/x").user("c")
    assert await one(EventsOver(2), given(below.events, key="app/sub"))
    assert not await one(EventsOver(3), given(made.events, scope="app/sub"))
    assert await one(EventsOver(1), given(made.events, scope="app/sub"))


@pytest.mark.parametrize(
    ("window", "threshold"), [(100_000, 50_000), (3_000, 2_000), (None, 4_096)], ids=["half", "floor", "unknown"]
)
async def test_c038_more_than_a_share_of_the_context(window: int | None, threshold: int) -> None:
    """Half of the window, at least 2,000, of an unknown model 4,096: that many don't do, one more does."""
    for tokens, fired in ((threshold, False), (threshold + 1, True)):
        trigger = await triggered([ContextOver()], seen(given(talk(1).events, window=window, request_tokens=tokens)))
        assert (trigger.fired, trigger.value, trigger.threshold) == (fired, tokens, threshold)
        assert (trigger.name, trigger.metric, trigger.window) == ("context_over", "context", window or 8_192)
        assert trigger.ratio == 0.5


async def test_c038_where_the_window_comes_from() -> None:
    """The run, the agent's model, the list of models, then the given fallback, then the summariser's own model."""

    async def window(check: ContextOver, own: int | None = 60_000, **context: Any) -> int:
        model = Summing(window=own)
        return (await ModelSummarizer(model, checks=[check], **PLAIN).due(given(talk(1).events, **context))).window

    agents = Summing(window=30_000)
    listed = Summing(window=None)
    listed.name = "gpt-4o"
    assert await window(ContextOver(), window=20_000, model=agents) == 20_000
    assert await window(ContextOver(), model=agents) == 30_000
    assert await window(ContextOver(), model=listed) == 128_000
    assert await window(ContextOver()) == 60_000
    assert await window(ContextOver(fallback=5_000)) == 5_000
    assert await window(ContextOver(), own=None) == 8_192


async def test_the_texts_are_counted_where_no_request_is_known() -> None:
    """The lines, the reasoning and the former summary; of the events that would be covered only."""
    made = Talk().user("12345").bot("12345", reasoning="123").user("later")
    text = "user: 12345\nbot: 12345"
    input = given(made.events, previous=former("1234567"))
    trigger = await triggered([TokensOver(0)], seen(input, skip=1))
    assert trigger.value == len(text) + 3 + 7
    assert not await one(TokensOver(len(text) + 10), input, skip=1)
    assert await one(TokensOver(4_000), given(made.events, request_tokens=4_001))


async def test_c039_a_pause_before_the_turn() -> None:
    """From the last event of the request before to the turn's start; what the clock says doesn't matter."""
    made = talk(2, request_id="r1").turn(request_id="r2").user("again", timestamp=100.0)
    turn = {"request_id": "r2", "request_started_at": 99.0}
    assert await one(TimeOver(96.9), given(made.events, **turn), clock=At(1e9))
    assert not await one(TimeOver(97.0), given(made.events, **turn), clock=At(1e9))


async def test_c039_no_pause_within_a_request() -> None:
    """A request that goes on with itself, or into which the summary reaches, has none before it."""
    own = talk(2, request_id="r2").user("again", timestamp=100.0)
    turn = {"request_id": "r2", "request_started_at": 99.0}
    assert not await one(TimeOver(1), given(own.events, **turn), clock=At(1e9))
    only = Talk(request_id="r2").user("again", timestamp=100.0)
    assert not await one(TimeOver(1), given(only.events, previous=former(at=99.0), **turn), clock=At(1e9))
    assert await one(TimeOver(48), given(only.events, previous=former(at=50.0), **turn), clock=At(1e9))
    assert not await one(TimeOver(0), given(only.events, **turn), clock=At(1e9))


async def test_c039_outside_of_a_turn_the_pause_goes_on() -> None:
    """Without a request it is measured from the last event to now."""
    assert await one(TimeOver(7), given(talk(2).events), clock=At(10.0))
    assert not await one(TimeOver(8), given(talk(2).events), clock=At(10.0))


async def test_c040_one_check_that_fails_decides() -> None:
    """All must pass; the report shows the one that doesn't, and none behind it is asked."""
    asked = []
    trigger = await ask(
        given(talk(4).events), EventsOver(1), TokensOver(9_999), lambda input: asked.append(input) is None
    )
    assert (trigger.fired, trigger.name, trigger.metric) == (False, "tokens_over", "tokens")
    assert [(check.name, check.passed) for check in trigger.checks] == [("events_over", True), ("tokens_over", False)]
    assert not asked


async def test_no_checks_at_all() -> None:
    """Then every new event makes a summary due."""
    assert await ask(given(talk(1).events)) == Trigger(True, "always")


async def test_all_and_any_can_be_put_together() -> None:
    """One of several passes, also within all; an empty one of any never does."""
    many, few = EventsOver(9), EventsOver(1)
    input = given(talk(4).events)
    assert (await ask(input, AnyOf(many, few))).fired
    assert not (await ask(input, AnyOf(many, AllOf(few, many)))).fired
    assert (await ask(input, AllOf(few, AnyOf(many, AllOf())))).fired
    assert not (await ask(input, AnyOf())).fired


async def test_the_most_telling_reason_is_told() -> None:
    """Context before tokens before events before time, whatever the order; of those that decided it only."""
    input = given(talk(4).events, request_tokens=5_000, request_started_at=1e6, request_id="r9")
    checks = [TimeOver(1), EventsOver(1), TokensOver(1), ContextOver()]
    assert (await ask(input, *checks, lambda input: True)).metric == "context"
    assert (await ask(input, AnyOf(*checks[:3]))).metric == "tokens"
    assert (await ask(input, AnyOf(*checks[:2]))).metric == "events"
    assert (await ask(input, AnyOf(TimeOver(1), AllOf(ContextOver(), EventsOver(99))))).metric == "time"


async def test_functions_are_checks() -> None:
    """Plain or async, of the input; what they raise is not hidden."""

    async def has_many(input: SummaryInput) -> bool:
        return len(input.events) > 3

    trigger = await ask(given(talk(4).events), has_many)
    assert (trigger.fired, trigger.name, trigger.metric) == (True, "has_many", "custom")
    assert not (await ask(given(talk(3).events), has_many)).fired
    with pytest.raises(ZeroDivisionError):
        await ask(given(talk(1).events), lambda input: bool(1 // 0))


@pytest.mark.parametrize("check", [TokensOver(0), ContextOver()], ids=["tokens", "context"])
async def test_a_counter_that_fails_passes_nothing(check: SummaryCheck, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and no summary is due; a check that counts nothing works on."""

    def broken(text: str) -> float:
        raise RuntimeError("no tokenizer")

    counter = TokenCounter(broken)
    trigger = await triggered([check], seen(given(talk(4).events), counter=counter))
    assert (trigger.fired, trigger.name) == (False, trigger.checks[0].name)
    assert "could not count tokens" in caplog.text
    assert (await triggered([AnyOf(check, EventsOver(1))], seen(given(talk(4).events), counter=counter))).fired


async def test_nothing_to_sum_up_is_never_due() -> None:
    """No events, events without text, or only such as are left for later: no check is asked."""
    blank = Talk().user("").bot("")
    assert (await ask(given(()))).name == "no_content"
    assert (await ask(given(blank.events))).name == "no_content"
    assert (await ask(given(talk(2).events), skip_recent=2)).name == "held_back"
    assert (await ask(given(Talk().bot("", "c1").events))).name == "held_back"


def test_options_that_can_not_be_are_refused() -> None:
    """Ratios outside of (0, 1], numbers below nothing: at once, naming check and option."""
    for make in (
        lambda: ContextOver(0.0),
        lambda: ContextOver(1.1),
        lambda: ContextOver(floor=-1),
        lambda: ContextOver(fallback=0),
        lambda: EventsOver(-1),
        lambda: TokensOver(-1),
        lambda: TimeOver(-1),
        lambda: ModelSummarizer(Summing(), max_calls=0),
        lambda: ModelSummarizer(Summing(), input_budget=0),
        lambda: ModelSummarizer(Summing(), checks="tokens"),  # type: ignore[arg-type]
    ):
        with pytest.raises(AgentError, match=r"\(\w+"):
            make()
    assert ContextOver(1.0).ratio == 1.0
    assert CHARACTERS.text("abc") == 3
