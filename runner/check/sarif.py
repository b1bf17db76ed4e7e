"""A check as SARIF 2.1.0, the OASIS format for results of static analysis."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import Place
from graphagent.validation import Diagnostic, Rule, TraceStep
from graphagent.validation.catalogue import catalogue
from graphagent.validation.report import Severity
from runner.check.drawing import graph_named
from runner.check.judge import Checked, Outcome, Verdict
from runner.check.places import column, relative
from runner.check.text import reproducing

VERSION = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_ROOT = "SRCROOT"


def sarif_document(outcome: Outcome) -> dict[str, Any]:
    """The log: one run, a rule for each of the catalogue, a result for each finding.

    Findings that a node allows are results with a suppression. Files are named from the root of the repository.
    """
    rules = list(catalogue().values())
    places = {rule.code: place for place, rule in enumerate(rules)}
    results = []
    for one in outcome.checked:
        results += [_result(finding, one, outcome, places) for finding in one.report.findings]
        allowed = [_result(finding, one, outcome, places) for finding in one.report.allowed]
        results += [{**result, "suppressions": [{"kind": "inSource"}]} for result in allowed]
    driver = {
        "name": "graphagent",
        "semanticVersion": importlib.metadata.version("graphagent"),
        "rules": [_rule(rule) for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [_invocation(outcome)],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.title.replace("'", "").split()),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.explain or rule.title},
        "help": {"text": f"graphagent rule {rule.code}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _invocation(outcome: Outcome) -> dict[str, Any]:
    failed = [
        {"level": "error", "message": {"text": f"{failure.target}: {failure.message}"}} for failure in outcome.failures
    ]
    unknown = [
        {"level": "warning", "message": {"text": f"{one.candidate.target}: not decided, a bound was hit"}}
        for one in outcome.checked
        if not one.decided
    ]
    return {
        "executionSuccessful": outcome.verdict is not Verdict.MISUSE,
        "exitCode": int(outcome.verdict),
        "toolExecutionNotifications": [*failed, *unknown],
    }


def _result(finding: Diagnostic, one: Checked, outcome: Outcome, places: Mapping[str, int]) -> dict[str, Any]:
    text = f"{finding.message}; fix: {finding.fix}" if finding.fix else finding.message
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [_location(finding.where, outcome, _logical(finding.graph, finding.at))],
        "partialFingerprints": {"graphagent/v1": finding.fingerprint},
    }
    if finding.code in places:
        result["ruleIndex"] = places[finding.code]
    graph = one.graph if finding.trace else None
    inner = graph_named(graph, finding.graph) if graph is not None else None
    if inner is not None:
        flow = list(_flow(finding, inner, outcome))
        result["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
    properties = {"fix": finding.fix, "script": finding.script, "reproduce": reproducing(finding, one)}
    result["properties"] = {name: text for name, text in properties.items() if text} | {"target": one.candidate.target}
    return result


def _logical(graph: str, at: tuple[str, ...]) -> list[dict[str, Any]]:
    if not at:
        return [{"name": graph, "fullyQualifiedName": graph, "kind": "graph"}]
    return [{"name": name, "fullyQualifiedName": f"{graph}/{name}"} for name in at]


def _location(where: Place, outcome: Outcome, logical: list[dict[str, Any]]) -> dict[str, Any]:
    location: dict[str, Any] = {"logicalLocations": logical}
    if where.file:
        location["physicalLocation"] = {
            "artifactLocation": _artifact(where.file),
            "region": {"startLine": max(where.line, 1), "startColumn": column(where, outcome.base)},
        }
    return location


def _artifact(file: str) -> dict[str, str]:
    if file.startswith("/") or file[1:2] == ":":
        return {"uri": f"file:///{quote(file.lstrip('/'), safe='/:')}"}
    return {"uri": quote(file), "uriBaseId": _ROOT}


def _flow(finding: Diagnostic, graph: CompiledGraph, outcome: Outcome) -> Iterator[dict[str, Any]]:
    """A location for each step of the trace: where the node that ran was added."""
    for number, step in enumerate(finding.trace):
        node = graph.nodes.get(step.node)
        where = finding.where
        if node is not None and node.place.file:
            where = Place(relative(node.place.file, outcome.base), node.place.line)
        location = _location(where, outcome, _logical(finding.graph, (step.node,) if step.node else ()))
        yield {
            "location": {**location, "message": {"text": _told(step)}},
            "executionOrder": number + 1,
            "importance": "essential" if number + 1 == len(finding.trace) else "important",
        }


def _told(step: TraceStep) -> str:
    return f"step {step.step}: {step}"
