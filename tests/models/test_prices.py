"""What a model call costs: litellm's list, prices of one's own, and what is not known."""

from __future__ import annotations

import pytest
from support.openai_server import LITELLM_WARNS, Answer, chunk, openai_server, usage_chunk, whole

from graphagent.agents.assembler import assemble
from graphagent.agents.model import ModelRequest
from graphagent.ledger import TokenUsage
from graphagent.messages import Message
from graphagent.models import LiteLLMModel, Profile
from graphagent.models.prices import Price, cost_of, register_price

pytestmark = LITELLM_WARNS
USED = TokenUsage(input_tokens=1000, output_tokens=100, cached_tokens=400)


def test_a_listed_model_costs_what_the_list_says() -> None:
    """With and without the provider, cached tokens at their own price."""
    assert cost_of("openai/gpt-4o", USED) == pytest.approx(600 * 2.5e-6 + 400 * 1.25e-6 + 100 * 1e-5)
    assert cost_of("gpt-4o", USED) == cost_of("openai/gpt-4o", USED)


@pytest.mark.parametrize("name", ["openai/no-such-model", "no-such-model", "anthropic/gpt-4o", "dall-e-3", ""])
def test_what_is_not_listed_is_not_known(name: str) -> None:
    """An unknown model, one of another provider, and one that isn't priced by tokens cost None, not 0."""
    assert cost_of(name, USED) is None


def test_a_model_that_is_listed_as_free_costs_nothing() -> None:
    """0 is a price where the list says so, and no server is asked for it."""
    assert cost_of("ollama/llama3", USED) == 0.0


def test_prices_of_ones_own() -> None:
    """A registered price is taken before the list's; without one for cached tokens they cost what others do."""
    register_price("mine/model", Price(1.0, 10.0))
    assert cost_of("mine/Model", USED) == 2000.0
    register_price("mine/model", Price(1.0, 10.0, 0.5))
    assert cost_of("mine/model", USED) == 600 + 200 + 1000
    with pytest.raises(ValueError, match="must be 0 or more"):
        register_price("mine/model", Price(-1.0, 0.0))


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "known"), [("openai/gpt-4o", True), ("openai/small", False)])
@pytest.mark.parametrize("streams", [True, False])
async def test_an_answer_says_what_it_cost(name: str, known: bool, streams: bool) -> None:
    """Over a real socket, streamed or whole: the usage of the answer has the cost, or None for a model nobody lists."""
    pieces = Answer([chunk(content="ok"), chunk("stop"), usage_chunk(7, 3)])
    async with openai_server([pieces if streams else whole("ok")]) as server:
        model = LiteLLMModel(name, api_base=server.url, api_key="k", profile=Profile(streams=streams))
        used = assemble([delta async for delta in model.stream(ModelRequest((Message.user("hi"),)))]).usage
    assert (used.input_tokens, used.output_tokens) == (7, 3)
    assert used.cost == (pytest.approx(7 * 2.5e-6 + 3 * 1e-5) if known else None)
