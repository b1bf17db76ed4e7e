"""The command that explains the rules of the check: rule."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from graphagent.errors import UsageError, alternatives
from graphagent.validation.catalogue import catalogue
from graphagent.validation.compat_rules import RULES as COMPAT_RULES
from graphagent.validation.example import finding
from graphagent.validation.registry import Rule
from graphagent.validation.report import Diagnostic
from runner.cli.options import RuleFormat, RuleOptions
from runner.cli.output import Output, columns
from runner.cli.rule_page import one_rule, page

WIDTH = 100


def rule(options: RuleOptions, output: Output) -> int:
    """Explain one rule, or list all of them."""
    rules = catalogue()
    if options.code is not None:
        code = options.code.upper()
        if code not in rules:
            raise UsageError(f"no rule '{options.code}': {alternatives(code, rules)}")
        rules = {code: rules[code]}
    found = {code: example_finding(rule) for code, rule in rules.items()} if _examples_shown(options) else {}
    document: Any = [_document(rule, found.get(code)) for code, rule in rules.items()]
    if options.format is RuleFormat.markdown:
        text = page(rules, found) if options.code is None else "".join(one_rule(r, found[c]) for c, r in rules.items())
        output.show(document, text.rstrip("\n"))
    elif options.code is None:
        table = columns(("CODE", "SEVERITY", "TITLE"), [(r.code, r.severity, r.title) for r in rules.values()])
        output.show(document, f"{table}\n\n'graphagent rule CODE' explains one.")
    else:
        (only,) = rules.values()
        output.show(document[0], explained(only, found[only.code]))
    return 0


def example_finding(rule: Rule) -> Diagnostic | None:
    """What is reported on the failing example of a rule. None if it has none, or one that is a pair of graphs."""
    if not rule.fails or rule in COMPAT_RULES:
        return None
    return finding(rule.fails, rule.code)


def explained(rule: Rule, found: Diagnostic | None) -> str:
    """A rule as text: what goes wrong, what to do, an example, what is reported, a near miss."""
    parts = [f"{rule.code} {rule.severity}: {rule.title}", textwrap.fill(rule.explain, WIDTH)]
    if rule.fails:
        parts.append("fails:\n" + textwrap.indent(rule.fails, "    "))
    if found is not None:
        parts.append("reported:\n" + textwrap.indent(reported(found), "    "))
    if rule.passes:
        parts.append("passes:\n" + textwrap.indent(rule.passes, "    "))
    return "\n\n".join(parts)


def reported(found: Diagnostic) -> str:
    """A finding as a few lines: message, trace, mend."""
    lines = [f"{found.code} {found.severity}: {found.message}"]
    if found.script:
        lines.append(f"trace: {found.script}")
    if found.fix:
        lines.append(f"fix: {found.fix}")
    return "\n".join(lines)


def _examples_shown(options: RuleOptions) -> bool:
    return options.code is not None or options.format is RuleFormat.markdown


def _document(rule: Rule, found: Diagnostic | None) -> Mapping[str, Any]:
    shown = {"code": rule.code, "severity": rule.severity, "title": rule.title, "explain": rule.explain}
    examples = {"fails": rule.fails, "passes": rule.passes}
    return {**shown, **examples, **({"finding": found.to_json()} if found is not None else {})}
