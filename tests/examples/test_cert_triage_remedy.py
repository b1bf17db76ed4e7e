"""The remediation script: it is run, not only read, and what it writes is judged again."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import get_args

import pytest
from cert_help import NOW, Authority, codes, judge, sample_case
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from examples.cert_triage.describe import fingerprint
from examples.cert_triage.findings import Code
from examples.cert_triage.path import Case
from examples.cert_triage.remedy import CA_ACTIONS, ORDER, SERVER_ACTIONS, remediation_script
from examples.cert_triage.samples import HOST, Profile, Sample, issue, write_bundle

NOTES = {"root_included", "host_not_judged", "trust_not_judged"}


def run(folder: Path, case: Case, ca_file: Path, *, target: str = "t.pem", **environment: str) -> Path:
    """Write the script for all findings of a case and run it in `folder`; the folder that it wrote to."""
    script = folder / "fix.sh"
    script.write_text(remediation_script(case, judge(case), target, str(ca_file)))
    done = subprocess.run(
        ["sh", str(script), "fixed"], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "fixed"


@pytest.fixture
def ca_file(tmp_path: Path, authority: Authority) -> Path:
    """The test root as a file."""
    return write_bundle(tmp_path / "ca.pem", [authority.root])


@contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """A web server over a folder; yields its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_every_finding_above_info_has_an_action() -> None:
    """No code without commands: the table for server and bundle and the one for CAs leave nothing out."""
    above_info = set(get_args(Code)) - NOTES

    assert set(SERVER_ACTIONS) | set(CA_ACTIONS) == above_info
    assert set(ORDER) == {*SERVER_ACTIONS.values(), *CA_ACTIONS.values()}


@pytest.mark.parametrize("name", ["leaf-last", "out-of-order"])
def test_a_bundle_out_of_order_is_mended_by_the_script(samples: dict[str, Sample], tmp_path: Path, name: str) -> None:
    """The script writes a bundle that has no findings any more."""
    case = sample_case(samples[name])
    fixed = run(tmp_path, case, samples[name].ca_file)

    assert codes(sample_case(samples[name], fixed / "fixed-chain.pem")) == []


@pytest.mark.parametrize("encoding", [Encoding.DER, Encoding.PEM])
def test_a_missing_intermediate_is_fetched_from_where_the_certificate_says(
    tmp_path: Path, authority: Authority, ca_file: Path, encoding: Encoding
) -> None:
    """The script fetches the issuer over HTTP, in either encoding, and the bundle it writes is complete."""
    (tmp_path / "issuing.der").write_bytes(authority.issuing.certificate.public_bytes(encoding))
    with web_server(tmp_path) as address:
        leaf = authority.server(issuer_url=f"{address}/issuing.der?a='b'&c=$(touch${{IFS}}pwned)")
        case = authority.case([leaf])
        fixed = run(tmp_path, case, ca_file)
    chain = x509.load_pem_x509_certificates((fixed / "fixed-chain.pem").read_bytes())

    assert [one.code for one in judge(case)] == ["missing_intermediate", "trust_not_judged"]
    assert chain == [leaf.certificate, authority.issuing.certificate]
    assert not (tmp_path / "pwned").exists()


def test_an_intermediate_without_address_is_asked_for(tmp_path: Path, authority: Authority, ca_file: Path) -> None:
    """Without an address in the certificate the script wants a file, and says so; with the file it does its work."""
    case = authority.case([authority.server()])
    (tmp_path / "ca.der").write_bytes(authority.issuing.certificate.public_bytes(Encoding.DER))

    with pytest.raises(AssertionError, match="ISSUER: must be the path of the issuer certificate"):
        run(tmp_path, case, ca_file)
    fixed = run(tmp_path, case, ca_file, ISSUER="ca.der")

    assert (fixed / "fixed-chain.pem").read_text().count("BEGIN CERTIFICATE") == 2


