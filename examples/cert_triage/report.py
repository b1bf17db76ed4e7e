"""What the person reads: the report of a triage as data and as Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel

from examples.cert_triage import describe
from examples.cert_triage.findings import Finding, Verdict
from examples.cert_triage.path import Case

NOT_CHECKED = (
    "revocation (OCSP, CRL)",
    "certificate transparency",
    "name constraints and policies of CAs",
    "protocol versions and ciphers of the server",
)


class CertificateFacts(BaseModel):
    """One certificate of the path."""

    subject: str
    issuer: str
    not_before: datetime
    not_after: datetime
    key: str
    sha256: str
    source: str
    """`bundle`, or `CA store` when it was not presented."""


class Report(BaseModel):
    """All that a triage found. `script` is None when no script was written, `approve` is None when nobody was asked."""

    target: str
    host: str | None
    judged_at: datetime
    ca_source: str | None
    verdict: Verdict
    presented: int
    """How many certificates the bundle or the server gave."""
    path: list[CertificateFacts]
    findings: list[Finding]
    approve: str | None
    script: str | None
    not_checked: list[str] = list(NOT_CHECKED)


def make_report(
    target: str, case: Case, findings: Sequence[Finding], verdict: Verdict, approve: str | None, script: str | None
) -> Report:
    """The report of a case; findings come worst first, in the order of the checks among equals."""
    rank = {"critical": 0, "warning": 1, "info": 2}
    return Report(
        target=target,
        host=case.host,
        judged_at=case.now,
        ca_source=case.ca_source,
        verdict=verdict,
        presented=len(case.chain),
        path=_facts(case),
        findings=sorted(findings, key=lambda one: rank[one.severity]),
        approve=approve,
        script=script,
    )


def markdown(report: Report) -> str:
    """The report as Markdown."""
    lines = [
        f"# TLS certificate of {_plain(report.target)}: {report.verdict.upper()}",
        "",
        f"- Host: {_plain(report.host) if report.host else 'not given'}",
        f"- Judged at: {report.judged_at.isoformat()}",
        f"- CA store: {_plain(report.ca_source) if report.ca_source else 'none'}",
        f"- Certificates presented: {report.presented}",
        f"- Remediation: {_remediation(report)}",
        "",
        "## Findings",
        "",
        *(_finding(one) for one in report.findings),
        *(["None: every check passed.", ""] if not report.findings else []),
        "## Path",
        "",
        "| # | subject | issuer | valid until (UTC) | key | from |",
        "|---|---|---|---|---|---|",
        *(
            f"| {position} | {_plain(one.subject)} | {_plain(one.issuer)} | {one.not_after:%Y-%m-%d %H:%M} "
            f"| {_plain(one.key)} | {one.source} |"
            for position, one in enumerate(report.path)
        ),
        "",
        "## See for yourself",
        "",
        *(f"    {line}" for line in _commands(report)),
        "",
        f"Not checked: {'; '.join(report.not_checked)}.",
        "",
    ]
    return "\n".join(lines)


def _facts(case: Case) -> list[CertificateFacts]:
    return [
        CertificateFacts(
            subject=describe.name(one),
            issuer=describe.issuer_name(one),
            not_before=one.not_valid_before_utc,
            not_after=one.not_valid_after_utc,
            key=describe.key(one),
            sha256=describe.fingerprint(one),
            source="bundle" if one in case.chain else "CA store",
        )
        for one in case.path
    ]


def _finding(finding: Finding) -> str:
    return (
        f"### {finding.severity}: {_plain(finding.title)} (`{finding.code}`)\n\n"
        f"- Evidence: {_plain(finding.evidence)}\n- Mend: {_plain(finding.mend)}\n"
    )


def _remediation(report: Report) -> str:
    if report.script is not None:
        return f"script written to {_plain(report.script)}"
    return "refused, no script written" if report.approve == "no" else "no script needed"


def _commands(report: Report) -> list[str]:
    target = shlex.quote(describe.printable(report.target))
    name = f" -verify_hostname {shlex.quote(describe.printable(report.host))}" if report.host else ""
    store = f" -CAfile {shlex.quote(describe.printable(report.ca_source))}" if report.ca_source else ""
    if report.path and report.target.rpartition(":")[2].isdigit():
        server = f" -servername {shlex.quote(describe.printable(report.host))}" if report.host else ""
        return [f"openssl s_client -connect {target}{server}{store}{name} -showcerts </dev/null"]
    when = f" -attime {int(report.judged_at.timestamp())}"
    return [
        f"openssl verify{store}{when} -auth_level 2 -purpose sslserver{name} -untrusted {target} {target}",
        f"openssl storeutl -noout -text -certs {target}",
    ]


def _plain(text: str) -> str:
    """Text that Markdown shows as it is: characters that would be markup are escaped."""
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#" else char for char in describe.printable(text))
