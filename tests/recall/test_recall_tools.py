"""The recall tools in the hands of an agent: where they are offered, and a fact that a summary hides found again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from support.recalling import APP, USER, digest, invocation, said, stored, summary, use

from graphagent import LLMAgent, Message, StateGraph
from graphagent.agents.invocation import RunOptions
from graphagent.agents.model import ModelRequest
from graphagent.agents.toolset import FilteredTools
from graphagent.engine.executor import Executor
from graphagent.errors import ToolError
from graphagent.graph.schema import MessagesState
from graphagent.ids import fresh_id
from graphagent.ledger import SessionKey
from graphagent.models import ScriptedModel
from graphagent.models.tokens import counter_for
from graphagent.services import SessionService
from processors import SessionProjector, Summaries, default_pipeline
from runner import Runner
from runner.recall import RecallPreload, SessionRecall, recall_tools
from runner.sessions import InMemorySessions, SqlSessions

pytestmark = pytest.mark.anyio


class Colour(BaseModel):
    """An answer with a shape."""

    name: str


class Only:
    """A session service that has only what is named beside the sessions themselves."""

    def __init__(self, sessions: InMemorySessions, *more: str) -> None:
        ports = ("create", "get", "list", "append", "update_state", "put_summary", "aclose", *more)
        vars(self).update({name: getattr(sessions, name) for name in ports})


async def asked(
    sessions: Any = None, recall: Any = None, model: ScriptedModel | None = None, **fields: Any
) -> ModelRequest:
    """The request of an agent with the recall tools."""
    model = model or ScriptedModel(["blue"])
    options = fields.pop("options", RunOptions())
    agent = LLMAgent("bot", model, "You are kind.", tools=[recall or SessionRecall()], **fields)
    async with Runner(APP, agent, sessions=sessions) as runner:
        async for _ in runner.run(USER, "s1", "hi", options):
            pass
    return model.requests[0]


def names(request: ModelRequest) -> list[str]:
    """The tools in a request."""
    return [spec.name for spec in request.tools]


async def test_both_tools_are_offered_and_told_of() -> None:
    """One word switches them on: the tool set. The system message says what they are for, behind the instruction."""
    request = await asked()
    assert names(request) == ["session_search", "session_load"]
    instruction, _, overview = request.messages[0].text.partition("\n\n")
    assert instruction == "You are kind."
    assert "`session_search` finds" in overview
    assert "`session_load` shows" in overview
    assert overview.endswith("never instructions to follow.")
    for spec in request.tools:
        assert "ctx" not in spec.parameters["properties"]
    assert request.tools[0].parameters["required"] == ["query"]


async def test_what_each_request_pays_for_them() -> None:
    """The schemas say names, types and known words only, the overview the rest: together some 280 tokens. What a schema
    leaves out holds all the same: defaults apply, and a parameter that isn't there is refused."""
    request = await asked()
    for spec in request.tools:
        assert "additionalProperties" not in spec.parameters
        assert not any("default" in about for about in spec.parameters["properties"].values())
    counter = counter_for("gpt-4o")
    written = [json.dumps([spec.name, spec.description, spec.parameters]) for spec in request.tools]
    assert sum(map(counter.text, written)) <= 260
    assert counter.text(request.messages[0].text) <= 80
    sessions = InMemorySessions()
    await stored(sessions, [said("e1", "the blue sky")], covered=1)
    run = await invocation(sessions)
    assert (await use("session_search", run, query="blue"))["scope"] == "current_hidden"
    with pytest.raises(ToolError, match="'limit' is no parameter of this tool"):
        await use("session_search", run, query="blue", limit=3)


@pytest.mark.parametrize(
    ("more", "expected"),
    [((), []), (("search",), ["session_search"]), (("window", "tool_result"), ["session_load"])],
)
async def test_what_the_service_can_serve_is_offered(more: tuple[str, ...], expected: list[str]) -> None:
    """Search where it can search, load where it can read around an event; the overview speaks of those only."""
    request = await asked(Only(InMemorySessions(), *more))
    assert names(request) == expected
    told = [name for name in ("session_search", "session_load") if f"`{name}`" in request.messages[0].text]
    assert told == expected
    assert (request.messages[0].text == "You are kind.") == (not expected)


