"""What the tests of certificate triage share: a CA that issues whatever a test wants, and judging without a graph."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from examples.cert_triage import checks
from examples.cert_triage.describe import pem
from examples.cert_triage.findings import Finding
from examples.cert_triage.load import read_ca_store, read_target
from examples.cert_triage.path import Case, make_case
from examples.cert_triage.samples import HOST, Issued, Profile, Sample, issue, write_bundle, write_key

NOW = datetime.now(UTC).replace(microsecond=0)
"""The real time: the scripts that are run, and openssl in them, judge by it."""
ALL_CHECKS: tuple[Callable[[Case], list[Finding]], ...] = (
    checks.check_validity,
    checks.check_chain,
    checks.check_links,
    checks.check_identity,
    checks.check_strength,
    checks.check_trust,
)


@dataclass(frozen=True)
class Authority:
    """A root and an issuing CA below it."""

    root: Issued
    issuing: Issued

    def server(self, **profile: object) -> Issued:
        options: dict[str, object] = {"common_name": HOST, "names": (HOST,), **profile}
        return issue(Profile(**options), NOW, self.issuing)  # type: ignore[arg-type]

    def case(
        self, chain: Sequence[Issued], *, trusted: Sequence[Issued] | None = None, host: str | None = HOST
    ) -> Case:
        """The case of this chain, judged at NOW against the root (or against what is `trusted`)."""
        anchors = [self.root] if trusted is None else trusted
        texts = [[pem(one.certificate) for one in group] for group in (chain, anchors)]
        return make_case(texts[0], texts[1], "test CA file", host, NOW)


def sample_case(sample: Sample, bundle: Path | None = None) -> Case:
    """The case of a sample (or of another bundle in its place), by way of its files."""
    chain, host = read_target(str(bundle or sample.bundle), sample.host)
    store = read_ca_store(str(sample.ca_file), chain)
    assert store is not None
    return make_case([pem(one) for one in chain], store.anchors, store.source, host, NOW)


def judge(case: Case) -> list[Finding]:
    """What all checks find, in the order of the graph."""
    return [finding for check in ALL_CHECKS for finding in check(case)]


def codes(case: Case) -> list[str]:
    """The codes of what all checks find, without the notes."""
    return [finding.code for finding in judge(case) if finding.severity != "info"]


@contextmanager
def tls_server(folder: Path, chain: Sequence[Issued], *options: str) -> Iterator[str]:
    """`openssl s_server` on a free port of 127.0.0.1 that presents this chain; yields `host:port`."""
    write_key(folder / "key.pem", chain[0].key)
    write_bundle(folder / "leaf.pem", chain[:1])
    extra = ["-cert_chain", str(write_bundle(folder / "extra.pem", chain[1:]))] if len(chain) > 1 else []
    command = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", "leaf.pem", "-key", "key.pem", "-www"]
    server = subprocess.Popen(
        [*command, *extra, *options], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        ready = next(line for line in server.stdout if line.startswith("ACCEPT"))
        yield ready.split()[1]
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


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


def key_usage(*, sign: bool) -> x509.KeyUsage:
    """Key usage with or without keyCertSign, and nothing but a digital signature else."""
    names = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    off = dict.fromkeys((*names, "crl_sign", "encipher_only", "decipher_only"), False)
    return x509.KeyUsage(digital_signature=True, key_cert_sign=sign, **off)
