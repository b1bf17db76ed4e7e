"""The summariser that asks a model: what it asks, what it covers, what it does when the model can't."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.summing import KEY, PLAIN, Summing, former, given
from support.talks import Talk

from graphagent.agents.model import Delta, GenerationConfig
from graphagent.errors import ModelError, SummaryError
from graphagent.ledger import TokenUsage
from graphagent.models import ScriptedModel
from graphagent.models.tokens import TokenCounter
from runner.summary.checks import EventsOver
from runner.summary.dynamic import DynamicSummarizer
from runner.summary.summarizer import ModelSummarizer
from runner.summary.values import Spent, SummaryInput

pytestmark = pytest.mark.anyio


def talk() -> Talk:
    """Two turns of four events."""
    made = Talk(request_id="r0").user("aaaa").bot("bbbb")
    return made.turn(request_id="r1").user("cccc").bot("dddd")


def too_long() -> ModelError:
    """What a provider says of a request that is too long."""
    return ModelError("maximum context length is 7", kind="context_length")


def maker(model: Any, **options: Any) -> ModelSummarizer:
    """A summariser whose requests are the texts only."""
    return ModelSummarizer(model, **(PLAIN | options))


async def test_the_events_after_the_former_summary_are_summed_up() -> None:
    """One request with both apart; the answer covers all events, and what it took is told."""
    model = ScriptedModel([" the sum \n"], usage=TokenUsage(input_tokens=50, output_tokens=5, cached_tokens=20))
    config = GenerationConfig(temperature=0.0)
    made = await maker(model, config=config).summarize(given(talk().events, previous=former()))
    assert made.text == "the sum"
    assert [event.id for event in made.covered] == ["e1", "e2", "e3", "e4"]
    assert (made.mode, made.spent, made.note) == ("standalone", Spent(1, 50, 5, 20), "")
    [request] = model.requests
    assert [message.text for message in request.messages] == ["BEFORE|user: aaaa\nbot: bbbb\nuser: cccc\nbot: dddd"]
    assert (request.tools, request.output_schema, request.config) == ((), None, config)


async def test_what_a_call_took_is_estimated_if_the_model_does_not_say() -> None:
    """By the counter: the whole request, and the answer with its reasoning."""
    made = await maker(ScriptedModel([{"content": "sum", "reasoning": "hm"}])).summarize(given(talk().events))
    assert made.spent == Spent(1, len("(none)|user: aaaa\nbot: bbbb\nuser: cccc\nbot: dddd"), 5, 0)


async def test_c027_nothing_to_sum_up_is_an_error() -> None:
    """Forced without events and without a former summary, or with events that have no text: no model is asked."""
    model = ScriptedModel([])
    for events in ((), Talk().user("").events):
        with pytest.raises(SummaryError, match=r"session 's1'") as caught:
            await maker(model).summarize(given(events, force=True))
        assert not caught.value.spent or caught.value.spent.calls == 0
    assert not model.requests


async def test_a_forced_one_without_events_works_over_the_former() -> None:
    """One call with the former summary only; nothing more is covered."""
    model = Summing()
    made = await maker(model).summarize(given((), previous=former("OLD"), force=True))
    assert (made.text, made.covered, model.asked) == ("S1", (), ["OLD|(none)"])


async def test_C169_a_call_that_waits_is_not_summed_up() -> None:
    """The text ends before it, and so does what is covered; the note names the event."""
    model = Summing()
    made = await maker(model).summarize(given(talk().user("delete it").bot("sure?", "c1").events))
    assert [event.id for event in made.covered][-1] == "e5"
    assert "c1" not in model.asked[0]
    assert made.note == "a tool round is open from event 'e6' on"


@pytest.mark.parametrize("failure", [too_long(), "", {"reasoning": "hm"}], ids=["too long", "empty", "thoughts only"])
async def test_c044_one_more_try_with_half_the_budget(failure: Any) -> None:
    """The provider finds the request too long, or answers nothing: the second one is half as long at most, and the
    rest comes in further ones; both are paid for."""
    long = Talk()
    for number in range(8):
        long.turn(request_id=f"r{number}").user("u" * 20).bot("b" * 20)
    answers = iter([failure])
    model = Summing(lambda request: next(answers, "sum"), window=600)
    made = await maker(model).summarize(given(long.events))
    assert len(model.asked[0]) > 210
    assert all(len(text) <= 210 for text in model.asked[1:])
    assert len(made.covered) == 16
    assert made.spent.calls == len(model.asked) > 2


@pytest.mark.parametrize("failure", [too_long(), ""], ids=["too long", "empty"])
async def test_c044_a_second_failure_is_an_error(failure: Any) -> None:
    """It says why and what was spent, and the input was not touched."""
    input = given(talk().events, previous=former())
    model = Summing(lambda request: failure)
    with pytest.raises(SummaryError, match="session 's1'") as caught:
        await maker(model).summarize(input)
    assert (len(model.requests), caught.value.spent.calls) == (2, 2)
    assert input == given(talk().events, previous=former())


@pytest.mark.parametrize(
    ("item", "told"),
    [
        (ModelError("boom"), "boom"),
        (TimeoutError("slow"), "TimeoutError: slow"),
        ({"content": "half a", "finish_reason": "length"}, "cut at its token limit"),
        (["half a", Delta(finish_reason="incomplete")], "ended before its end"),
        ({"content": "", "finish_reason": "content_filter"}, "stopped by the provider's filter"),
        ({"tool_calls": [{"name": "rm", "arguments": {}}]}, "asks for tools"),
    ],
    ids=["error", "own error", "length", "incomplete", "filter", "tools"],
)
async def test_other_failures_are_not_tried_again(item: Any, told: str) -> None:
    """A part of a summary is none: what stood in the rest would be lost. The model tries again by itself."""
    model = Summing(lambda request: item)
    with pytest.raises(SummaryError, match=told) as caught:
        await maker(model).summarize(given(talk().events))
    assert len(model.requests) == 1
    assert caught.value.spent.calls == 1


async def test_c045_a_conversation_that_is_too_long_is_summed_up_to_a_safe_place() -> None:
    """One call allowed: it has as many whole turns as fit, never a part of a tool round, and only they are covered."""
    made = Talk(request_id="r0").user("u" * 30).bot("", "c1").results("c1", text="r" * 60)
    made.bot("b" * 30).turn(request_id="r1").user("u" * 50).bot("b" * 60)
    model = Summing(window=360)  # 252 tokens
    found = await maker(model, max_calls=1).summarize(given(made.events))
    assert [event.id for event in found.covered] == ["e1", "e2", "e3", "e4"]
    assert len(model.asked[0]) <= 252
    assert "enough for 4 of 6 event(s)" in found.note
    small = Summing(window=150)  # 105 tokens: the tool round alone is too long
    assert [e.id for e in (await maker(small, max_calls=1).summarize(given(made.events))).covered] == ["e1"]


async def test_C189_a_conversation_over_the_limit_is_summed_up_in_pieces() -> None:
    """600,000 characters of Chinese for a model of 128,000 tokens: several calls that each fit, each with the summary
    so far, and all of it is covered."""
    made, sentence = Talk(), "证书将于下个月到期需要更新" * 77
    for number in range(300):
        made.turn(request_id=f"r{number}").user(sentence).bot(sentence)
    model = Summing(lambda request: f"第{len(model.requests)}份摘要", window=128_000)
    summarizer = ModelSummarizer(model)
    found = await summarizer.summarize(given(made.events))
    counter = summarizer._with.counter
    sizes = [counter.request(request) for request in model.requests]
    assert max(sizes) <= 0.7 * 128_000
    assert len(sizes) == found.spent.calls >= 5
    assert len(found.covered) == 600
    assert all(f"第{at}份摘要" in text for at, text in enumerate(model.asked[1:], 1))
    assert sum(text.count("证") for text in model.asked) == 600 * 77


async def test_C189_one_message_over_the_limit_is_summed_up_in_pieces() -> None:
    """All of its text goes in, piece by piece, and it is covered when the last one is; then the talk goes on."""
    words = " ".join(f"w{number}" for number in range(400))
    model = Summing(window=600)
    found = await maker(model).summarize(given(Talk().user(words).bot("short").events))
    assert len(found.covered) == 2
    assert all(len(text) <= 420 for text in model.asked)
    assert [w for text in model.asked for w in text.split("|")[1].split() if w[0] == "w"] == words.split()


async def test_what_is_far_too_long_is_shortened_and_said_so() -> None:
    """More than all calls together can take, at the very beginning: its middle is left out, marked, and noted, so that
    the session's summary goes on."""
    model = Summing(window=300)
    found = await maker(model, max_calls=3).summarize(given(Talk().user("x" * 5_000).bot("short").events))
    assert found.covered
    assert len(model.asked) <= 3
    assert any("characters left out" in text for text in model.asked)
    assert "'e1' and those of its tool round were shortened" in found.note