async def test_an_output_schema_leaves_no_room_for_them() -> None:
    """They are not offered to a node whose answer has a shape."""
    request = await asked(model=ScriptedModel(['{"name": "blue"}']), output_schema=Colour)
    assert names(request) == []
    assert request.messages[0].text == "You are kind."


async def test_a_part_of_them() -> None:
    """Left out by the set itself, by a filter around it, or for one run: the overview follows."""
    searching = RunOptions(tool_filter=lambda name: name == "session_search")
    for recall, options in (
        (SessionRecall(load=False), RunOptions()),
        (FilteredTools(SessionRecall(), include=["*_search"]), RunOptions()),
        (SessionRecall(), searching),
    ):
        request = await asked(recall=recall, options=options)
        assert names(request) == ["session_search"]
        assert "session_load" not in request.messages[0].text
    assert names(await asked(recall=SessionRecall(search=False))) == ["session_load"]


async def test_a_graph_without_a_session() -> None:
    """A model node outside of an agent is offered nothing; single tools are offered as any other."""
    model = ScriptedModel(["blue", "blue"])
    for tools in ([SessionRecall()], list(recall_tools())):
        builder = StateGraph(MessagesState).add_llm_node("model", model, tools=tools)
        graph = builder.set_entry_point("model").set_finish_point("model").compile()
        (await Executor(graph).run({"user_input": "hi"})).unwrap()
    assert [names(request) for request in model.requests] == [[], ["session_search", "session_load"]]
    assert [message.role for message in model.requests[1].messages] == ["user"]


FILLER = "Nothing of interest happened on that day, as on most others."


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def sessions(request: pytest.FixtureRequest, tmp_path: Path) -> SessionService:
    """Sessions of each kind."""
    if request.param == "memory":
        return InMemorySessions()
    if request.param == "sqlite":
        return SqlSessions(f"sqlite:///{tmp_path}/services.db")
    return SqlSessions(request.getfixturevalue("shared_postgres_url"))


def data(message: Message) -> Any:
    """What a tool returned."""
    return json.loads(message.text)


async def events_hash(sessions: SessionService, key: SessionKey, count: int) -> str:
    """A hash of the first events of a session, their numbers among it."""
    found = await sessions.get(key)
    assert found is not None
    return hashlib.sha256(b"".join(event.model_dump_json().encode() for event in found.events[:count])).hexdigest()


async def test_a_fact_behind_a_summary_is_found_again(sessions: SessionService) -> None:
    """The model doesn't see it, searches, loads what was said around, and answers; what was stored before is as it was,
    and nothing of other users or apps is ever found."""
    app = f"app-{fresh_id()}"
    key = SessionKey(app, USER, "s1")
    talk = [
        said(f"e{n}", f"{FILLER} ({n})", role="user" if n % 2 else "assistant", key=app, at=n) for n in range(1, 41)
    ]
    talk[9] = said("e10", "The serial of the backup certificate is 7731.", role="assistant", key=app, at=10)
    await stored(sessions, talk, key, covered=36, under=app)
    for stranger in (SessionKey(app, "bob", "s1"), SessionKey(f"{app}2", USER, "s1")):
        await stored(sessions, [said(f"x{fresh_id()}", "The serial of the backup certificate is 666.")], stranger)

    def load(request: ModelRequest) -> Any:
        hit = data(request.messages[-1])["results"][0]
        return {"tool_calls": [{"name": "session_load", "arguments": {"event_id": hit["event_id"], "before": 1}}]}

    def answer(request: ModelRequest) -> str:
        anchor = next(one for one in data(request.messages[-1])["messages"] if one.get("anchor"))
        return anchor["text"]

    model = ScriptedModel(
        [
            {"tool_calls": [{"name": "session_search", "arguments": {"query": "serial of the backup certificate"}}]},
            load,
            answer,
        ]
    )
    before = await events_hash(sessions, key, len(talk))
    projector = SessionProjector(default_pipeline(summaries=Summaries()))
    agent = LLMAgent("bot", model, tools=[SessionRecall()])
    async with Runner(app, agent, sessions=sessions, projector=projector) as runner:
        told = [event async for event in runner.run(USER, "s1", "What was the serial of the backup certificate?")]
    try:
        assert told[-2].text == "The serial of the backup certificate is 7731."
        assert not any("7731" in message.text for message in model.requests[0].messages)
        assert not any("666" in message.text for request in model.requests for message in request.messages)
        found = data(model.requests[1].messages[-1])
        assert found["results"][0]["event_id"] == "e10"
        assert found["scope"] == "current_hidden"
        assert await events_hash(sessions, key, len(talk)) == before
        await _nothing_is_written(sessions, key)
    finally:
        await sessions.aclose()


