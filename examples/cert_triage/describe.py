"""How certificates are put into words that are safe in a terminal, in Markdown and in a shell comment."""

from __future__ import annotations

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa


def printable(text: str) -> str:
    """The text on one line: whoever made a certificate chose its names, and may have put line breaks or escapes in."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def name(certificate: x509.Certificate) -> str:
    """Subject of a certificate by RFC 4514, or its serial number when the subject is empty."""
    subject = certificate.subject.rfc4514_string()
    return printable(subject) if subject else f"serial {certificate.serial_number:x}"


def issuer_name(certificate: x509.Certificate) -> str:
    """Issuer of a certificate by RFC 4514."""
    return printable(certificate.issuer.rfc4514_string())


def label(certificate: x509.Certificate, position: int) -> str:
    """A certificate as the subject of a sentence: what it is in the path, and its name."""
    return f"{'server' if position == 0 else 'CA'} certificate '{name(certificate)}'"


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 over the DER encoding, in the upper-case colon form of `openssl x509 -fingerprint -sha256`."""
    return certificate.fingerprint(hashes.SHA256()).hex(":").upper()


def key(certificate: x509.Certificate) -> str:
    """Kind and size of the public key, such as 'RSA 2048' or 'EC secp256r1'."""
    try:
        public = certificate.public_key()
    except (UnsupportedAlgorithm, ValueError):
        return f"unsupported ({certificate.public_key_algorithm_oid.dotted_string})"
    if isinstance(public, rsa.RSAPublicKey):
        return f"RSA {public.key_size}"
    if isinstance(public, ec.EllipticCurvePublicKey):
        return f"EC {public.curve.name}"
    if isinstance(public, dsa.DSAPublicKey):
        return f"DSA {public.key_size}"
    if isinstance(public, ed25519.Ed25519PublicKey):
        return "Ed25519"
    return "Ed448" if isinstance(public, ed448.Ed448PublicKey) else type(public).__name__


def pem(certificate: x509.Certificate) -> str:
    """PEM text of a certificate, with a line break at its end."""
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
