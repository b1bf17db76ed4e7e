"""Validation of one graph: definition first, then shape, behaviour, data, policies and limits."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from graphagent.graph.builder import StateGraph
from graphagent.graph.checks import check_definition
from graphagent.graph.compile import build
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import GraphDef, Problem
from graphagent.graph.schema import StateSchema
from graphagent.validation.allowing import allowed_apart
from graphagent.validation.catalogue import catalogue, families, matching
from graphagent.validation.facts import Bounds, Facts
from graphagent.validation.registry import Family
from graphagent.validation.report import Diagnostic, Report, Severity, Stats, worst_first
from graphagent.validation.subject import Subject


def validate(
    graph: CompiledGraph | StateGraph,
    *,
    rules: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    bounds: Bounds | None = None,
    facts: Facts | None = None,
    severities: Mapping[str, Severity] | None = None,
) -> Report:
    """Everything that is wrong with a graph, or a proof that nothing is.

    `rules` and `ignore`: codes, or beginnings of codes such as `GA3`, to report (default: all) and to leave out.
    `severities`: what findings of a code count as here, instead of what they are. `bounds`: where the search gives
    up, which the report then says. `facts`: how the graph is run. The graphs of subgraph nodes are validated too. A
    builder need not compile: what stops it is reported, and nothing else then. Families of which no rule is wanted
    aren't checked; without those that need to know the behaviour, it isn't decided, and no bound can be hit. Raises
    UsageError for an unknown code.
    """
    begun = time.monotonic()
    wanted = None if rules is None else matching(tuple(rules))
    left_out = matching(tuple(ignore))
    facts, bounds = facts or Facts(), bounds or Bounds()
    every = wanted is None or "GA900" in wanted  # that an allow is idle shows only when everything is checked
    checked = [
        family for family in families() if every or wanted is None or any(rule.code in wanted for rule in family.rules)
    ]
    report = _validate(graph, facts, bounds, checked)
    if wanted is not None:
        report = replace(report, findings=tuple(f for f in report.findings if f.code in wanted))
    kept = [finding for finding in report.findings if finding.code not in left_out]
    for pattern, severity in (severities or {}).items():
        codes = matching((pattern,))
        kept = [replace(finding, severity=severity) if finding.code in codes else finding for finding in kept]
    return replace(report, findings=worst_first(kept), stats=replace(report.stats, seconds=time.monotonic() - begun))


def _validate(graph: CompiledGraph | StateGraph, facts: Facts, bounds: Bounds, checked: Sequence[Family]) -> Report:
    if isinstance(graph, StateGraph):
        strict = not facts.unchecked
        problems = _checked(graph.definition, graph.schema, strict)
        if any(problem.severity == "error" for problem in problems):
            return Report(graph.definition.name, "", worst_first(_found(graph.definition.name, problems)))
        graph = build(graph.definition.snapshot(), graph.schema, tuple(problems), strict=strict)
    else:
        problems = _checked(graph.definition, graph.schema, graph.strict)
    severities = {code: rule.severity for code, rule in catalogue().items()}
    subject = Subject(graph, facts, bounds, severities)
    found = [*_found(graph.name, problems)]
    for family in checked:
        found += family.check(subject)
    kept, silenced = allowed_apart(subject, found)
    inside = [_validate(child, facts, bounds, checked) for child in _children(graph)]
    kept += [finding for report in inside for finding in report.findings]
    silenced += [finding for report in inside for finding in report.allowed]
    cheap = all(family.cheap for family in checked)
    stats = Stats() if cheap else Stats(subject.decided_by, *subject.states)
    complete = stats.decided_by != "bound" and all(report.complete for report in inside)
    return Report(graph.name, graph.fingerprint, worst_first(kept), complete, stats, tuple(silenced))


def _checked(definition: GraphDef, schema: StateSchema, strict: bool) -> list[Problem]:
    return [*definition.problems, *check_definition(definition, schema, strict=strict)]


def _found(name: str, problems: Iterable[Problem]) -> Iterator[Diagnostic]:
    for problem in problems:
        yield Diagnostic(problem.code, problem.severity, problem.message, name, problem.at, problem.place)


def _children(graph: CompiledGraph) -> list[CompiledGraph | StateGraph]:
    """The graphs of subgraph nodes, each once; those of a document are builders."""
    found: dict[int, CompiledGraph | StateGraph] = {}
    for node in graph.defs:
        child = node.metadata.get("child", node.child)
        if isinstance(child, CompiledGraph | StateGraph):
            found[id(child)] = child
    return list(found.values())
