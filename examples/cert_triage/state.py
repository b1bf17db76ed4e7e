"""What a triage knows: its input, the evidence it took, and what it concluded."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel

from examples.cert_triage.findings import Finding, Verdict
from graphagent.graph.reducers import append


class TriageState(BaseModel):
    """State of one triage. A lineage holds one triage: findings of a second turn would be appended to the first's."""

    # input
    target: str
    """Path of a PEM bundle, or `host:port`."""
    hostname: str | None = None
    """Name or IP address that clients use; None takes the host of `host:port`, and judges no name for a file."""
    ca_file: str | None = None
    """PEM file of trusted CA certificates; None takes the operating system's bundle."""
    now: str | None = None
    """ISO 8601 time to judge at (UTC when it names no zone); None takes the clock of the run."""
    out_dir: str = "."
    """Folder for report and script."""

    # evidence, taken once by `load`; every later node is a function of it
    chain: list[str] = []
    """The certificates as presented, PEM, server's certificate first if the server keeps the rules."""
    anchors: list[str] = []
    """Those trusted CA certificates that bear a name which the chain mentions, PEM."""
    ca_source: str | None = None
    """Where trusted CA certificates were read from; None when there are none, and trust can't be judged."""
    host: str | None = None
    """The name that is judged: `hostname`, or what stands for it."""
    judged_at: datetime | None = None
    """The time that is judged at."""

    # conclusions
    findings: Annotated[list[Finding], append] = []
    severity: Verdict | None = None
    approve: Literal["yes", "no"] | None = None
    """The answer to 'may a remediation script be written?'; None when nobody was asked."""
    script: str | None = None
    """Path of the remediation script, if one was written."""
    report: str | None = None
    """Path of the Markdown report; the JSON report lies beside it."""
