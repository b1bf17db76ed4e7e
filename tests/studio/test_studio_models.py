"""Requests of models in the browser: the messages, where each comes from and why, the answer and its calls."""

from __future__ import annotations

from typing import Any

import panel_graphs
import pytest
from browser import GRAPHS, page_on, stored, studio, wide_page

from graphagent import SqlCheckpoints
from graphagent.agents.graph_agent import session_lineage
from graphagent.ledger import SessionKey
from runner import Runner
from runner.sessions import SqlSessions
from runner.studio.model import Place

PANELS = GRAPHS.replace("studio_graphs", "panel_graphs")
KEY = SessionKey("helper", "ann", "s-1")
LINEAGE = session_lineage(KEY)


@pytest.fixture
def talked(db: str) -> str:
    """A session in which the agent was asked once."""

    async def talk() -> None:
        async with SqlCheckpoints(db) as store:
            sessions = SqlSessions(db)
            async with Runner("helper", panel_graphs.made(), sessions=sessions, checkpoints=store) as runner:
                async for _ in runner.run(KEY.user, KEY.session, "What shall I wear in Bern?"):
                    pass
            await sessions.aclose()

    stored(talk)
    return db


def messages(page: Any) -> list[str]:
    """The messages of the request, each in a line."""
    found = page.get_by_role("list", name="Messages of the request").get_by_role("listitem")
    found.first.wait_for()
    return [" ".join(text.split()) for text in found.all_inner_texts()]


@pytest.mark.parametrize("width", [1280, 800])
def test_a_request_is_shown_with_the_reason_for_each_message(launched: Any, talked: str, width: int) -> None:
    """Instruction, input, the model's own call and its result: origin and reason of each, then the answer."""
    with (
        studio(talked, f"{PANELS}:helper") as served,
        page_on(launched, served.at(Place(LINEAGE, "helper").link), width=width) as page,
    ):
        if width < 1000:
            page.get_by_role("tab", name="Details").click()
            page.wait_for_timeout(500)  # the tabs measure themselves when they come into view
        page.get_by_role("tab", name="Model").click()
        told = messages(page)
        assert [text.split()[1] for text in told] == ["system", "user", "assistant", "tool"]
        assert "instruction the instruction of node 'model'" in told[0]
        assert "You are a helper who says what to wear." in told[0]
        assert "input" in told[1]
        assert 'calls weather({"city": "Bern"})' in told[2]
        assert "rain in Bern" in told[3]
        assert "Take an umbrella." in page.get_by_role("list", name="Answer", exact=True).inner_text()
        assert not wide_page(page)


def test_earlier_requests_are_chosen_by_the_cursor(launched: Any, talked: str) -> None:
    """Where the model had asked for a tool: that request, and what became of the call."""
    with (
        studio(talked, f"{PANELS}:helper") as served,
        page_on(launched, served.at(Place(LINEAGE, "helper").link)) as page,
    ):
        page.get_by_role("tab", name="Model").click()
        messages(page)
        page.locator(".sg-line", has_text="model").last.click()
        calls = page.get_by_role("table", name="Tool calls")
        calls.wait_for()
        assert "done rain in Bern" in " ".join(calls.inner_text().split())
        assert len(messages(page)) == 2


def test_without_the_agent_the_panel_says_what_is_needed(launched: Any, talked: str) -> None:
    """A studio that was given nothing says how to give it the graph; so do joins and effects."""
    with studio(talked) as served, page_on(launched, served.at(Place(LINEAGE, "helper").link)) as page:
        for name in ("Model", "Effects"):
            page.get_by_role("tab", name=name).click()
            page.get_by_role("tabpanel").get_by_text("start the studio with module:graph").wait_for()
