"""The graph of a triage: what runs, in which order, and what must be asked before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal

from examples.cert_triage import checks
from examples.cert_triage.describe import pem
from examples.cert_triage.files import output_path, write_file
from examples.cert_triage.findings import Finding, Verdict, verdict
from examples.cert_triage.load import FetchError, read_ca_store, read_target, read_time
from examples.cert_triage.path import Case, make_case
from examples.cert_triage.remedy import remediation_script
from examples.cert_triage.report import Report, make_report, markdown
from examples.cert_triage.state import TriageState
from graphagent import RetryPolicy, StateGraph
from graphagent.engine.context import SyncContext

Update = dict[str, Any]
CHECKS: dict[str, Callable[[Case], list[Finding]]] = {
    "validity": checks.check_validity,
    "chain": checks.check_chain,
    "links": checks.check_links,
    "identity": checks.check_identity,
    "strength": checks.check_strength,
    "trust": checks.check_trust,
}
INPUTS = ("target", "hostname", "ca_file", "now", "out_dir")
EVIDENCE = ("chain", "anchors", "ca_source", "host", "judged_at")


def load(state: TriageState, ctx: SyncContext) -> Update:
    """Take all evidence at once: from here on a triage depends on no file, no server and no clock."""
    now = datetime.fromtimestamp(ctx.clock.now(), UTC) if state.now is None else read_time(state.now)
    chain, host = read_target(state.target, state.hostname)
    store = read_ca_store(state.ca_file, chain)
    return {
        "chain": [pem(one) for one in chain],
        "anchors": list(store.anchors) if store is not None else [],
        "ca_source": store.source if store is not None else None,
        "host": host,
        "judged_at": now.replace(microsecond=0),
    }


def as_node(check: Callable[[Case], list[Finding]]) -> Callable[[TriageState], Update]:
    """A check as a node function."""
    return lambda state: {"findings": check(_case(state))}


def judge(state: TriageState) -> Update:
    return {"severity": verdict(state.findings)}


def by_severity(state: TriageState) -> Verdict:
    return verdict(state.findings)


def question(state: TriageState) -> dict[str, Any]:
    """What the person is asked, with the reasons beside it."""
    return {
        "question": f"May a remediation script for '{state.target}' be written to '{state.out_dir}'?",
        "critical": [one.title for one in state.findings if one.severity == "critical"],
    }


def by_answer(state: TriageState) -> Literal["yes", "no"]:
    return state.approve or "no"


def remediate(state: TriageState, ctx: SyncContext) -> Update:
    """Write the script, once: a resume after a crash finds it recorded and doesn't touch what a person has edited."""
    text = remediation_script(_case(state), state.findings, state.target, state.ca_file)
    path = str(output_path(state.out_dir, "remediate", state.target, ".sh"))
    return {"script": ctx.step("write the script", write_file, path, text, 0o755, idempotent=True)}


def report_of(state: TriageState) -> Report:
    """What a triage that has come to its verdict found."""
    case = _case(state)
    return make_report(state.target, case, state.findings, verdict(state.findings), state.approve, state.script)


def report(state: TriageState, ctx: SyncContext) -> Update:
    data = report_of(state)
    path = str(output_path(state.out_dir, "report", state.target, ".md"))
    as_json = str(output_path(state.out_dir, "report", state.target, ".json"))
    ctx.step("write JSON", write_file, as_json, data.model_dump_json(indent=2) + "\n", 0o644, idempotent=True)
    return {"report": ctx.step("write Markdown", write_file, path, markdown(data), 0o644, idempotent=True)}


def add_triage(builder: StateGraph) -> StateGraph:
    """load -> six checks side by side -> verdict -> (critical: approve -> yes: remediate) -> report.

    Adds these nodes to a graph whose state is a TriageState; the way in and the way on are the caller's.
    """
    builder.add_node(
        "load", load, retry=RetryPolicy(max_attempts=2, retry_on=(FetchError,)), reads=INPUTS, writes=EVIDENCE
    )
    for name, check in CHECKS.items():
        builder.add_node(
            name, as_node(check), inline=True, reads=EVIDENCE, writes=("findings",), description=check.__doc__ or ""
        )
        builder.add_edge("load", name)
    return (
        builder.add_join_edge(CHECKS, "verdict", mode="all")
        .add_node("verdict", judge, inline=True, reads=("findings",), writes=("severity",))
        .add_conditional_edges("verdict", by_severity, {"ok": "report", "warning": "report", "critical": "approve"})
        .add_interrupt_node("approve", prompt=question, answer_type=Literal["yes", "no"])
        .add_conditional_edges("approve", by_answer, {"yes": "remediate", "no": "report"})
        .add_node("remediate", remediate, effects=("remediation script",), idempotent=True)
        .must_pass("remediate", through="approve")
        .add_edge("remediate", "report")
        .add_node("report", report, effects=("report files",), idempotent=True)
    )


def build() -> StateGraph:
    """A triage by itself, without a model."""
    outputs = ("severity", "findings", "script", "report")
    builder = StateGraph(TriageState, name="cert-triage", inputs=INPUTS, outputs=outputs).set_entry_point("load")
    return add_triage(builder).set_finish_point("report")


def _case(state: TriageState) -> Case:
    if state.judged_at is None:
        raise ValueError("no evidence yet: node 'load' must run before this one")
    return make_case(state.chain, state.anchors, state.ca_source, state.host, state.judged_at)


graph = build().compile()
