"""Which certificates lead from the server's own to a CA: the path that all checks judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509

from examples.cert_triage.signature import self_signed, signed_by


@dataclass(frozen=True)
class Case:
    """The evidence of one triage in parsed form.

    `chain` is what was presented, in that order. `path` starts at the server's certificate and follows the issuers as
    far as chain and CA store go; `anchored` says that its last one is in the CA store. `ca_source` None: there is no
    CA store. `now` has a zone.
    """

    chain: tuple[x509.Certificate, ...]
    path: tuple[x509.Certificate, ...]
    anchored: bool
    ca_source: str | None
    host: str | None
    now: datetime

    @property
    def leaf(self) -> x509.Certificate:
        """The server's own certificate."""
        return self.path[0]

    @property
    def top(self) -> x509.Certificate:
        """The last certificate of the path."""
        return self.path[-1]


def make_case(
    chain: Sequence[str], anchors: Sequence[str], ca_source: str | None, host: str | None, now: datetime
) -> Case:
    """The case of a presented chain and of the anchors of a CA store, both as PEM texts; the chain is not empty."""
    given = [x509.load_pem_x509_certificate(one.encode()) for one in chain]
    trusted = [x509.load_pem_x509_certificate(one.encode()) for one in anchors]
    path, anchored = build_path(given, trusted, now)
    return Case(tuple(given), path, anchored, ca_source, host, now)


def is_ca(certificate: x509.Certificate) -> bool:
    """Whether basic constraints (RFC 5280, 4.2.1.9) make this a CA certificate."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def find_leaf(chain: Sequence[x509.Certificate]) -> x509.Certificate:
    """The server's certificate: the first that issued none of the others and is no CA, else the first of all."""
    tips = [one for one in chain if not any(other.issuer == one.subject for other in chain if other != one)]
    return next((one for one in tips if not is_ca(one)), chain[0])


def build_path(
    chain: Sequence[x509.Certificate], anchors: Sequence[x509.Certificate], now: datetime
) -> tuple[tuple[x509.Certificate, ...], bool]:
    """The path from the server's certificate upward, and whether it ends in an anchor.

    RFC 5280 section 6 judges a path that is given; this finds one. Where several certificates bear the issuer's name
    (cross-signed CAs), the one whose key fits is taken, of those a trusted one, of those one that is valid now, of
    those one that is not self-signed. There is no way back from a choice, as in OpenSSL. A name that fits though no
    key does stays in the path, so that the check of signatures can report it.
    """
    path = [find_leaf(chain)]
    known = [*anchors, *(one for one in chain if one not in anchors)]
    while path[-1] not in anchors and not self_signed(path[-1]):
        child = path[-1]
        issuers = [one for one in known if one.subject == child.issuer and one not in path]
        if not issuers:
            break
        path.append(max(issuers, key=lambda one: _preference(child, one, anchors, now)))
    return tuple(path), path[-1] in anchors


def _preference(
    child: x509.Certificate, issuer: x509.Certificate, anchors: Sequence[x509.Certificate], now: datetime
) -> tuple[bool, ...]:
    valid = issuer.not_valid_before_utc <= now <= issuer.not_valid_after_utc
    return signed_by(child, issuer), issuer in anchors, valid, not self_signed(issuer)
