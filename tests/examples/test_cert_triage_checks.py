"""Each check on chains that were issued to be faulty in one respect."""

from __future__ import annotations

import ipaddress
import itertools
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cert_help import NOW, Authority, codes, judge, sample_case
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from examples.cert_triage import describe
from examples.cert_triage.checks import check_chain, check_strength, check_validity
from examples.cert_triage.checks.identity import match_dns, matches
from examples.cert_triage.describe import pem
from examples.cert_triage.findings import Finding, verdict
from examples.cert_triage.path import Case, make_case
from examples.cert_triage.samples import HOST, Issued, Profile, Sample, issue


def bare(subject: str, issuer: Issued, *extensions: x509.ExtensionType, key: object = None) -> Issued:
    """A certificate with only the given extensions, for what `Profile` can't say."""
    own = key or ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(issuer.certificate.subject)
        .public_key(own.public_key())  # type: ignore[attr-defined]
        .serial_number(7)
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=90))
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return Issued(builder.sign(issuer.key, hashes.SHA256()), own)  # type: ignore[arg-type]


def test_samples_have_the_verdict_and_the_findings_they_were_made_for(samples: dict[str, Sample]) -> None:
    """Every sample yields exactly the findings, and the verdict, that its maker states."""
    for sample in samples.values():
        found = judge(sample_case(sample))

        assert [one.code for one in found if one.severity != "info"] == list(sample.codes), sample.name
        assert verdict(found) == sample.verdict, sample.name


def test_a_healthy_chain_has_no_findings_at_all(authority: Authority) -> None:
    """Nothing is said about a chain that is right, not even a note."""
    assert judge(authority.case([authority.server(), authority.issuing])) == []


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-1, "expired"), (0, "expires_soon"), (30 * 86400, "expires_soon"), (30 * 86400 + 1, None)],
)
def test_both_ends_of_the_validity_period_belong_to_it(
    authority: Authority, seconds: int, expected: str | None
) -> None:
    """A certificate is valid in its last second, and 'soon' means 30 days or less."""
    case = authority.case([authority.server(), authority.issuing])
    judged = replace(case, now=case.leaf.not_valid_after_utc - timedelta(seconds=seconds))

    assert [one.code for one in check_validity(judged) if one.position == 0] == ([expected] if expected else [])


def test_not_yet_valid_is_told_apart_from_expired(authority: Authority) -> None:
    """A period that begins tomorrow is critical, and its mend speaks of clocks."""
    found = judge(authority.case([authority.server(days=(1, 90)), authority.issuing]))

    assert [(one.code, one.severity) for one in found] == [("not_yet_valid", "critical")]
    assert "clocks" in found[0].mend


def test_an_expired_intermediate_is_reported_at_its_place(authority: Authority) -> None:
    """The finding says which certificate of the path has expired."""
    old = issue(Profile("Old CA", days=(-400, -3), authority=True), NOW, authority.root)
    leaf = issue(Profile(HOST, names=(HOST,)), NOW, old)
    found = judge(authority.case([leaf, old]))

    assert [(one.code, one.position) for one in found] == [("expired", 1)]
    assert "3 days before" in found[0].evidence


def test_without_ca_store_a_lone_certificate_is_a_warning_only(authority: Authority) -> None:
    """Nobody can tell a missing intermediate from a private root without CA store, so it is not called critical."""
    case = replace(authority.case([authority.server()], trusted=[]), ca_source=None)

    assert [(one.code, one.severity) for one in judge(case)] == [
        ("missing_intermediate", "warning"),
        ("trust_not_judged", "info"),
    ]


def test_strangers_and_copies_in_the_bundle_are_warnings(authority: Authority) -> None:
    """Certificates that belong to no path, and repeated ones, are named."""
    stranger = issue(Profile("Stranger", authority=True), NOW)
    leaf = authority.server()
    found = judge(authority.case([leaf, authority.issuing, stranger, leaf]))

    assert [(one.code, one.severity) for one in found] == [("unrelated", "warning"), ("duplicate", "warning")]
    assert "Stranger" in found[0].evidence


def test_a_root_in_the_bundle_is_a_note(authority: Authority) -> None:
    """Sending the root is harmless: info, and the verdict stays ok."""
    found = judge(authority.case([authority.server(), authority.issuing, authority.root]))

    assert [(one.code, one.severity) for one in found] == [("root_included", "info")]
    assert verdict(found) == "ok"


def test_a_signature_of_another_key_with_the_same_name_is_found(authority: Authority) -> None:
    """The signature is really verified: a CA certificate with the right name and a wrong key doesn't pass."""
    impostor = issue(Profile("Test Issuing CA", days=(-400, 400), authority=True, path_length=0), NOW, authority.root)
    found = judge(authority.case([authority.server(), impostor]))

    assert [(one.code, one.position) for one in found] == [("bad_signature", 0)]


