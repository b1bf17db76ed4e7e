"""Summaries behind the agent's own request, for the sake of the provider's prompt cache."""

from __future__ import annotations

from typing import Any

import pytest
from support.summing import PLAIN, Summing, given
from support.talks import Talk

from graphagent.agents.model import GenerationConfig, ModelRequest, ToolSpec
from graphagent.errors import ModelError, SummaryError
from graphagent.ledger import Event
from graphagent.messages import Message
from runner.summary.prompt import ForkPrompt
from runner.summary.summarizer import ModelSummarizer

pytestmark = pytest.mark.anyio
TALK = Talk().user("look").bot("", "c1").results("c1", text="r" * 300).bot("found it").user("thanks")
ALL = frozenset(event.id for event in TALK.events)
TOOL = ToolSpec("tool_c1", "d" * 200, {"type": "object"})
ASK = ForkPrompt("SUM UP", max_words=None)


def parent(events: Any = TALK.events, **fields: Any) -> ModelRequest:
    """The agent's request: instructions, and the conversation as it stands."""
    messages = (Message.system("be kind"), *(message for event in events for message in event.messages))
    return ModelRequest(messages, **({"tools": (TOOL,), "config": GenerationConfig(temperature=0.3)} | fields))


def maker(model: Any, **options: Any) -> ModelSummarizer:
    """A summariser that forks."""
    return ModelSummarizer(model, fork=ASK, **(PLAIN | options))


def asked(request: ModelRequest | None, ids: frozenset[str] = ALL, events: Any = TALK.events, **context: Any) -> Any:
    """An input with that request."""
    return given(events, parent=request, parent_events=ids, **context)


async def test_c054_a_fork_is_the_parents_request_and_one_message() -> None:
    """Messages, tools and parameters as they were, the instruction behind them; the form of an answer is gone."""
    model = Summing()
    request = parent(output_schema={"type": "object"}, tool_choice="tool_c1")
    made = await maker(model).summarize(asked(request))
    assert (made.text, made.mode, len(made.covered)) == ("S1", "cache_safe_fork", 5)
    [sent] = model.requests
    assert sent.messages == (*request.messages, Message.user("SUM UP"))
    assert (sent.tools, sent.config, sent.output_schema, sent.tool_choice) == ((TOOL,), request.config, None, None)


async def test_c054_without_a_parent_the_text_is_summed_up() -> None:
    """The report says standalone, and the note why."""
    made = await maker(Summing()).summarize(asked(None))
    assert (made.mode, made.note) == ("standalone", "no fork: there is no request to fork")
    assert (await ModelSummarizer(Summing(), **PLAIN).summarize(asked(parent()))).mode == "standalone"


async def test_only_what_the_request_shows_is_covered() -> None:
    """Up to the first event that it doesn't show, tool rounds whole; if that is nothing, the text is summed up."""
    made = await maker(Summing()).summarize(asked(parent(), ALL - {"e4"}))
    assert ([event.id for event in made.covered], made.note) == (
        ["e1", "e2", "e3"],
        "the request shows 3 of 5 event(s)",
    )
    cut = await maker(Summing()).summarize(asked(parent(TALK.events[:1]), frozenset({"e1", "e2"})))
    assert [event.id for event in cut.covered] == ["e1"]
    hidden = await maker(Summing()).summarize(asked(parent(), ALL - {"e1"}))
    assert (hidden.mode, len(hidden.covered)) == ("standalone", 5)


async def test_a_request_with_an_open_tool_round_is_not_forked() -> None:
    """A provider would refuse it with a message of the person behind the call."""
    open_one = parent([*TALK.events, *Talk().bot("", "c9").events])
    made = await maker(Summing()).summarize(asked(open_one))
    assert (made.mode, made.note) == ("standalone", "no fork: a tool round of the request is open")


async def test_it_goes_to_the_agents_model() -> None:
    """Whose cache it is for; without one to the summariser's own."""
    own, agents = Summing(), Summing()
    await maker(own).summarize(asked(parent(), model=agents))
    assert (len(own.requests), len(agents.requests)) == (0, 1)


async def test_what_does_not_fit_loses_tools_then_results() -> None:
    """First the tools, then the largest results, marked; at last the text is summed up."""
    model = Summing()
    await maker(model, input_budget=600).summarize(asked(parent()))
    assert (model.requests[0].tools, model.requests[0].messages[3].text) == ((), "r" * 300)
    await maker(model, input_budget=200).summarize(asked(parent()))
    assert model.requests[1].messages[3].text == "[left out: 300 characters]"
    made = await maker(model, input_budget=70).summarize(asked(parent()))
    assert made.mode == "standalone"
    assert "doesn't fit into 70 tokens" in made.note


@pytest.mark.parametrize(
    "answer", [{"tool_calls": [{"name": "tool_c1", "arguments": {}}]}, "", ModelError("long", kind="context_length")]
)
async def test_an_answer_that_is_no_summary_is_tried_once_as_text(answer: Any) -> None:
    """The model calls a tool, says nothing, or finds it too long: one more try, with the text."""
    items = iter([answer, "sum"])
    made = await maker(Summing(lambda request: next(items))).summarize(asked(parent()))
    assert (made.text, made.mode, made.spent.calls) == ("sum", "standalone", 2)
    assert "the fork failed" in made.note
    with pytest.raises(SummaryError) as caught:
        await maker(Summing(lambda request: answer)).summarize(asked(parent()))
    assert caught.value.spent.calls == 2


async def test_a_model_that_fails_is_not_asked_again() -> None:
    """An error of the call is one of the summary, with what was spent."""
    with pytest.raises(SummaryError, match="boom") as caught:
        await maker(Summing(lambda request: ModelError("boom"))).summarize(asked(parent()))
    assert caught.value.spent.calls == 1


def test_the_default_instruction_asks_for_no_tool() -> None:
    """`fork=True` takes it, with the same limit of words."""
    made = ModelSummarizer(Summing(), fork=True, max_words=50)._with.fork
    assert made is not None
    assert "Call no tool" in made.text
    assert "at most 50 words" in made.text
    assert isinstance(TALK.events[0], Event)