async def test_a_summary_that_grows_on_the_way_leaves_no_message_half_done() -> None:
    """It takes half of the room from the second piece on, so that the calls don't do for the rest: the last one takes
    what is left, shortened, and the message is covered."""
    model = Summing(lambda request: "s" * 100, window=300)
    found = await maker(model, max_calls=4).summarize(given(Talk().user("x" * 600).events))
    assert (len(model.asked), len(found.covered)) == (4, 1)
    assert "characters left out" in model.asked[3]
    assert "shortened" in found.note
    talked = await maker(model, max_calls=5).summarize(given(Talk().user("hi").bot("ho").user("x" * 600).events))
    assert len(talked.covered) == 2


async def test_what_needs_more_calls_than_are_left_waits_for_the_next_summary() -> None:
    """What was summed up before it is covered; the next summary begins with it and has all its calls."""
    made = talk().user("x" * 600)
    model = Summing(window=300)
    first = await maker(model, max_calls=4).summarize(given(made.events))
    assert [event.id for event in first.covered] == ["e1", "e2", "e3", "e4"]
    rest = given(made.events[4:], previous=former(first.text))
    assert (await maker(model, max_calls=4).summarize(rest)).covered == rest.events


async def test_a_failure_on_the_way_keeps_what_was_made() -> None:
    """The second of several calls fails: the first one's summary stands for what went into it, and the note says why
    it isn't all."""
    answers: Any = iter(["S1", ModelError("boom")])
    made = Talk()
    for number in range(4):
        made.turn(request_id=f"r{number}").user("u" * 40).bot("b" * 40)
    found = await maker(Summing(lambda request: next(answers), window=300)).summarize(given(made.events))
    assert (found.text, len(found.covered)) == ("S1", 4)
    assert "made in part" in found.note
    assert "boom" in found.note
    assert found.spent.calls == 2


