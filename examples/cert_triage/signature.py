"""Did this issuer's key make the signature of that certificate?"""

from __future__ import annotations

from typing import Literal

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, padding, rsa

BROKEN_HASHES = ("md5", "sha1")

Signature = Literal["valid", "invalid", "unknown"]


def check_signature(certificate: x509.Certificate, issuer: x509.Certificate) -> Signature:
    """Verifies a signature; `unknown` when key or algorithm are none that can be checked here.

    A signature is invalid too when the issuer's name isn't the one that the certificate gives.
    """
    if certificate.issuer != issuer.subject:
        return "invalid"
    try:
        digest = certificate.signature_hash_algorithm
        if digest is not None and digest.name in BROKEN_HASHES:
            _verify_old(certificate, issuer, digest)
        else:
            certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError):
        return "invalid"
    except (UnsupportedAlgorithm, TypeError):
        return "unknown"
    return "valid"


def signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether the signature is surely the issuer's."""
    return check_signature(certificate, issuer) == "valid"


def self_signed(certificate: x509.Certificate) -> bool:
    """Whether a certificate is signed with its own key."""
    return signed_by(certificate, certificate)


def hash_name(certificate: x509.Certificate) -> str:
    """Name of the hash that was signed, in lower case; empty when the algorithm has none or is not known."""
    try:
        digest = certificate.signature_hash_algorithm
    except UnsupportedAlgorithm:
        return ""
    return digest.name if digest is not None else ""


def _verify_old(certificate: x509.Certificate, issuer: x509.Certificate, digest: hashes.HashAlgorithm) -> None:
    """`verify_directly_issued_by` refuses MD5 and SHA-1, and a fifth of the roots that Debian ships are signed so."""
    key, signature, signed = issuer.public_key(), certificate.signature, certificate.tbs_certificate_bytes
    if isinstance(key, rsa.RSAPublicKey):
        key.verify(signature, signed, padding.PKCS1v15(), digest)
    elif isinstance(key, ec.EllipticCurvePublicKey):
        key.verify(signature, signed, ec.ECDSA(digest))
    elif isinstance(key, dsa.DSAPublicKey):
        key.verify(signature, signed, digest)
    else:
        raise UnsupportedAlgorithm(f"no {digest.name} signature fits the issuer's key")
