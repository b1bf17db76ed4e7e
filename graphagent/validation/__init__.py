"""What is wrong with a graph, found before it runs: rules, soundness, data flow, compatibility, reports."""

from graphagent.validation.document import Source, load_document, read_document
from graphagent.validation.facts import Bounds, Facts
from graphagent.validation.registry import Family, Rule
from graphagent.validation.report import Diagnostic, Report, Stats, TraceStep
from graphagent.validation.subject import Subject
from graphagent.validation.validate import validate

__all__ = [
    "Bounds",
    "Diagnostic",
    "Facts",
    "Family",
    "Report",
    "Rule",
    "Source",
    "Stats",
    "Subject",
    "TraceStep",
    "load_document",
    "read_document",
    "validate",
]
