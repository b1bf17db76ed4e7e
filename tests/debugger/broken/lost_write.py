"""The triage with a fault: a node behind the verdict writes the severity again, from what it saw before."""

from examples.cert_triage.graph import CHECKS, EVIDENCE, INPUTS, as_node, judge, load, report
from examples.cert_triage.state import TriageState
from graphagent import StateGraph


def tidy(state: TriageState) -> dict[str, str]:
    """Meant to drop what only informs, and to judge what is left; it drops what is critical."""
    left = [one for one in state.findings if one.severity != "critical"]
    return {"severity": "warning" if left else "ok"}


def build() -> StateGraph:
    """As the demo's graph without the question, and with one node more."""
    builder = StateGraph(TriageState, name="lost-write", inputs=INPUTS).set_entry_point("load")
    builder.add_node("load", load, reads=INPUTS, writes=EVIDENCE)
    for name, check in CHECKS.items():
        builder.add_node(name, as_node(check), inline=True, reads=EVIDENCE, writes=("findings",))
        builder.add_edge("load", name)
    return (
        builder.add_join_edge(CHECKS, "verdict")
        .add_node("verdict", judge, inline=True)
        .add_edge("verdict", "tidy")
        .add_node("tidy", tidy, inline=True)
        .add_edge("tidy", "report")
        .add_node("report", report)
        .set_finish_point("report")
    )


graph = build().compile()
