"""Was each certificate of the path really issued by the next one?"""

from __future__ import annotations

from cryptography import x509

from examples.cert_triage.describe import key, label, name
from examples.cert_triage.findings import Finding
from examples.cert_triage.path import Case, is_ca
from examples.cert_triage.signature import Signature, check_signature


def check_links(case: Case) -> list[Finding]:
    """Verifies every signature of the path, and the issuer's right to make it (RFC 5280, 6.1.3 a and 6.1.4 k to n).

    The right of an anchor is not judged: that it is in the CA store is its right.
    """
    found = []
    for position, issuer in enumerate(case.path[1:], start=1):
        child = case.path[position - 1]
        signature = check_signature(child, issuer)
        if signature != "valid":
            found.append(_signature(signature, child, issuer, position - 1))
        if not (case.anchored and issuer == case.top):
            found += _right_to_sign(case, position)
    return found


def _signature(signature: Signature, child: x509.Certificate, issuer: x509.Certificate, position: int) -> Finding:
    if signature == "unknown":
        return Finding(
            code="signature_not_judged",
            severity="warning",
            position=position,
            title=f"The signature of the {label(child, position)} could not be verified",
            evidence=f"algorithm {child.signature_algorithm_oid.dotted_string}, key of '{name(issuer)}': {key(issuer)}",
            mend="have it verified by a program that knows this algorithm; many clients don't",
        )
    return Finding(
        code="bad_signature",
        severity="critical",
        position=position,
        title=f"The signature of the {label(child, position)} is not its issuer's",
        evidence=f"the public key of '{name(issuer)}' does not verify it, though the names fit",
        mend="the certificate was altered, or the CA certificate belongs to another key of the same name: "
        "take both again from the CA",
    )


def _right_to_sign(case: Case, position: int) -> list[Finding]:
    issuer = case.path[position]
    if not (is_ca(issuer) and _may_sign_certificates(issuer)):
        return [
            Finding(
                code="issuer_not_ca",
                severity="critical",
                position=position,
                title=f"The {label(issuer, position)} may not issue certificates",
                evidence="basic constraints say no CA, or key usage leaves out keyCertSign",
                mend="have the certificate below it issued by a CA",
            )
        ]
    limit = _path_length(issuer)
    below = sum(one.subject != one.issuer for one in case.path[1:position])
    if limit is None or below <= limit:
        return []
    return [
        Finding(
            code="path_too_long",
            severity="critical",
            position=position,
            title=f"Too many CA certificates below the {label(issuer, position)}",
            evidence=f"its path length is {limit}, and {below} follow before the server certificate",
            mend="have the server certificate issued by a CA nearer to the root",
        )
    ]


def _may_sign_certificates(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        return True


def _path_length(certificate: x509.Certificate) -> int | None:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length
    except x509.ExtensionNotFound:
        return None
