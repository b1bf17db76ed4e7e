"""Names, keys and algorithms of single certificates: may this one speak for the host, and is it strong enough?"""

from __future__ import annotations

import ipaddress
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cert_help import NOW, Authority, bare, codes, judge
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from examples.cert_triage import describe
from examples.cert_triage.checks import check_strength
from examples.cert_triage.checks.identity import match_dns, matches
from examples.cert_triage.describe import pem
from examples.cert_triage.path import make_case
from examples.cert_triage.samples import HOST, Issued, Profile, issue


@pytest.mark.parametrize(
    ("host", "pattern", "expected"),
    [
        ("a.example.test", "a.example.test", True),
        ("A.Example.TEST", "a.exAMPLE.test", True),
        ("a.example.test.", "a.example.test", True),
        ("a.example.test", "*.example.test", True),
        ("example.test", "*.example.test", False),
        ("b.a.example.test", "*.example.test", False),
        ("abc.example.test", "a*.example.test", False),
        ("a.b.test", "a.*.test", False),
        ("example.test", "*.test", False),
        ("test", "*", False),
        (".example.test", "*.example.test", False),
        ("bücher.example.test", "xn--bcher-kva.example.test", True),
        ("a" * 64 + ".example.test", "*.example.test", False),
        ("", "*.example.test", False),
    ],
)
def test_names_match_by_rfc_9525(host: str, pattern: str, expected: bool) -> None:
    """A wildcard is the whole first label and stands for exactly one label; case and a final dot don't count."""
    assert match_dns(host, pattern) is expected


def test_addresses_match_by_value_and_only_addresses(authority: Authority) -> None:
    """An IP address is compared with the iPAddress names, in any spelling; a DNS name that looks like one is none."""
    address = x509.IPAddress(ipaddress.ip_address("2001:db8::1"))
    leaf = bare(HOST, authority.issuing, x509.SubjectAlternativeName([address, x509.DNSName("10.0.0.1")])).certificate

    assert matches("2001:DB8:0::1", leaf)
    assert not matches("2001:db8::2", leaf)
    assert not matches(
        "10.0.0.1",
        bare(HOST, authority.issuing, x509.SubjectAlternativeName([x509.DNSName("ten.example.test")])).certificate,
    )


def test_the_common_name_is_ignored_with_a_word_about_it(authority: Authority) -> None:
    """A host that stands in the common name only is critical, and the finding says where it stands."""
    found = judge(authority.case([authority.server(names=()), authority.issuing]))

    assert [one.code for one in found] == ["name_only_in_cn"]
    assert HOST in found[0].title


def test_no_names_and_no_host(authority: Authority) -> None:
    """A certificate without names is critical for any host; without a host, that it wasn't judged is a note."""
    nameless = authority.case([authority.server(common_name="x", names=()), authority.issuing])
    hostless = authority.case([authority.server(), authority.issuing], host=None)

    assert codes(nameless) == ["no_names"]
    assert [(one.code, one.severity) for one in judge(hostless)] == [("host_not_judged", "info")]


def test_a_certificate_for_clients_is_no_server_certificate(authority: Authority) -> None:
    """Extended key usage without serverAuth is critical."""
    leaf = authority.server(purpose=ExtendedKeyUsageOID.CLIENT_AUTH)

    assert codes(authority.case([leaf, authority.issuing])) == ["wrong_purpose"]


def test_weak_keys(authority: Authority) -> None:
    """RSA below 2048, EC below 256 and DSA of any size are critical; the evidence names kind and size."""

    def found(leaf: Issued) -> list[tuple[str, str]]:
        return [(one.code, one.evidence) for one in check_strength(authority.case([leaf, authority.issuing]))]

    small = bare(HOST, authority.issuing, key=ec.generate_private_key(ec.SECP224R1()))
    old = bare(HOST, authority.issuing, key=dsa.generate_private_key(1024))

    assert found(authority.server(rsa_bits=2048)) == []
    assert [(code, "RSA 1024" in text) for code, text in found(authority.server(rsa_bits=1024))] == [("weak_key", True)]
    assert [(code, "secp224r1" in text) for code, text in found(small)] == [("weak_key", True)]
    assert [(code, "DSA 1024" in text) for code, text in found(old)] == [("weak_key", True)]


@pytest.mark.parametrize("key", ["ec", "rsa"])
def test_signatures_over_sha1_are_verified_and_called_weak(tmp_path: Path, key: str) -> None:
    """A broken hash is one finding, not also a bad signature, and a self-signed CA over it is still self-signed."""
    kind = ["rsa:2048"] if key == "rsa" else ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    make = ["openssl", "req", "-x509", "-sha1", "-noenc", "-days", "3650", "-newkey", *kind]
    made = {"root": [], "leaf": ["-CA", "root.pem", "-CAkey", "root.key", "-addext", f"subjectAltName=DNS:{HOST}"]}
    for one, more in made.items():
        subprocess.run(
            [*make, "-subj", f"/CN={one}", "-keyout", f"{one}.key", "-out", f"{one}.pem", *more],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
    texts = [(tmp_path / f"{one}.pem").read_text() for one in ("leaf", "root")]
    case = make_case(texts, texts[1:], "test CA file", HOST, datetime.now(UTC))

    assert [(one.code, one.position) for one in judge(case)] == [("root_included", None), ("weak_signature", 0)]
    assert "SHA1" in judge(case)[1].evidence


def test_algorithms_that_nobody_knows_here_are_a_warning(authority: Authority) -> None:
    """What can't be verified is said to be so: neither passed as right nor called a forgery, nor a crash."""
    der = authority.server().certificate.public_bytes(Encoding.DER)
    ecdsa_with_sha256, public_key = bytes.fromhex("2a8648ce3d040302"), bytes.fromhex("2a8648ce3d0201")
    for known in (ecdsa_with_sha256, public_key):
        der = der.replace(known, known[:-1] + b"\x7f")
    leaf = pem(x509.load_der_x509_certificate(der))
    issuing, root = (pem(one.certificate) for one in (authority.issuing, authority.root))
    case = make_case([leaf, issuing], [root], "test CA file", HOST, NOW)
    found = judge(case)

    assert [(one.code, one.severity) for one in found] == [("signature_not_judged", "warning")]
    assert "1.2.840.10045.4.3.127" in found[0].evidence
    assert describe.key(case.leaf) == "unsupported (1.2.840.10045.2.127)"


def test_an_edwards_curve_key_is_named_and_sound(authority: Authority) -> None:
    """Ed25519 has no hash to be broken and no size to be short."""
    case = authority.case([bare(HOST, authority.issuing, key=ed25519.Ed25519PrivateKey.generate()), authority.issuing])

    assert check_strength(case) == []
    assert describe.key(case.leaf) == "Ed25519"


def test_names_of_strangers_stay_on_one_line(authority: Authority) -> None:
    """Line breaks, escapes and text-direction marks in a subject come out as codes, never as themselves."""
    leaf = issue(Profile("evil\nrm -rf /\x1b[2J\u202e", names=("x.example.test",)), NOW, authority.issuing)
    texts = [part for one in judge(authority.case([leaf])) for part in (one.title, one.evidence, one.mend)]

    assert any("evil\\x0arm" in text for text in texts)
    assert all(text.isprintable() for text in texts)
