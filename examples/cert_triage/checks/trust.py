"""Does the path end at a CA that is trusted?"""

from __future__ import annotations

from examples.cert_triage.describe import fingerprint, issuer_name, label, name
from examples.cert_triage.findings import Finding
from examples.cert_triage.path import Case
from examples.cert_triage.signature import self_signed


def check_trust(case: Case) -> list[Finding]:
    """Self-signed, ending at a root that isn't in the CA store, or at an issuer that nobody knows.

    Every certificate of the CA store is an anchor, also one that isn't self-signed (RFC 5280, 6.1.1 d; OpenSSL wants
    `-partial_chain` for it). A path that stops right at the server certificate is `check_chain`'s to report.
    """
    if case.anchored:
        return []
    top, position = case.top, len(case.path) - 1
    if case.ca_source is None:
        return [_not_judged("there is no CA store on this machine", "give 'ca_file', a PEM file of trusted CAs")]
    if not self_signed(top):
        if position == 0:
            return [_not_judged("the path stops at the server certificate", "mend the bundle first")]
        return [
            Finding(
                code="unknown_issuer",
                severity="critical",
                position=position,
                title=f"Nobody knows the issuer of the {label(top, position)}",
                evidence=f"'{issuer_name(top)}' is neither in the bundle nor in the CA store ({case.ca_source})",
                mend="append the missing CA certificate, or have the CA that you mean to trust added to the CA store",
            )
        ]
    if position == 0:
        return [
            Finding(
                code="self_signed",
                severity="critical",
                position=0,
                title="The server certificate is self-signed",
                evidence=f"'{name(top)}' is its own issuer and not in the CA store ({case.ca_source})",
                mend="have a certificate issued by a CA that your clients trust",
            )
        ]
    return [
        Finding(
            code="untrusted_root",
            severity="critical",
            position=position,
            title=f"The root '{name(top)}' is not trusted",
            evidence=f"not in the CA store ({case.ca_source}); SHA-256 {fingerprint(top)}",
            mend="use a certificate of a trusted CA, or add the root to the CA store after comparing its fingerprint",
        )
    ]


def _not_judged(evidence: str, mend: str) -> Finding:
    title = "Whether the CA is trusted was not judged"
    return Finding(code="trust_not_judged", severity="info", title=title, evidence=evidence, mend=mend)