async def test_half_a_message_never_counts() -> None:
    """A failure after the first piece of a long message: the summary doesn't have it, and it isn't covered."""
    answers: Any = iter(["S1", "S2 with half", ModelError("boom")])
    made = talk().user("x" * 500)
    found = await maker(Summing(lambda request: next(answers), window=300)).summarize(given(made.events))
    assert (found.text, len(found.covered)) == ("S1", 4)


async def test_a_former_summary_gives_way_only_if_it_takes_more_than_half() -> None:
    """Nothing else has what it says, so rather the events go in several calls; an enormous one loses its middle."""
    model = Summing(window=1_000)  # 700 tokens
    kept = "k" * 340
    await maker(model).summarize(given(Talk().user("u" * 500).events, previous=former(kept)))
    assert all(text.startswith(kept) for text in model.asked[:1])
    model = Summing(window=1_000)
    found = await maker(model).summarize(given(Talk().user("u" * 50).events, previous=former("A" * 300 + "Z" * 900)))
    assert model.asked[0].startswith("AAA")
    assert "characters left out" in model.asked[0]
    assert "ZZZ|user" in model.asked[0]
    assert len(model.asked[0]) <= 700
    assert found.note == "the former summary was shortened"


async def test_a_prompt_that_leaves_no_room_is_an_error_before_any_call() -> None:
    """The default prompt in a window of 300 tokens: it says how much there is, and how much is taken."""
    model = Summing(window=300)
    with pytest.raises(SummaryError, match=r"may have 210 tokens and takes \d+ without any conversation"):
        await ModelSummarizer(model).summarize(given(talk().events))
    assert not model.requests


