"""Runners whose requests are guarded, with a summariser that tests steer."""

from __future__ import annotations

from typing import Any

from graphagent import LLMAgent, tool
from graphagent.ledger import Event, SessionKey
from graphagent.models import ScriptedModel
from runner import Runner
from runner.sessions import InMemorySessions
from runner.summary.upkeep import SummaryOptions
from support.rolling import Steered

KEY = SessionKey("app", "ann", "s")


@tool
async def read(size: int) -> str:
    """A text of this many words."""
    return "word " * size


def calls(*sizes: int) -> dict[str, Any]:
    """An answer that calls the tool for each size."""
    return {"tool_calls": [{"name": "read", "arguments": {"size": size}} for size in sizes]}


def said(model: ScriptedModel, number: int) -> str:
    """All that the model was sent in a request."""
    return " | ".join(message.text for message in model.requests[number].messages)


def kind_of(event: Event) -> str:
    """What kind of thing was said."""
    return "user" if event.is_user else "call" if event.is_tool_call else "result" if event.is_tool_result else "answer"


def runner_for(model: ScriptedModel, steered: Steered, sessions: Any = None, **options: Any) -> Runner:
    """A Runner whose background summaries never fire, so that what is seen is the guard's."""
    given = {key: options.pop(key) for key in ("between_calls", "rescue") if key in options}
    agent = LLMAgent("bot", model, tools=[read])
    sessions = sessions or InMemorySessions()
    return Runner("app", agent, sessions=sessions, summaries=SummaryOptions(summarizer=steered, **given), **options)


class AtCalls(Steered):
    """Fires only for the guard, which knows the size of a request."""

    async def due(self, given: Any) -> Any:
        """As told, if a request is known and no answer came yet."""
        trigger = await super().due(given)
        return trigger._replace(fired=trigger.fired and given.context.request_started_at is None)
