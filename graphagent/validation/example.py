"""The examples of rules, judged: `report(text)` validates a graph in the notation as rule pages and tests do."""

from __future__ import annotations

from dataclasses import replace

from graphagent.validation.document import load_document
from graphagent.validation.notation import parse_notation
from graphagent.validation.report import Diagnostic, Report
from graphagent.validation.validate import validate


def report(text: str) -> Report:
    """What is wrong with the graph of a text in the notation, by the eager engine unless the text names another.

    Raises UsageError for a text that is no graph.
    """
    doc = parse_notation(text, "example")
    source = load_document(doc, path="example")
    facts = source.facts if "engine" in doc else replace(source.facts, engine="eager")
    return validate(source.builder, facts=facts)


def finding(text: str, code: str) -> Diagnostic | None:
    """The first finding with that code on the graph of the text, or None."""
    return next((found for found in report(text).findings if found.code == code), None)
