"""The verdicts against two independent judges: `openssl verify` and `cryptography.x509.verification`."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from cert_help import NOW, Authority, codes, sample_case, tls_server
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from examples.cert_triage.checks.identity import match_dns
from examples.cert_triage.load import read_target
from examples.cert_triage.path import Case
from examples.cert_triage.samples import HOST, Issued, Profile, Sample, issue, make_samples, write_bundle

# what X509_verify_cert says (x509_vfy.h), and whether cryptography accepts the path
JUDGES = {
    "healthy": (None, True),
    "expiring": (None, True),
    "out-of-order": (None, True),
    "expired": (10, False),  # certificate has expired
    "missing-intermediate": (20, False),  # unable to get local issuer certificate
    "wrong-host": (62, False),  # hostname mismatch
    "weak-key": (66, True),  # EE certificate key too weak; cryptography judges the keys of CAs only
    "self-signed": (18, False),  # self-signed certificate
    "leaf-last": (26, False),  # unsupported certificate purpose: the first of the bundle is a CA
}


def openssl_verify(bundle: Path, ca_file: Path, host: str = HOST) -> int | None:
    """Error number of `openssl verify` as a TLS client would call it; None for OK."""
    options = ["-CAfile", str(ca_file), "-untrusted", str(bundle), "-verify_hostname", host]
    done = subprocess.run(
        ["openssl", "verify", *options, "-purpose", "sslserver", "-auth_level", "2",
         "-attime", str(int(NOW.timestamp())), str(bundle)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.search(r"error (\d+) at", done.stderr)
    assert (done.returncode == 0) == (found is None), done.stderr
    return int(found[1]) if found else None


def cryptography_accepts(case: Case, host: str, roots: Path) -> bool:
    """Whether the first certificate of the bundle is accepted for the host, with the others as intermediates."""
    store = Store(x509.load_pem_x509_certificates(roots.read_bytes()))
    verifier = PolicyBuilder().store(store).time(NOW).build_server_verifier(x509.DNSName(host))
    try:
        verifier.verify(case.chain[0], list(case.chain[1:]))
    except VerificationError:
        return False
    return True


@pytest.mark.parametrize("name", JUDGES)
def test_openssl_and_cryptography_agree_with_the_verdict(samples: dict[str, Sample], name: str) -> None:
    """What is critical here is refused by both, for the same reason; what is not is accepted by both."""
    sample = samples[name]
    error, accepted = JUDGES[name]

    assert openssl_verify(sample.bundle, sample.ca_file) == error
    assert cryptography_accepts(sample_case(sample), sample.host, sample.ca_file) is accepted
    assert (sample.verdict == "critical") is (error is not None)


def test_every_sample_is_cross_checked(samples: dict[str, Sample]) -> None:
    """No sample is without the opinion of the two judges."""
    assert set(JUDGES) == set(samples)


def fault(authority: Authority, name: str) -> list[Issued]:
    """A chain with a fault that no sample has."""
    root, issuing = authority.root, authority.issuing
    ca = Profile("Odd CA", days=(-400, 400), authority=True)
    if name == "namesake":
        return [authority.server(), issue(replace(ca, common_name="Test Issuing CA"), NOW, root)]
    if name == "not-a-ca":
        middle = authority.server(common_name="Odd CA")
        return [issue(Profile(HOST, names=(HOST,)), NOW, middle), middle, issuing]
    if name == "path-length":
        middle = issue(ca, NOW, issuing)
        return [issue(Profile(HOST, names=(HOST,)), NOW, middle), middle, issuing]
    if name == "untrusted-root":
        other = issue(ca, NOW)
        return [issue(Profile(HOST, names=(HOST,)), NOW, other), other]
    if name == "weak-ca":
        weak = issue(replace(ca, rsa_bits=1024), NOW, root)
        return [issue(Profile(HOST, names=(HOST,)), NOW, weak), weak]
    changes: dict[str, dict[str, object]] = {
        "early": {"days": (1, 90)},
        "client": {"purpose": ExtendedKeyUsageOID.CLIENT_AUTH},
    }
    return [authority.server(**changes[name]), issuing]


@pytest.mark.parametrize(
    ("name", "code", "error"),
    [
        ("early", "not_yet_valid", 9),  # certificate is not yet valid
        ("client", "wrong_purpose", 26),  # unsupported certificate purpose
        ("namesake", "bad_signature", 20),  # no issuer: the key identifiers differ, so it isn't even tried
        ("not-a-ca", "issuer_not_ca", 79),  # invalid CA certificate
        ("path-length", "path_too_long", 25),  # path length constraint exceeded
        ("untrusted-root", "untrusted_root", 19),  # self-signed certificate in certificate chain
        ("weak-ca", "weak_key", 67),  # CA certificate key too weak
    ],
)
def test_both_judges_refuse_the_other_faults_too(
    tmp_path: Path, authority: Authority, name: str, code: str, error: int
) -> None:
    """Critical faults that no sample has: both refuse them, openssl for the same reason."""
    chain = fault(authority, name)
    bundle, ca_file = write_bundle(tmp_path / "b.pem", chain), write_bundle(tmp_path / "ca.pem", [authority.root])
    case = authority.case(chain)

    assert code in codes(case)
    assert openssl_verify(bundle, ca_file) == error
    assert not cryptography_accepts(case, HOST, ca_file)


def test_wildcards_match_as_in_openssl(tmp_path: Path, authority: Authority) -> None:
    """`openssl x509 -checkhost` decides the same for every pair of host and name."""
    hosts = ["a.example.test", "A.EXAMPLE.test", "example.test", "b.a.example.test", "abc.example.test", "test"]
    for pattern in ["a.example.test", "*.example.test", "*.a.example.test", "*.test", "example.test"]:
        path = write_bundle(tmp_path / "leaf.pem", [authority.server(names=(pattern,))])
        for host in hosts:
            done = subprocess.run(
                ["openssl", "x509", "-in", str(path), "-noout", "-checkhost", host],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert match_dns(host, pattern) is ("does match" in done.stdout), (host, pattern)


def test_a_live_server_is_judged_as_s_client_judges_it(tmp_path: Path, authority: Authority) -> None:
    """The chain that is fetched over TLS is the one that `openssl s_client` sees, and both find it right."""
    chain = [authority.server(), authority.issuing]
    ca_file = write_bundle(tmp_path / "ca.pem", [authority.root])
    with tls_server(tmp_path, chain) as target:
        fetched, _ = read_target(target, HOST)
        done = subprocess.run(
            ["openssl", "s_client", "-connect", target, "-CAfile", str(ca_file), "-verify_hostname", HOST,
             "-servername", HOST, "-attime", str(int(NOW.timestamp())), "-showcerts"],
            capture_output=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    start = done.stdout.index(b"-----BEGIN CERTIFICATE")

    assert b"Verify return code: 0 (ok)" in done.stdout
    assert x509.load_pem_x509_certificates(done.stdout[start:]) == fetched
    assert codes(authority.case(chain)) == []


def test_samples_differ_in_keys_and_signatures_only(tmp_path: Path) -> None:
    """Making them again for the same time gives the same names, serial numbers, dates and order."""

    def facts(folder: Path) -> list[tuple[object, ...]]:
        return [
            (sample.name, one.subject, one.issuer, one.serial_number, one.not_valid_before_utc, one.not_valid_after_utc)
            for sample in make_samples(folder, NOW)
            for one in x509.load_pem_x509_certificates(sample.bundle.read_bytes())
        ]

    assert facts(tmp_path / "one") == facts(tmp_path / "two")
