"""The small real model over its own server: text in pieces, and an answer that is bound to a schema."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from support.openai_server import LITELLM_WARNS

from graphagent.agents.assembler import assemble
from graphagent.agents.model import GenerationConfig, ModelRequest
from graphagent.errors import ModelError
from graphagent.messages import Message
from graphagent.models import LiteLLMModel
from graphagent.models.local import local_model, local_model_installed

pytestmark = [pytest.mark.anyio, *LITELLM_WARNS]
GREEDY = GenerationConfig(temperature=0.0, max_tokens=24)


@pytest.fixture(scope="module")
def model() -> Iterator[LiteLLMModel]:
    """The local model, started once for this file."""
    if not local_model_installed():
        pytest.skip("the local model is not installed: make local-model")
    with local_model(window=2048) as found:
        yield found


async def test_it_streams_and_reports_usage(model: LiteLLMModel) -> None:
    """An answer comes in several pieces and ends with a reason and with usage."""
    request = ModelRequest((Message.user("What is the capital of France? Answer in one sentence."),), config=GREEDY)
    deltas = [delta async for delta in model.stream(request)]
    reply = assemble(deltas)
    assert len([delta for delta in deltas if delta.text]) > 3
    assert "Paris" in reply.message.text
    assert reply.finish_reason in ("stop", "length")
    assert reply.usage.input_tokens > 10
    assert 0 < reply.usage.output_tokens <= 24


async def test_its_answer_fits_a_schema(model: LiteLLMModel) -> None:
    """With a schema the answer is JSON that fits it."""
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"]}
    request = ModelRequest((Message.user("Which city is the capital of France?"),), output_schema=schema, config=GREEDY)
    reply = assemble([delta async for delta in model.stream(request)])
    assert isinstance(json.loads(reply.message.text)["city"], str)


def test_without_it_the_mend_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not installed, the error says how to install it."""
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(ModelError, match="make local-model"), local_model():
        pass
