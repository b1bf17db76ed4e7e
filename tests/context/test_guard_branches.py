"""The guard in agents that run side by side: each request is made anew from its own branch."""

from __future__ import annotations

import pytest
from support.guarding import KEY, AtCalls, calls, read, said

from graphagent import LLMAgent
from graphagent.agents import ParallelAgent
from graphagent.models import ScriptedModel
from runner import Runner
from runner.summary.upkeep import SummaryOptions

pytestmark = pytest.mark.anyio


async def test_branches_are_summed_up_on_their_own() -> None:
    """Two agents side by side, both with requests that are too long: each gets the summary of its own branch, and
    sees nothing of the other."""
    models = {name: ScriptedModel([calls(6000), calls(1), f"{name} done"], context_window=5000) for name in ("a", "b")}
    agents = [LLMAgent(name, model, tools=[read]) for name, model in models.items()]
    steered = AtCalls(lambda given: f"<{given.filter_key}>")
    agent = ParallelAgent("both", agents)
    async with Runner("app", agent, summaries=SummaryOptions(summarizer=steered)) as runner:
        await runner.run_text("ann", "s", "go")
        session = await runner.sessions.get(KEY)
    assert session is not None
    keys = sorted(given.filter_key for given in steered.inputs)
    assert keys == sorted(session.summaries) != []
    for name, model in models.items():
        [key] = [key for key in keys if name in key.split("/")]
        [other] = [other for other in keys if other != key]
        assert len(model.requests) == 3
        assert f"<{key}>" in said(model, 1)
        assert all(f"<{other}>" not in said(model, number) for number in range(3))
        assert said(model, 2).count("word word") == 0  # the covered round was only there to go on from
