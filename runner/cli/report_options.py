"""What can be said to the command that makes reports; the docstring of the class is the command's help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from runner.cli.options import Lineage, Namespace, Typed


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Typed):
    """Report how a stored run went, and why it stopped.

    As one HTML file that needs nothing else, to attach to a ticket, as Markdown, or as JUnit XML; without a file it
    prints Markdown. With --graph it has the picture, typed values and what each node wrote.
    """

    lineage: Lineage
    namespace: Namespace = ""
    html: Annotated[str | None, Option("--html", metavar="FILE", help="Write a page to this file.")] = None
    markdown: Annotated[str | None, Option("--markdown", metavar="FILE", help="Write Markdown to this file.")] = None
    junit: Annotated[str | None, Option("--junit", metavar="FILE", help="Write JUnit XML to this file.")] = None
