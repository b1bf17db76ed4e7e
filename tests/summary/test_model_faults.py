"""Faults of a real server behind the summariser: it refuses, hangs, says nothing, or is cut in the middle."""

from __future__ import annotations

from typing import Any

import pytest
from support.openai_server import LITELLM_WARNS, Answer, chunk, fails, openai_server, says, usage_chunk
from support.summing import given
from support.talks import Talk

from graphagent.errors import SummaryError
from graphagent.models import LiteLLMModel
from runner.summary.summarizer import ModelSummarizer

pytestmark = [pytest.mark.anyio, *LITELLM_WARNS]
EVENTS = Talk().user("my cat is called Mia").bot("noted").events


def maker(server: Any, **options: Any) -> ModelSummarizer:
    """A summariser that asks that server, and no call twice."""
    model = LiteLLMModel(
        "openai/small", api_base=server.url, api_key="k", retries=0, timeout=30.0, context_window=20_000
    )
    return ModelSummarizer(model, **options)


async def test_a_summary_by_a_server() -> None:
    """Streamed or not, the whole text comes, with the tokens that the server reports; no tools are offered."""
    answer = Answer([chunk(content="The cat "), chunk(content="is Mia."), chunk("stop"), usage_chunk(210, 9, cached=4)])
    async with openai_server([answer]) as server:
        made = await maker(server).summarize(given(EVENTS))
    assert (made.text, len(made.covered), tuple(made.spent)) == ("The cat is Mia.", 2, (1, 210, 9, 4))
    assert "user: my cat is called Mia\nbot: noted" in server.requests[0]["messages"][1]["content"]
    assert "tools" not in server.requests[0]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (fails(500, "out of order"), "out of order"),
        (fails(401, "no key"), "no key"),
        (Answer([chunk(content="The ca")], then="cut"), "broke off"),
        (Answer([chunk(content="The ca")], then="end"), "broke off"),
        (says("The ca", finish="length"), "cut at its token limit"),
    ],
    ids=["500", "401", "cut", "no end", "length"],
)
async def test_a_failure_of_the_server_is_one_of_the_summary(answer: Answer, told: str) -> None:
    """Half a summary is none; the error says what the server said, and is not tried again here."""
    async with openai_server([answer, says("never asked")]) as server:
        with pytest.raises(SummaryError, match=told) as caught:
            await maker(server).summarize(given(EVENTS))
        assert len(server.requests) == caught.value.spent.calls == 1
    assert caught.value.__cause__ is not None


async def test_a_server_that_hangs_is_left() -> None:
    """After the time that a call may take the summary fails, and the connection is closed."""
    async with openai_server([Answer([chunk(content="The ca")], then="hold")]) as server:
        with pytest.raises(SummaryError, match=r"longer than 1\.5 s") as caught:
            await maker(server, timeout=1.5).summarize(given(EVENTS))
        await server.left.wait()
    assert caught.value.spent.output_tokens > 0


@pytest.mark.parametrize(
    "first",
    [says(""), fails(400, "this model's maximum context length is 4096 tokens", code="context_length_exceeded")],
    ids=["empty", "context length"],
)
async def test_c044_a_server_is_asked_once_more(first: Answer) -> None:
    """An empty answer, or one that says the request is too long: the second try brings the summary."""
    async with openai_server([first, says("The cat is Mia.")]) as server:
        made = await maker(server).summarize(given(EVENTS))
        assert len(server.requests) == made.spent.calls == 2
    assert made.text == "The cat is Mia."
