"""May the server certificate speak for this host?"""

from __future__ import annotations

import ipaddress

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from examples.cert_triage.describe import printable
from examples.cert_triage.findings import Finding
from examples.cert_triage.path import Case


def check_identity(case: Case) -> list[Finding]:
    """The host name against the subject alternative names, and the purpose against 'TLS server'."""
    return [*_purpose(case.leaf), *_names(case)]


def names(certificate: x509.Certificate) -> list[str]:
    """DNS names and IP addresses of the subject alternative name extension, as text, in its order."""
    try:
        san = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [printable(str(one.value)) for one in san if isinstance(one, x509.DNSName | x509.IPAddress)]


def matches(host: str, certificate: x509.Certificate) -> bool:
    """Whether one of the certificate's names stands for the host: an IP address by value, a name by RFC 9525."""
    address = _address(host)
    if address is not None:
        return any(_address(one) == address for one in names(certificate))
    return any(match_dns(host, one) for one in names(certificate) if _address(one) is None)


def match_dns(host: str, pattern: str) -> bool:
    """RFC 9525 section 6.3: case doesn't count; `*` stands for exactly one label and must be the whole first label.

    Like browsers and OpenSSL this wants two labels or more after the `*`. A host with other letters is compared in its
    IDNA 2003 form. A dot at the end of the host (the DNS root) doesn't count.
    """
    try:
        wanted = host.rstrip(".").encode("idna").decode().lower().split(".")
    except UnicodeError:
        return False
    given = pattern.lower().split(".")
    if given[0] == "*" and len(given) >= 3:
        return len(wanted) == len(given) and bool(wanted[0]) and wanted[1:] == given[1:]
    return "*" not in pattern and wanted == given


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _common_names(certificate: x509.Certificate) -> list[str]:
    return [printable(str(one.value)) for one in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]


def _purpose(leaf: x509.Certificate) -> list[Finding]:
    try:
        purposes = list(leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        return []
    if ExtendedKeyUsageOID.SERVER_AUTH in purposes or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in purposes:
        return []
    return [
        Finding(
            code="wrong_purpose",
            severity="critical",
            position=0,
            title="The server certificate is not meant for TLS servers",
            evidence=f"extended key usage: {', '.join(one.dotted_string for one in purposes)}",
            mend="request a certificate with the extended key usage serverAuth",
        )
    ]


def _names(case: Case) -> list[Finding]:
    host, given = case.host, names(case.leaf)
    shown = ", ".join(f"'{one}'" for one in given[:12]) + (f" and {len(given) - 12} more" if len(given) > 12 else "")
    if not given:
        return [_without_names(case)]
    if host is None:
        return [
            Finding(
                code="host_not_judged",
                severity="info",
                title="No host name to compare with",
                evidence=f"the certificate is for {shown}",
                mend="give 'hostname' to have it judged",
            )
        ]
    if matches(host, case.leaf):
        return []
    return [
        Finding(
            code="host_mismatch",
            severity="critical",
            position=0,
            title=f"The certificate is not for '{printable(host)}'",
            evidence=f"it is for {shown}",
            mend=f"request a certificate that has '{printable(host)}' among its subject alternative names",
        )
    ]


def _without_names(case: Case) -> Finding:
    common = _common_names(case.leaf)
    mend = "request a certificate whose subject alternative names hold the host name"
    if case.host is not None and any(match_dns(case.host, one) for one in common):
        return Finding(
            code="name_only_in_cn",
            severity="critical",
            position=0,
            title=f"'{printable(case.host)}' stands in the common name only, where clients don't look any more",
            evidence="there are no subject alternative names, and RFC 9525 ignores the common name",
            mend=mend,
        )
    return Finding(
        code="no_names",
        severity="critical",
        position=0,
        title="The server certificate has no host names",
        evidence="there are no DNS names or IP addresses among its subject alternative names",
        mend=mend,
    )