def test_the_ca_certificate_whose_key_fits_is_taken_among_namesakes(authority: Authority) -> None:
    """With both the wrong and the right CA certificate in the bundle, the path goes through the right one."""
    impostor = issue(Profile("Test Issuing CA", days=(-400, 400), authority=True, path_length=0), NOW, authority.root)
    found = judge(authority.case([authority.server(), impostor, authority.issuing]))

    assert [one.code for one in found] == ["unrelated"]


def test_a_cross_signed_root_is_left_for_the_trusted_one(authority: Authority) -> None:
    """An expired cross certificate does no harm when the CA store has the root itself (AddTrust, 2020)."""
    old_root = issue(Profile("Old Root", days=(-4000, -1), authority=True), NOW)
    crossed = bare("Test Root", old_root, x509.BasicConstraints(ca=True, path_length=None), key=authority.root.key)
    found = judge(authority.case([authority.server(), authority.issuing, crossed, old_root]))

    assert [one.code for one in found] == ["unrelated"]


def test_an_issuer_that_is_no_ca_is_critical(authority: Authority) -> None:
    """A server certificate can't issue others, however well it is signed."""
    middle = issue(Profile("Not a CA", names=("x.example.test",)), NOW, authority.root)
    leaf = issue(Profile(HOST, names=(HOST,)), NOW, middle)

    assert codes(authority.case([leaf, middle])) == ["issuer_not_ca"]


def test_path_length_counts_the_cas_below(authority: Authority) -> None:
    """A CA with path length 0 may issue server certificates, but no CA that issues them."""
    below = issue(Profile("CA too many", authority=True), NOW, authority.issuing)
    leaf = issue(Profile(HOST, names=(HOST,)), NOW, below)
    found = judge(authority.case([leaf, below, authority.issuing]))

    assert [(one.code, one.position) for one in found] == [("path_too_long", 2)]


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


def test_trust_ends_at_any_certificate_of_the_ca_store(authority: Authority) -> None:
    """A self-signed certificate, or an intermediate, is trusted when it is in the CA store itself."""
    alone = issue(Profile(HOST, names=(HOST,)), NOW)

    assert codes(authority.case([alone])) == ["self_signed"]
    assert codes(authority.case([alone], trusted=[alone])) == []
    assert codes(authority.case([authority.server()], trusted=[authority.issuing])) == []


def test_unknown_issuers_and_untrusted_roots_are_told_apart(authority: Authority) -> None:
    """Two faults with two mends: the top's issuer is nowhere to be found, or the root is there and not trusted."""
    other = issue(Profile("Other Root", authority=True), NOW)
    leaf = authority.server()

    assert codes(authority.case([leaf, authority.issuing], trusted=[other])) == ["unknown_issuer"]
    assert codes(authority.case([leaf, authority.issuing, authority.root], trusted=[other])) == ["untrusted_root"]


def test_names_of_strangers_stay_on_one_line(authority: Authority) -> None:
    """Line breaks, escapes and text-direction marks in a subject come out as codes, never as themselves."""
    leaf = issue(Profile("evil\nrm -rf /\x1b[2J\u202e", names=("x.example.test",)), NOW, authority.issuing)
    texts = [part for one in judge(authority.case([leaf])) for part in (one.title, one.evidence, one.mend)]

    assert any("evil\\x0arm" in text for text in texts)
    assert all(text.isprintable() for text in texts)


def test_the_verdict_is_the_worst_severity() -> None:
    """Notes never change a verdict, and one critical finding decides it."""

    def one(severity: str) -> Finding:
        return Finding.model_validate(
            {"code": "expired", "severity": severity, "title": "t", "evidence": "e", "mend": "m"}
        )

    assert verdict([]) == "ok"
    assert verdict([one("info")]) == "ok"
    assert verdict([one("warning"), one("info")]) == "warning"
    assert verdict([one("warning"), one("critical")]) == "critical"


def test_order_is_judged_by_the_path_not_by_neighbours(authority: Authority) -> None:
    """A stranger between two members doesn't put them out of order."""
    stranger = issue(Profile("Stranger", authority=True), NOW)
    case: Case = authority.case([authority.server(), stranger, authority.issuing])

    assert [one.code for one in check_chain(case)] == ["unrelated"]


def test_the_path_does_not_depend_on_the_order_of_the_bundle(authority: Authority) -> None:
    """All 24 orders of a bundle give one path; only what is said about the order differs."""
    below = issue(Profile("CA below", days=(-400, 400), authority=True), NOW, authority.root)
    leaf = issue(Profile(HOST, names=(HOST,)), NOW, below)
    stranger = issue(Profile("Stranger", authority=True), NOW)
    cases = [authority.case(order) for order in itertools.permutations([leaf, below, authority.root, stranger])]
    said = {code for case in cases for code in codes(case)}

    assert {case.path for case in cases} == {(leaf.certificate, below.certificate, authority.root.certificate)}
    assert said == {"unrelated", "leaf_not_first", "out_of_order"}
