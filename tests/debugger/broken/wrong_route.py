"""The triage with a fault: two labels of the route by severity are exchanged."""

from typing import Literal

from examples.cert_triage.graph import (
    CHECKS,
    EVIDENCE,
    INPUTS,
    as_node,
    by_answer,
    by_severity,
    judge,
    load,
    question,
    remediate,
    report,
)
from examples.cert_triage.state import TriageState
from graphagent import StateGraph


def build() -> StateGraph:
    """As the demo's graph, but for the route."""
    builder = StateGraph(TriageState, name="wrong-route", inputs=INPUTS).set_entry_point("load")
    builder.add_node("load", load, reads=INPUTS, writes=EVIDENCE)
    for name, check in CHECKS.items():
        builder.add_node(name, as_node(check), inline=True, reads=EVIDENCE, writes=("findings",))
        builder.add_edge("load", name)
    return (
        builder.add_join_edge(CHECKS, "verdict")
        .add_node("verdict", judge, inline=True)
        .add_conditional_edges("verdict", by_severity, {"ok": "report", "warning": "approve", "critical": "report"})
        .add_interrupt_node("approve", prompt=question, answer_type=Literal["yes", "no"])
        .add_conditional_edges("approve", by_answer, {"yes": "remediate", "no": "report"})
        .add_node("remediate", remediate)
        .add_edge("remediate", "report")
        .add_node("report", report)
        .set_finish_point("report")
    )


graph = build().compile()
