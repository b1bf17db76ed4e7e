"""Is every certificate of the path valid now, and for a while yet?"""

from __future__ import annotations

from datetime import timedelta

from cryptography import x509

from examples.cert_triage.describe import label
from examples.cert_triage.findings import Finding
from examples.cert_triage.path import Case

EXPIRES_SOON = timedelta(days=30)


def check_validity(case: Case) -> list[Finding]:
    """Expired, not yet valid, or expiring within 30 days; both ends of the period belong to it (RFC 5280, 4.1.2.5).

    An anchor from the CA store that will expire is nothing the server's operator can renew, and is left out.
    """
    found = []
    for position, certificate in enumerate(case.path):
        finding = _judge(case, position, certificate)
        if finding is not None:
            found.append(finding)
    return found


def _judge(case: Case, position: int, certificate: x509.Certificate) -> Finding | None:
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    who = label(certificate, position)
    owner = "the certificate" if position == 0 else "the CA's certificate in the bundle"
    if case.now > ends:
        return Finding(
            code="expired",
            severity="critical",
            position=position,
            title=f"The {who} has expired",
            evidence=f"valid until {ends:%Y-%m-%d %H:%M:%S} UTC, {_ago(case.now - ends)} before the time judged",
            mend=f"renew {owner} and install it",
        )
    if case.now < begins:
        return Finding(
            code="not_yet_valid",
            severity="critical",
            position=position,
            title=f"The {who} is not valid yet",
            evidence=f"valid from {begins:%Y-%m-%d %H:%M:%S} UTC, {_ago(begins - case.now)} after the time judged",
            mend="check the clocks of this machine and of the CA; if they are right, wait or have it reissued",
        )
    if ends - case.now <= EXPIRES_SOON and not (case.anchored and certificate == case.top):
        return Finding(
            code="expires_soon",
            severity="warning",
            position=position,
            title=f"The {who} expires soon",
            evidence=f"valid until {ends:%Y-%m-%d %H:%M:%S} UTC, {_ago(ends - case.now)} from the time judged",
            mend=f"renew {owner} before that day",
        )
    return None


def _ago(span: timedelta) -> str:
    if span.days:
        return f"{span.days} day{'s' if span.days != 1 else ''}"
    return f"{span.seconds // 3600} h {span.seconds % 3600 // 60} min"
