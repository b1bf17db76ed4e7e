"""Whatever the conversation and the budget: every call fits, and what is covered is a prefix with whole tool rounds."""

from __future__ import annotations

import re
from random import Random

import pytest
from support.random_sessions import random_events
from support.summing import BARE, CHARACTERS, Summing, former, given

from graphagent.errors import SummaryError
from graphagent.models.tokens import counter_for
from processors.rounds import match_rounds
from runner.summary.checks import AnyOf, EventsOver, TokensOver
from runner.summary.making import MIN_ROOM
from runner.summary.prefix import coverable, lines_of
from runner.summary.summarizer import ModelSummarizer

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("seed", range(400))
async def test_every_call_fits_and_no_round_is_parted(seed: int) -> None:
    """Random events, sizes, budgets, numbers of calls, recent events, answers that are too long or fail: no request is
    over the budget; what is covered is a prefix that parts no round; nothing is in two requests, and all of what is
    covered is in one."""
    random = Random(seed)
    events = random_events(random)
    for at, event in enumerate(events):
        grown = tuple(
            message.model_copy(update={"content": f"{message.text or 'x'} #{at}# " + "y" * random.choice([0, 9, 200])})
            for message in event.messages
        )
        events[at] = event.model_copy(update={"messages": grown})
    counter = random.choice([CHARACTERS, counter_for("gpt-4o")])
    skip = random.choice([0, 0, 1, 3])
    budget = random.choice([40, 90, 200, 500, 5_000])
    answers = random.choice([["S"], ["S", ""], ["s" * 300]])
    model = Summing(lambda request: random.choice(answers), window=10**6)
    maker = ModelSummarizer(
        model,
        prompt=BARE,
        system_prompt="",
        max_words=None,
        counter=counter,
        input_budget=budget,
        max_calls=random.choice([1, 2, 12]),
        skip_recent=skip,
    )
    input = given(events, previous=random.choice([None, former("OLD"), former("o" * 400)]), force=True)
    try:
        covered = (await maker.summarize(input)).covered
    except SummaryError:
        covered = ()
    else:
        may = coverable(input.events, skip=skip, previous=input.previous is not None)
        assert covered or not may.events
    assert covered == input.events[: len(covered)]
    assert all(counter.request(request) <= budget for request in model.requests)
    lines = lines_of(input.events)
    for round_ in match_rounds(lines).rounds.values():
        sides = {lines[at].place < len(covered) for at in (round_.at, *round_.in_call_order)}
        assert len(sides) == 1
    if "" not in answers and budget >= 200:
        asked = "".join(text.partition("|")[2] for text in model.asked)
        marks = re.findall(r"#(\d+)#", asked)
        doubled = {str(lines[at].place) for at in match_rounds(lines).strays}
        if "left out" not in asked:
            assert {str(at) for at, _ in enumerate(covered)} - set(marks) <= doubled


@pytest.mark.parametrize("seed", range(100))
async def test_what_is_due_can_be_made(seed: int) -> None:
    """Where a check says that a summary is due there is something to cover: at least one event, or nothing is asked."""
    random = Random(seed)
    skip = random.choice([0, 1, 3])
    maker = ModelSummarizer(
        Summing(), checks=[AnyOf(EventsOver(random.randrange(4)), TokensOver(30))], counter=CHARACTERS, skip_recent=skip
    )
    input = given(random_events(random), previous=random.choice([None, former()]))
    if (await maker.due(input)).fired:
        assert (await maker.summarize(input)).covered
    assert MIN_ROOM > 0
