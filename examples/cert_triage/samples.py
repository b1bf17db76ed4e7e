"""Sample bundles, each with one fault, issued by a CA of their own; only keys and signatures differ between runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID

from examples.cert_triage.findings import Code, Verdict

HOST = "shop.example.test"
PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True)
class Profile:
    """What a certificate shall say.

    `days` is its validity relative to the time of the samples, `rsa_bits` 0 means an EC key on P-256, `purpose` None
    leaves the extended key usage out.
    """

    common_name: str
    names: tuple[str, ...] = ()
    days: tuple[int, int] = (-30, 300)
    authority: bool = False
    path_length: int | None = None
    rsa_bits: int = 0
    purpose: x509.ObjectIdentifier | None = ExtendedKeyUsageOID.SERVER_AUTH
    issuer_url: str | None = None


@dataclass(frozen=True)
class Issued:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: PrivateKey


@dataclass(frozen=True)
class Sample:
    """A bundle on disk and what a triage must say about it; `codes` are the findings above info."""

    name: str
    bundle: Path
    ca_file: Path
    verdict: Verdict
    codes: tuple[Code, ...]
    host: str = HOST

    def inputs(self, **more: str) -> dict[str, str]:
        """The input of a triage of this sample."""
        return {"target": str(self.bundle), "hostname": self.host, "ca_file": str(self.ca_file), **more}


def issue(profile: Profile, now: datetime, issuer: Issued | None = None, key: PrivateKey | None = None) -> Issued:
    """A certificate after RFC 5280, self-signed when no issuer is given. Serial numbers follow from the profile.

    Without `key` a new one is made.
    """
    if key is None and profile.rsa_bits:
        key = rsa.generate_private_key(public_exponent=65537, key_size=profile.rsa_bits)
    elif key is None:
        key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, profile.common_name)])
    signer = issuer.key if issuer is not None else key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer is not None else subject)
        .public_key(key.public_key())
        .serial_number(int.from_bytes(hashlib.sha256(repr(profile).encode()).digest()[:16], "big") + 1)
        .not_valid_before(now + timedelta(days=profile.days[0]))
        .not_valid_after(now + timedelta(days=profile.days[1]))
    )
    for extension, critical in _extensions(profile, key, signer):
        builder = builder.add_extension(extension, critical=critical)
    return Issued(builder.sign(signer, hashes.SHA256()), key)


def write_bundle(path: Path, chain: Sequence[Issued]) -> Path:
    """Write the certificates as one PEM file; returns the path."""
    encoded = [one.certificate.public_bytes(serialization.Encoding.PEM) for one in chain]
    path.write_bytes(b"".join(encoded))
    return path


def write_key(path: Path, key: PrivateKey) -> Path:
    """Write an unencrypted private key as PEM, readable by its owner only; returns the path."""
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


def make_samples(folder: Path, now: datetime) -> list[Sample]:
    """Write the CA file, one bundle for each sample and its input (`<name>.json`) into a folder.

    Validity periods are relative to `now`, which has a zone. Server keys are thrown away.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root = issue(Profile("Sample Root", days=(-2000, 2000), authority=True), now)
    policy = issue(Profile("Sample Policy CA", days=(-900, 900), authority=True, path_length=1), now, root)
    issuing = issue(Profile("Sample Issuing CA", days=(-400, 400), authority=True, path_length=0), now, policy)

    plain = Profile(HOST, names=(HOST,), issuer_url="http://ca.example.test/issuing.der")
    good = issue(plain, now, issuing)
    expiring = issue(replace(plain, days=(-80, 10)), now, issuing)
    expired = issue(replace(plain, days=(-95, -5)), now, issuing)
    other = issue(replace(plain, names=("blog.example.test",)), now, issuing)
    weak = issue(replace(plain, rsa_bits=1024), now, issuing)
    alone = issue(replace(plain, issuer_url=None), now)
    bundles: list[tuple[str, list[Issued], Verdict, tuple[Code, ...]]] = [
        ("healthy", [good, issuing, policy], "ok", ()),
        ("expiring", [expiring, issuing, policy], "warning", ("expires_soon",)),
        ("out-of-order", [good, policy, issuing], "warning", ("out_of_order",)),
        ("expired", [expired, issuing, policy], "critical", ("expired",)),
        ("missing-intermediate", [good], "critical", ("missing_intermediate",)),
        ("wrong-host", [other, issuing, policy], "critical", ("host_mismatch",)),
        ("weak-key", [weak, issuing, policy], "critical", ("weak_key",)),
        ("self-signed", [alone], "critical", ("self_signed",)),
        ("leaf-last", [policy, issuing, good], "critical", ("leaf_not_first",)),
    ]
    ca_file = write_bundle(folder / "ca.pem", [root])
    samples = []
    for name, chain, verdict, codes in bundles:
        sample = Sample(name, write_bundle(folder / f"{name}.pem", chain), ca_file, verdict, codes)
        text = json.dumps(sample.inputs(out_dir=str(folder)), indent=2)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        samples.append(sample)
    return samples


def _extensions(profile: Profile, key: PrivateKey, signer: PrivateKey) -> Iterator[tuple[x509.ExtensionType, bool]]:
    """The extensions, each with whether it is critical."""
    yield x509.BasicConstraints(ca=profile.authority, path_length=profile.path_length), True
    yield x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False
    yield x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), False
    yield _key_usage(profile), True
    if profile.names:
        yield x509.SubjectAlternativeName([x509.DNSName(one) for one in profile.names]), False
    if profile.purpose is not None and not profile.authority:
        yield x509.ExtendedKeyUsage([profile.purpose]), False
    if profile.issuer_url is not None:
        place = x509.UniformResourceIdentifier(profile.issuer_url)
        entry = x509.AccessDescription(AuthorityInformationAccessOID.CA_ISSUERS, place)
        yield x509.AuthorityInformationAccess([entry]), False


def _key_usage(profile: Profile) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not profile.authority, key_cert_sign=profile.authority, crl_sign=profile.authority,
        content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
