"""Token counts: the estimate against the real encodings, messages and requests, and context windows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_samples import SAMPLES

from graphagent.agents.model import ModelRequest, ToolSpec
from graphagent.messages import Message, ToolCall
from graphagent.models.tokens import SIMPLE, counter_for
from graphagent.models.windows import context_window, register_context_window

pytest.importorskip("tiktoken")
CJK = ("chinese", "japanese", "korean")


@pytest.mark.parametrize("model", ["openai/gpt-4o", "openai/gpt-4"])
@pytest.mark.parametrize("name", SAMPLES)
def test_c189_the_estimate_is_near_the_real_count(name: str, model: str) -> None:
    """C189: Chinese, Japanese and Korean prose is estimated within 15 %, other text and emoji within 30 %."""
    real = counter_for(model, exact=True).text(SAMPLES[name])
    bound = 0.15 if name.startswith(CJK) else 0.3
    assert abs(counter_for(model).text(SAMPLES[name]) / real - 1) <= bound


def test_c189_characters_by_four_is_far_off() -> None:
    """C189: what the estimate replaces counts Chinese at less than half."""
    real = counter_for("gpt-4o", exact=True).text(SAMPLES["chinese talk"])
    assert SIMPLE.text(SAMPLES["chinese talk"]) < real / 2


def test_c189_long_history_is_counted_in_full() -> None:
    """C189: 600,000 characters of Chinese are seen to be far over a window of 128,000 tokens."""
    text = (SAMPLES["chinese talk"] + SAMPLES["chinese news"]) * 2000
    assert counter_for("qwen-max").text(text[:600_000]) > 128_000 * 2


def test_a_tokenizer_of_another_provider_comes_through_litellm() -> None:
    """Asked for an exact count, a model that is not OpenAI's is counted by litellm's tokenizer for it."""
    exact = counter_for("anthropic/claude-sonnet-4-5", exact=True).text(SAMPLES["english"])
    assert exact == pytest.approx(counter_for("anthropic/claude-sonnet-4-5").text(SAMPLES["english"]), rel=0.3)


@given(st.text(max_size=200), st.text(max_size=200))
def test_more_text_never_counts_less(one: str, other: str) -> None:
    """Whatever the characters, a text counts at least 1 unless it is empty, and not less than its beginning does, up to
    what the words at the seam have in common."""
    counter = counter_for("gpt-4o")
    assert (counter.text(one) > 0) is bool(one)
    assert counter.text(one + other) >= counter.text(one) - 4


def test_c191_a_count_is_of_what_is_there() -> None:
    """C191: counters keep nothing; after a long history a short message counts as it did before it."""
    counter = counter_for("gpt-4o")
    before = counter.messages([Message.user("hello there")])
    counter.messages([Message.user("word " * 1000)])
    assert counter.messages([Message.user("hello there")]) == before < 10


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (Message.user("a" * 4096), 1024),
        (Message.user("a" * 4099), 1024),
        (Message.user("a" * 4100), 1025),
        (Message.user("a"), 1),
        (Message.user(""), 0),
        (Message.assistant("aaaa", reasoning="aaaa"), 2),
        (Message.user([{"type": "text", "text": "a" * 8}, {"type": "image_url", "image_url": {"url": "x" * 99}}]), 2),
        (Message.tool("a" * 4096, "call-with-a-long-id"), 1024),
        (Message.assistant("", tool_calls=(ToolCall(id="c123", name="find", arguments={}),)), 4),
    ],
)
def test_the_simple_counter(message: Message, tokens: int) -> None:
    """A quarter of the characters of content, reasoning and calls, at least 1 (spec/context 14 and case 78)."""
    assert SIMPLE.message(message) == tokens


def test_all_parts_of_a_request_count() -> None:
    """Tools, schema and images add to a request; each message takes some tokens of its own."""
    counter = counter_for("gpt-4o")
    plain = ModelRequest((Message.user("hello"),))
    tool = ToolSpec(
        "search", "Searches the web for a text.", {"type": "object", "properties": {"q": {"type": "string"}}}
    )
    picture = Message.user([{"type": "text", "text": "hello"}, {"type": "image_url", "image_url": {"url": "x"}}])
    counts = [
        counter.request(plain),
        counter.request(ModelRequest((*plain.messages, Message.assistant("")))),
        counter.request(ModelRequest(plain.messages, (tool,))),
        counter.request(ModelRequest(plain.messages, (tool,), {"type": "object"})),
        counter.request(ModelRequest((picture,))),
    ]
    assert counts == sorted(set(counts))
    assert counts[1] - counts[0] == 4


# -- context windows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4o", 128_000),
        ("openai/gpt-4o", 128_000),
        ("GPT-4O", 128_000),
        ("gpt-4o-2031-01-01", 128_000),
        ("gpt-4", 8_192),
        ("gpt-4o@pinned", 128_000),
        ("smollm2:135m", 8_192),
        ("gpt-4otter", None),
        ("openai/small", None),
        ("", None),
    ],
)
def test_windows_are_looked_up_by_name(model: str, tokens: int | None) -> None:
    """A window is found without a network: any case, with and without provider, and by the longest known beginning that
    ends before a separator (spec/context 14)."""
    assert context_window(model) == tokens


def test_a_window_can_be_registered() -> None:
    """A registered window stands for the name and for those that go on with a separator, the longest one first."""
    register_context_window("House-Model", 1000)
    register_context_window("house-model-large", 5000)
    found = [
        context_window(name) for name in ("house-model", "x/house-model:7b", "house-model-large-2", "house-models")
    ]
    assert found == [1000, 1000, 5000, None]
    with pytest.raises(ValueError, match="at least 1 token, not 0"):
        register_context_window("house-model", 0)
