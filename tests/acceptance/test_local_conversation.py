"""A real model holds a conversation: the small one on this machine's CPU, the Runner, SQLite."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.openai_server import LITELLM_WARNS
from support.wiretap import wiretap

from graphagent import LLMAgent, SqlCheckpoints
from graphagent.agents.model import GenerationConfig
from graphagent.models import LiteLLMModel
from graphagent.models.local import NAME, local_model, local_model_installed
from runner import Runner
from runner.sessions import SqlSessions

pytestmark = [
    pytest.mark.anyio,
    *LITELLM_WARNS,
    pytest.mark.skipif(not local_model_installed(), reason="the local model is not installed: make local-model"),
]


async def test_the_server_gets_turn_one_with_turn_two(tmp_path: Path) -> None:
    """Two turns in Runners of their own; the request that went to the model's server in turn two holds the question and
    the answer of turn one."""
    url = f"sqlite:///{tmp_path}/app.db"
    asked = ("What is the capital of France? Answer in one sentence.", "Which city did I ask about?")
    with local_model(window=2048) as served:
        address = urlsplit(served.api_base or "")
        async with wiretap(address.hostname or "", address.port or 0) as tap:
            told = []
            for text in asked:
                model = LiteLLMModel(NAME, api_base=f"{tap.url}/v1", api_key="none", context_window=2048)
                config = GenerationConfig(temperature=0.0, max_tokens=24)
                agent = LLMAgent("bot", model, "Answer briefly.", config=config)
                async with (
                    SqlSessions(url) as sessions,
                    SqlCheckpoints(url) as store,
                    Runner("app", agent, sessions=sessions, checkpoints=store) as runner,
                ):
                    told.append(await runner.run_text("ann", "s", text))
            first, second = (body["messages"] for body in tap.bodies)
    assert "Paris" in told[0]
    assert told[1]
    assert [message["content"] for message in first] == ["Answer briefly.", asked[0]]
    assert [message["content"] for message in second] == ["Answer briefly.", asked[0], told[0], asked[1]]