def test_an_expired_intermediate_is_replaced_in_its_place(tmp_path: Path, authority: Authority, ca_file: Path) -> None:
    """The bundle keeps what is above and below the certificate that is replaced."""
    policy = issue(Profile("Policy CA", days=(-400, 400), authority=True), NOW, authority.root)
    old = issue(Profile("Old CA", days=(-400, -3), authority=True), NOW, policy)
    with web_server(tmp_path) as address:
        leaf = issue(Profile(HOST, names=(HOST,), issuer_url=f"{address}/new.der"), NOW, old)
        new = issue(Profile("Old CA", authority=True), NOW, policy, key=old.key)
        (tmp_path / "new.der").write_bytes(new.certificate.public_bytes(Encoding.DER))
        fixed = run(tmp_path, authority.case([leaf, old, policy]), ca_file)

    chain = x509.load_pem_x509_certificates((fixed / "fixed-chain.pem").read_bytes())
    assert chain == [leaf.certificate, new.certificate, policy.certificate]


@pytest.mark.parametrize("name", ["expired", "wrong-host", "weak-key", "self-signed"])
def test_a_new_certificate_is_requested_for_all_names(
    samples: dict[str, Sample], tmp_path: Path, ca_file: Path, name: str
) -> None:
    """The request is signed with a new key, and has the old names and the host; a second run keeps the key."""
    case = sample_case(samples[name])
    fixed = run(tmp_path, case, ca_file)
    request = x509.load_pem_x509_csr((fixed / "server.csr").read_bytes())
    key = (fixed / "server.key").read_bytes()
    san = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    old = case.leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert request.is_signature_valid
    assert set(san.get_values_for_type(x509.DNSName)) == {HOST, *old.get_values_for_type(x509.DNSName)}
    assert (fixed / "server.key").stat().st_mode & 0o777 == 0o600
    run(tmp_path, case, ca_file)
    assert (fixed / "server.key").read_bytes() == key


@pytest.mark.parametrize(
    ("host", "entry"),
    [("bücher.example.test", "DNS:xn--bcher-kva.example.test"), ("2001:db8::1", "IP:2001:db8::1"), ("a..b", None)],
)
def test_the_host_is_requested_in_the_form_that_certificates_have(
    authority: Authority, host: str, entry: str | None
) -> None:
    """Other letters in IDNA form, addresses as addresses, and what is neither is left out."""
    case = authority.case([authority.server(names=("a.example.test",)), authority.issuing], host=host)
    text = remediation_script(case, judge(case), "t.pem", None)

    assert f'subjectAltName=DNS:a.example.test{f",{entry}" if entry else ""}"' in text


def test_an_untrusted_root_is_only_looked_at(tmp_path: Path, authority: Authority, ca_file: Path) -> None:
    """Nothing is added to a CA store: the script shows the root and its fingerprint."""
    other = issue(Profile("Other Root", authority=True), NOW)
    leaf = issue(Profile(HOST, names=(HOST,)), NOW, other)
    case = authority.case([leaf, other])
    fixed = run(tmp_path, case, ca_file)

    assert sorted(path.name for path in fixed.iterdir()) == ["leaf.pem", "presented.pem", "top.pem"]
    assert fingerprint(other.certificate) in (tmp_path / "fix.sh").read_text()


def test_hostile_names_do_not_reach_the_shell(tmp_path: Path, authority: Authority, ca_file: Path) -> None:
    """Line breaks, quotes and command substitutions in names, host, target and CA path are data, wherever they go."""
    evil = "x'\"\n$(touch pwned)`touch pwned`;touch pwned #"
    leaf = authority.server(common_name=evil, names=(evil.replace("\n", " "), "good.example.test"))
    case = replace(authority.case([authority.issuing, leaf]), host="fe80::1%$(touch pwned)")
    fixed = run(tmp_path, case, ca_file.rename(tmp_path / f"{evil}.ca"), target=f"{evil}.pem")

    assert {"host_mismatch", "leaf_not_first"} <= set(codes(case))
    assert not list(tmp_path.rglob("pwned"))
    assert re.findall(r"DNS:\S+", subprocess.run(
        ["openssl", "req", "-in", str(fixed / "server.csr"), "-noout", "-text"], capture_output=True, text=True,
        check=True,
    ).stdout) == ["DNS:good.example.test"]  # fmt: skip
