"""Are the keys long enough and the signatures made with a sound hash?"""

from __future__ import annotations

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa

from examples.cert_triage.describe import key, label
from examples.cert_triage.findings import Finding
from examples.cert_triage.path import Case
from examples.cert_triage.signature import BROKEN_HASHES, hash_name, self_signed

MIN_RSA_BITS = 2048
MIN_EC_BITS = 256


def check_strength(case: Case) -> list[Finding]:
    """Minimal sizes and hashes of the CA/Browser Forum's Baseline Requirements (6.1.5 and 7.1.3.2).

    The signature of a self-signed CA proves nothing and nobody checks it, so its hash is left out.
    """
    found = []
    for position, certificate in enumerate(case.path):
        who = label(certificate, position)
        if _weak_key(certificate):
            found.append(
                Finding(
                    code="weak_key",
                    severity="critical",
                    position=position,
                    title=f"The key of the {who} is weak",
                    evidence=f"{key(certificate)}; the least are RSA {MIN_RSA_BITS} and EC {MIN_EC_BITS}",
                    mend="make a new key (EC P-256) and have a certificate issued for it",
                )
            )
        digest = hash_name(certificate)
        if digest in BROKEN_HASHES and not (position > 0 and self_signed(certificate)):
            found.append(
                Finding(
                    code="weak_signature",
                    severity="critical",
                    position=position,
                    title=f"The {who} is signed with a broken hash",
                    evidence=f"{digest.upper()}: signatures over it can be forged",
                    mend="have the certificate reissued with SHA-256 or better",
                )
            )
    return found


def _weak_key(certificate: x509.Certificate) -> bool:
    try:
        public = certificate.public_key()
    except (UnsupportedAlgorithm, ValueError):
        return False
    if isinstance(public, rsa.RSAPublicKey):
        return public.key_size < MIN_RSA_BITS
    if isinstance(public, ec.EllipticCurvePublicKey):
        return public.key_size < MIN_EC_BITS
    return isinstance(public, dsa.DSAPublicKey)
