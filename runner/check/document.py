"""A check as JSON of schema 1: consumers rely on `result`, codes and fingerprints, not on wording."""

from __future__ import annotations

from typing import Any

from runner.check.judge import Checked, Outcome

SCHEMA = 1


def check_document(outcome: Outcome) -> dict[str, Any]:
    """The document: `result` is clean, findings or unknown; `errors` are targets that could not be looked at."""
    return {
        "schema": SCHEMA,
        "result": outcome.result(outcome.checked),
        "exit": int(outcome.verdict),
        "counts": {severity: outcome.count(severity) for severity in ("error", "warning", "info")},
        "findings": [finding.to_json() for finding in outcome.findings],
        "graphs": [_graph(one, outcome) for one in outcome.checked],
        "errors": [{"target": failure.target, "message": failure.message} for failure in outcome.failures],
        "gone": outcome.gone,
    }


def _graph(one: Checked, outcome: Outcome) -> dict[str, Any]:
    report, stats = one.report, one.report.stats
    return {
        "name": report.graph,
        "fingerprint": report.fingerprint,
        "source": one.candidate.target,
        "result": outcome.result([one]),
        "worst": report.worst,
        "engine": outcome.settings.engine or one.candidate.facts.engine,
        "findings": len(report.findings),
        "known": one.known,
        "allowed": [finding.to_json() for finding in report.allowed],
        "stats": {
            "decided_by": stats.decided_by,
            "states": stats.states,
            "superstep_states": stats.superstep_states,
            "seconds": round(stats.seconds, 4),
        },
    }
