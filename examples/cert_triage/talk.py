"""The triage as an agent: a person asks for a check in words, a model explains it, and answers questions later.

`graphagent chat examples.cert_triage.talk:agent` talks with it.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from examples.cert_triage.graph import add_triage, report_of
from examples.cert_triage.report import markdown
from examples.cert_triage.state import TriageState
from examples.cert_triage.words import ANSWER, explain_text, script
from examples.models import scripted
from graphagent import GraphAgent, MessagesState, NodeContext, StateGraph
from graphagent.agents import Model
from graphagent.ledger import SessionKey
from graphagent.services import ArtifactService

APP = "cert-triage"
REPORT_NAME = "report.md"
REQUEST = re.compile(
    r"\bcheck (?P<target>\S+\.(?:pem|crt|cer)|\S+:\d+)"
    r"(?: for (?P<hostname>\S+))?(?: trusting (?P<ca_file>\S+))?(?: into (?P<out_dir>\S+))?",
    re.IGNORECASE,
)
"""How a check is asked for; anything else is a question about what was said before."""


class TalkState(TriageState, MessagesState):
    """One turn of the talk: a triage, or a question about an earlier one."""

    target: str = ""
    explanation: str = ""
    report_version: int | None = None
    """Version of the artifact that the report was saved as; None where there is no service for it."""


def read(state: TalkState) -> dict[str, Any]:
    """What is to be checked, if anything is."""
    found = REQUEST.search(state.user_input)
    return {} if found is None else {name: text for name, text in found.groupdict().items() if text}


def by_request(state: TalkState) -> Literal["check", "question"]:
    return "check" if state.target else "question"


def explain_instruction(state: TalkState, ctx: NodeContext) -> str:
    return explain_text(report_of(state))


async def archive(state: TalkState, ctx: NodeContext) -> dict[str, Any] | None:
    """Save the report in the session, the model's words after the facts."""
    artifacts = ctx.services and ctx.services.artifacts
    if artifacts is None or ctx.invocation.session is None:
        return None
    data = f"{markdown(report_of(state))}\n## In plain words\n\n{state.explanation}\n".encode()
    key = ctx.invocation.session.key
    return {"report_version": await ctx.step("save the report", save, artifacts, key, data, idempotent=True)}


async def save(artifacts: ArtifactService, key: SessionKey, data: bytes) -> int:
    """Its version. A report that is there already, as after a crash, doesn't get a second one."""
    newest = await artifacts.load(key, REPORT_NAME)
    if newest is not None and newest.data == data:
        return newest.version
    return await artifacts.save(key, REPORT_NAME, data, mime_type="text/markdown")


def build(model: Model) -> StateGraph:
    """read -> check: the triage -> explain -> archive; question: answer."""
    builder = (
        StateGraph(TalkState, name=APP)
        .add_node("read", read, inline=True, reads=("user_input",), writes=("target", "hostname", "ca_file", "out_dir"))
        .set_entry_point("read")
        .add_conditional_edges("read", by_request, {"check": "load", "question": "answer"})
    )
    return (
        add_triage(builder)
        .add_llm_node("explain", model, instruction=explain_instruction, output_key="explanation")
        .add_edge("report", "explain")
        .add_node("archive", archive, effects=("report artifact",), idempotent=True)
        .add_edge("explain", "archive")
        .add_llm_node("answer", model, instruction=ANSWER)
        .set_finish_point("archive", "answer")
    )


def make_agent(model: Model) -> GraphAgent:
    """The agent, with this model for its words."""
    return GraphAgent(APP, build(model).compile(), description="Checks TLS certificates and explains what it found.")


agent = make_agent(scripted(script))
graph = agent.graph
