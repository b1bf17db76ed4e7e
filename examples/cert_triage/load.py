"""Where the evidence comes from: PEM files, TLS servers and CA stores. The only part that reads files and sockets."""

from __future__ import annotations

import binascii
import contextlib
import ipaddress
import re
import socket
import ssl
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from examples.cert_triage.describe import pem

CONNECT_TIMEOUT = 10.0
_PEM_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----\s.*?-----END CERTIFICATE-----", re.DOTALL)
_HOST_PORT = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:/\[\]]+)):(?P<port>\d{1,5})")


class InputError(Exception):
    """An input that can't be used: no such file, no PEM in it, neither a file nor `host:port`, no time."""


class FetchError(ConnectionError):
    """A server gave no certificates: it can't be reached, or the handshake failed before it sent them."""


@dataclass(frozen=True)
class CAStore:
    """Trusted CA certificates (PEM): those of the store that matter for a chain, and where the store is."""

    source: str
    anchors: tuple[str, ...]


def read_target(target: str, hostname: str | None) -> tuple[list[x509.Certificate], str | None]:
    """The presented chain, and the host to judge: `hostname`, else the host of `host:port`, else None.

    Raises InputError for a file that isn't there or isn't PEM, FetchError for a server that gives no certificates.
    """
    if Path(target).is_file():
        return read_bundle(Path(target)), hostname
    address = _HOST_PORT.fullmatch(target)
    if address is None:
        raise InputError(
            f"target '{target}' is neither a file nor 'host:port': check the path, or name a server such as "
            "'example.org:443' ('[::1]:443' for IPv6)"
        )
    if int(address["port"]) > 65535:
        raise InputError(f"target '{target}' names port {address['port']}; the highest is 65535")
    host, port = address["v6"] or address["host"], int(address["port"])
    return fetch_chain(host, port, hostname or host), hostname or host


def read_time(text: str) -> datetime:
    """A time in ISO 8601, in UTC when it names no zone. Raises InputError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"now '{text}' is not an ISO 8601 time such as '2026-06-01T12:00:00Z'") from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def read_bundle(path: Path) -> list[x509.Certificate]:
    """All certificates of a PEM file in their order; other PEM blocks (keys) and text between them are skipped."""
    blocks = _PEM_BLOCK.findall(path.read_bytes())
    if not blocks:
        raise InputError(
            f"file '{path}' has no PEM certificate ('-----BEGIN CERTIFICATE-----'): convert DER with "
            f"'openssl x509 -inform DER -in {path}'"
        )
    return _parse(blocks, x509.load_pem_x509_certificate, f"file '{path}'")


def fetch_chain(host: str, port: int, server_name: str) -> list[x509.Certificate]:
    """The chain as a server presents it in a TLS handshake in which nothing is verified (RFC 8446, 4.4.2).

    `server_name` goes out as SNI unless it is an IP address. Weak keys are let through (OpenSSL security level 0), so
    that they can be reported; TLS below 1.2 is not spoken. Raises
    FetchError, and InputError for a certificate that can't be parsed.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    try:
        with (
            socket.create_connection((host, port), timeout=CONNECT_TIMEOUT) as connection,
            context.wrap_socket(connection, server_hostname=_sni(server_name)) as tls,
        ):
            chain = _presented_chain(tls)
    except (OSError, UnicodeError) as error:
        raise FetchError(
            f"server '{host}:{port}' gave no certificates: {error}; check that it runs and speaks TLS on this port"
        ) from error
    if not chain:
        raise FetchError(f"server '{host}:{port}' identified itself without certificates")
    return _parse(chain, x509.load_der_x509_certificate, f"server '{host}:{port}'")


def read_ca_store(ca_file: str | None, chain: Sequence[x509.Certificate]) -> CAStore | None:
    """Those trusted certificates that bear a subject or issuer name of the chain; None where there is no store.

    `ca_file` None takes the operating system's bundle, as OpenSSL finds it (SSL_CERT_FILE overrides it). Others aren't
    even parsed: bundles have some 150 certificates, among them ones that a strict parser complains about. Names are
    compared in their DER encoding. Raises InputError for a `ca_file` that isn't there or isn't PEM.
    """
    path = ca_file or ssl.get_default_verify_paths().cafile
    if path is None:
        return None
    if not Path(path).is_file():
        raise InputError(f"CA file '{path}' is not a file: give 'ca_file' a PEM file of trusted CA certificates")
    blocks = _PEM_BLOCK.findall(Path(path).read_bytes())
    if not blocks:
        raise InputError(f"CA file '{path}' has no PEM certificate ('-----BEGIN CERTIFICATE-----')")
    wanted = {one.public_bytes() for certificate in chain for one in (certificate.subject, certificate.issuer)}
    anchors = [pem(one) for one in _bearing(blocks, wanted)]
    return CAStore(source=path, anchors=tuple(anchors))


def _parse(encoded: Iterable[bytes], parse: Callable[[bytes], x509.Certificate], where: str) -> list[x509.Certificate]:
    found = []
    for number, one in enumerate(encoded, start=1):
        try:
            found.append(parse(one))
        except ValueError as error:
            raise InputError(f"certificate {number} of {where} can't be parsed: {error}") from error
    return found


def _bearing(blocks: Iterable[bytes], names: Collection[bytes]) -> list[x509.Certificate]:
    found = []
    for block in blocks:
        with contextlib.suppress(binascii.Error):
            der = ssl.PEM_cert_to_DER_cert(block.decode("ascii", "replace"))
            if any(name in der for name in names):
                found.append(x509.load_der_x509_certificate(der))
    return found


def _presented_chain(tls: ssl.SSLSocket) -> list[bytes]:
    """DER of the peer's chain. Python 3.13 has a public method; 3.10 to 3.12 have it on the object below only."""
    public = getattr(tls, "get_unverified_chain", None)
    if public is not None:
        return list(public())
    return [ssl.PEM_cert_to_DER_cert(one.public_bytes()) for one in tls._sslobj.get_unverified_chain() or ()]  # type: ignore[attr-defined]


def _sni(server_name: str) -> str | None:
    try:
        ipaddress.ip_address(server_name)
    except ValueError:
        return server_name
    return None
