"""The triage with a fault: a check that finds something grave leaves by a route of its own, and the join waits."""

from typing import Literal

from examples.cert_triage.findings import verdict
from examples.cert_triage.graph import CHECKS, EVIDENCE, INPUTS, as_node, judge, load, report
from examples.cert_triage.state import TriageState
from graphagent import StateGraph


def alarm(state: TriageState) -> None:
    """Tell somebody; here it does nothing."""


def grave(state: TriageState) -> Literal["alarm", "go on"]:
    """Where the check of validity goes on."""
    return "alarm" if verdict(state.findings) == "critical" else "go on"


def build() -> StateGraph:
    """As the demo's graph without the question, and with a way out behind the check of validity."""
    builder = StateGraph(TriageState, name="stalled-join", inputs=INPUTS).set_entry_point("load")
    builder.add_node("load", load, reads=INPUTS, writes=EVIDENCE)
    for name, check in CHECKS.items():
        builder.add_node(name, as_node(check), inline=True, reads=EVIDENCE, writes=("findings",))
        builder.add_edge("load", name)
    others = [name for name in CHECKS if name != "validity"]
    return (
        builder.add_conditional_edges("validity", grave, {"alarm": "alarm", "go on": "valid"})
        .add_node("alarm", alarm, inline=True)
        .add_node("valid", lambda state: None, inline=True)
        .add_join_edge([*others, "valid"], "verdict")
        .add_node("verdict", judge, inline=True)
        .add_edge("verdict", "report")
        .add_node("report", report)
        .set_finish_point("report", "alarm")
    )


graph = build().compile()