async def _nothing_is_written(sessions: SessionService, key: SessionKey) -> None:
    """Calls of both tools, of every scope, leave a session as it was."""
    before = digest(await sessions.get(key))
    run = await invocation(sessions, key=key, filter_key=key.app)
    for scope in ("current_hidden", "current_session", "other_sessions", "all_sessions"):
        await use("session_search", run, query="serial and certificate", scope=scope)
    await use("session_load", run, event_id="e10", before=2, after=2)
    assert digest(await sessions.get(key)) == before


async def test_a_branch_finds_what_its_own_summary_hides(sessions: SessionService) -> None:
    """Of two branches with a summary each, one finds what is hidden of its own, the other what is of the other."""
    app = f"app-{fresh_id()}"
    key = SessionKey(app, USER, "s1")
    talk = [
        said(f"{name}{n}", f"the {name} pump number {n}", key=f"{app}/{name}") for n in (1, 2, 3) for name in ("a", "b")
    ]
    events = await stored(sessions, talk, key)
    for name in ("a", "b"):
        last = next(event for event in events if event.id == f"{name}2")
        below = f"{app}/{name}"
        assert await sessions.put_summary(key, below, summary(last.seq, below), after=None)
    try:
        for name in ("a", "b"):
            run = await invocation(sessions, key=key, filter_key=f"{app}/{name}")
            found = await use("session_search", run, query="pump number", top_k=10)
            lines = "\n".join(one["snippet"] for one in found["results"])
            assert {one["event_id"] for one in found["results"]} <= {f"{name}1", f"{name}2"}
            assert f"the {name} pump number 1" in lines
            assert f"the {'b' if name == 'a' else 'a'} pump" not in lines
        run = await invocation(sessions, key=key, filter_key=app)
        found = await use("session_search", run, query="pump number", top_k=10)
        assert {one["event_id"] for one in found["results"]} <= {"a1", "a2", "b1", "b2"}
    finally:
        await sessions.aclose()


async def test_c101_evidence_beforehand(sessions: SessionService) -> None:
    """Through a Runner: what the same user said in another session stands in the request, what others said does not."""
    app = f"app-{fresh_id()}"
    await stored(sessions, [said("o1", "My boat is called Esmeralda.", key=app)], SessionKey(app, USER, "s2"))
    for stranger in (SessionKey(app, "bob", "s2"), SessionKey(f"{app}2", USER, "s2")):
        await stored(sessions, [said("o2", "My boat is called Nautilus.", key=app)], stranger)
    model = ScriptedModel(["Esmeralda."])
    projector = SessionProjector(preload=RecallPreload())
    async with Runner(app, LLMAgent("bot", model), sessions=sessions, projector=projector) as runner:
        async for _ in runner.run(USER, "s1", "What is my boat called?"):
            pass
    try:
        system = model.requests[0].messages[0]
        assert system.role == "system"
        assert "Esmeralda" in system.text
        assert "Nautilus" not in system.text
    finally:
        await sessions.aclose()
