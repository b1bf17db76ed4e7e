"""Is the bundle complete, in order, and free of strangers?"""

from __future__ import annotations

from urllib.parse import urlsplit

from cryptography import x509
from cryptography.x509.oid import AuthorityInformationAccessOID

from examples.cert_triage.describe import issuer_name, name
from examples.cert_triage.findings import Finding
from examples.cert_triage.path import Case
from examples.cert_triage.signature import self_signed


def check_chain(case: Case) -> list[Finding]:
    """Missing intermediates, order, certificates that belong to nothing, repeated ones, a root that need not be sent.

    The rules are RFC 8446 section 4.4.2: the sender's certificate must come first, each following one should certify
    the one before it, and the trust anchor may be left out.
    """
    return [*_completeness(case), *_order(case), *_extras(case)]


def presented(case: Case) -> tuple[x509.Certificate, ...]:
    """What the server should send: the path as far as it was presented, without a self-signed root."""
    sent = [one for one in case.path if one in case.chain]
    return tuple(one for one in sent if one == case.leaf or not self_signed(one))


def issuer_urls(certificate: x509.Certificate) -> list[str]:
    """Where the issuer's certificate may be fetched: the caIssuers entries (RFC 5280, 4.2.2.1) over HTTP."""
    try:
        access = certificate.extensions.get_extension_for_class(x509.AuthorityInformationAccess).value
    except x509.ExtensionNotFound:
        return []
    urls = [
        entry.access_location.value
        for entry in access
        if entry.access_method == AuthorityInformationAccessOID.CA_ISSUERS
        and isinstance(entry.access_location, x509.UniformResourceIdentifier)
    ]
    return [url for url in urls if urlsplit(url).scheme in ("http", "https") and url.isprintable()]


def _completeness(case: Case) -> list[Finding]:
    leaf = case.leaf
    if len(case.path) > 1 or case.anchored or self_signed(leaf):
        return []
    urls = issuer_urls(leaf)
    where = f"fetch it from {urls[0]}" if urls else f"get it from the CA that calls itself '{issuer_name(leaf)}'"
    return [
        Finding(
            code="missing_intermediate",
            position=0,
            severity="warning" if case.ca_source is None else "critical",
            title="The issuer of the server certificate is missing",
            evidence=f"'{name(leaf)}' names the issuer '{issuer_name(leaf)}', which is neither in the bundle nor "
            f"{'known otherwise (no CA store to look in)' if case.ca_source is None else 'in the CA store'}",
            mend=f"{where} and append it to the bundle; if it is a root of your own, give it as 'ca_file'",
        )
    ]


def _order(case: Case) -> list[Finding]:
    places = [case.chain.index(one) for one in case.path if one in case.chain]
    if places == sorted(places):
        return []
    found = ", ".join(f"{place + 1}. '{name(one)}'" for place, one in enumerate(case.chain))
    wanted = ", ".join(f"'{name(one)}'" for one in presented(case))
    mend = f"write the bundle in this order: {wanted}"
    if places[0] != 0:
        title = f"The server certificate is number {places[0] + 1} of the bundle instead of the first"
        return [Finding(code="leaf_not_first", severity="critical", title=title, evidence=found, mend=mend)]
    title = "The CA certificates are out of order"
    return [Finding(code="out_of_order", severity="warning", title=title, evidence=found, mend=mend)]


def _extras(case: Case) -> list[Finding]:
    found = []
    strangers = [one for one in case.chain if one not in case.path]
    if strangers:
        found.append(
            Finding(
                code="unrelated",
                severity="warning",
                title="The bundle has certificates that belong to no path",
                evidence=", ".join(f"'{name(one)}'" for one in strangers),
                mend="leave them out of the bundle",
            )
        )
    repeated = [one for place, one in enumerate(case.chain) if one in case.chain[:place]]
    if repeated:
        found.append(
            Finding(
                code="duplicate",
                severity="warning",
                title="The bundle repeats certificates",
                evidence=", ".join(f"'{name(one)}'" for one in repeated),
                mend="keep one copy of each",
            )
        )
    if len(case.path) > 1 and case.top in case.chain and self_signed(case.top):
        found.append(
            Finding(
                code="root_included",
                severity="info",
                title="The bundle includes the root",
                evidence=f"'{name(case.top)}' is self-signed; clients have it already or don't trust it",
                mend="leave it out to save bytes in every handshake",
            )
        )
    return found