async def test_the_providers_own_limit_counts_if_it_is_lower() -> None:
    """The lower one of it and the share of the window; a model without a known window has 8,192 tokens."""
    assert maker(Summing(window=1_000), input_budget=500)._with.budget == 500
    assert maker(Summing(window=1_000), input_budget=900)._with.budget == 700
    assert maker(Summing(window=None))._with.budget == 5_734


async def test_a_model_that_hangs_is_not_waited_for() -> None:
    """After the time that a call may take the summary fails, and the model's stream is closed."""
    closed = anyio.Event()

    class Hanging:
        name, context_window = "hanging", 9_000

        async def stream(self, request: Any) -> Any:
            try:
                await anyio.sleep_forever()
                yield Delta()
            finally:
                closed.set()

    with pytest.raises(SummaryError, match=r"took longer than 0\.05 s"):
        await maker(Hanging(), timeout=0.05).summarize(given(talk().events))
    assert closed.is_set()


async def test_cancelling_is_not_an_error_of_the_summary() -> None:
    """The scope that was cancelled ends; no SummaryError comes of it."""
    with anyio.move_on_after(0.05) as scope:
        await maker(ScriptedModel(["late"], delay=30.0)).summarize(given(talk().events))
    assert scope.cancelled_caught


async def test_a_counter_that_fails_is_an_error_of_the_summary() -> None:
    """Not of whoever asked for it: it is wrapped, and says what it was."""

    def broken(text: str) -> float:
        raise RuntimeError("no tokenizer")

    with pytest.raises(SummaryError, match="RuntimeError: no tokenizer"):
        await maker(Summing(), counter=TokenCounter(broken)).summarize(given(talk().events))


async def test_several_sessions_at_the_same_time() -> None:
    """One summariser keeps nothing of a call: inputs that run side by side don't mix."""
    model = Summing(lambda request: request.messages[-1].text.upper())
    summarizer = maker(model)
    found: dict[int, str] = {}

    async def one(number: int) -> None:
        found[number] = (await summarizer.summarize(given(Talk().user(f"n{number}").events))).text

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(one, number)
    assert found == {number: f"(NONE)|USER: N{number}" for number in range(5)}


async def test_a_summariser_for_each_session() -> None:
    """The resolver says which; without one nothing is due, and asking all the same is an error."""
    mine = maker(Summing(), checks=[EventsOver(2)])

    async def resolve(input: SummaryInput) -> ModelSummarizer | None:
        return mine if input.key == KEY else None

    dynamic = DynamicSummarizer(resolve)
    input = given(talk().events)
    assert (await dynamic.due(input)).name == "events_over"
    assert (await dynamic.summarize(input)).text == "S1"
    other = input._replace(key=KEY._replace(session="s2"))
    assert (await dynamic.due(other)).name == "no_summarizer"
    with pytest.raises(SummaryError, match="no dynamic summariser was resolved for session 's2'"):
        await dynamic.summarize(other)


async def test_a_resolver_that_fails_makes_nothing_due(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged; asking for the summary all the same names the error."""
    dynamic = DynamicSummarizer(lambda input: [][0])
    assert not (await dynamic.due(given(talk().events))).fired
    assert "resolver failed" in caplog.text
    with pytest.raises(SummaryError, match="list index out of range"):
        await dynamic.summarize(given(talk().events))
