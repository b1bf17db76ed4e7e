"""Where the evidence comes from: files, real TLS servers, CA stores; and what is said when there is none."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest
from cert_help import Authority, tls_server
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from examples.cert_triage.load import FetchError, InputError, read_ca_store, read_target, read_time
from examples.cert_triage.samples import HOST, Sample, write_bundle, write_key

SYSTEM_BUNDLE = ssl.get_default_verify_paths().cafile


def test_a_bundle_is_read_in_its_order_and_keys_are_skipped(tmp_path: Path, authority: Authority) -> None:
    """Certificates keep their order; a private key and words between them don't matter."""
    leaf = authority.server()
    bundle = write_bundle(tmp_path / "b.pem", [authority.issuing, leaf])
    key = write_key(tmp_path / "k.pem", leaf.key)
    bundle.write_text("subject=/CN=words\n" + key.read_text() + bundle.read_text())

    assert read_target(str(bundle), None) == ([authority.issuing.certificate, leaf.certificate], None)
    assert read_target(str(bundle), HOST)[1] == HOST


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "neither a file nor 'host:port'"),
        (b"no certificate here", "no PEM certificate"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 1 of file"),
    ],
)
def test_what_is_no_bundle_is_named(tmp_path: Path, content: bytes | None, words: str) -> None:
    """A missing file, one without PEM and one with broken PEM each get a message that names file and trouble."""
    path = tmp_path / "b.pem"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(InputError) as raised:
        read_target(str(path), None)

    assert words in str(raised.value)
    assert f"'{path}'" in str(raised.value)


def test_a_live_server_gives_its_chain_as_presented(tmp_path: Path, authority: Authority) -> None:
    """Over a real handshake the chain comes back in the server's order, strangers and all; nothing is verified."""
    chain = [authority.server(days=(-90, -1)), authority.root, authority.issuing]
    with tls_server(tmp_path, chain) as target:
        found, host = read_target(target, None)
        named = read_target(target, HOST)[1]

    assert found == [one.certificate for one in chain]
    assert (host, named) == ("127.0.0.1", HOST)


def test_a_live_server_with_a_weak_key_can_still_be_read(tmp_path: Path, authority: Authority) -> None:
    """RSA 1024, which TLS clients refuse by default, doesn't keep the chain from being fetched."""
    leaf = authority.server(rsa_bits=1024)
    with tls_server(tmp_path, [leaf], "-cipher", "ALL:@SECLEVEL=0") as target:
        found, _ = read_target(target, HOST)

    assert found == [leaf.certificate]


def test_the_host_name_goes_out_as_sni(tmp_path: Path, authority: Authority) -> None:
    """A server with several certificates is asked for the one of the host that is judged."""
    first, second = authority.server(names=("a.example.test",)), authority.server(names=("b.example.test",))
    write_bundle(tmp_path / "second.pem", [second])
    write_key(tmp_path / "second.key", second.key)
    options = ("-servername", "b.example.test", "-cert2", "second.pem", "-key2", "second.key")
    with tls_server(tmp_path, [first], *options) as target:
        assert read_target(target, "a.example.test")[0] == [first.certificate]
        assert read_target(target, "b.example.test")[0] == [second.certificate]


def test_a_server_that_gives_nothing_is_named() -> None:
    """A closed port is an error of its own kind, so that a retry can tell it from a wrong path."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    with pytest.raises(FetchError, match=f"server '127.0.0.1:{port}' gave no certificates"):
        read_target(f"127.0.0.1:{port}", None)
    with pytest.raises(InputError, match="names port 65536; the highest is 65535"):
        read_target("127.0.0.1:65536", None)
    with pytest.raises(InputError, match="neither a file nor"):
        read_target("no-port.example.test", None)


def test_times_are_utc_unless_they_say_otherwise() -> None:
    """ISO 8601 with and without zone; anything else is named."""
    assert read_time("2026-06-01T12:00:00") == read_time("2026-06-01T14:00:00+02:00") == read_time("2026-06-01T12:00Z")
    with pytest.raises(InputError, match="now 'tomorrow' is not an ISO 8601 time"):
        read_time("tomorrow")


def test_only_the_certificates_that_the_chain_names_are_taken_from_a_store(
    tmp_path: Path, authority: Authority, samples: dict[str, Sample]
) -> None:
    """A CA file may hold anything else, even what no parser accepts."""
    broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    store = tmp_path / "ca.pem"
    store.write_text(broken + samples["healthy"].ca_file.read_text())
    write_bundle(tmp_path / "root.pem", [authority.root])
    store.write_text(store.read_text() + (tmp_path / "root.pem").read_text())

    found = read_ca_store(str(store), [authority.issuing.certificate])

    assert found is not None
    assert found.source == str(store)
    assert [x509.load_pem_x509_certificate(one.encode()) for one in found.anchors] == [authority.root.certificate]


def test_a_ca_file_that_is_none_is_named(tmp_path: Path) -> None:
    """A missing CA file and one without certificates are errors, not an empty store."""
    (tmp_path / "empty.pem").write_text("")

    with pytest.raises(InputError, match=r"missing\.pem' is not a file"):
        read_ca_store(str(tmp_path / "missing.pem"), [])
    with pytest.raises(InputError, match=r"empty\.pem' has no PEM certificate"):
        read_ca_store(str(tmp_path / "empty.pem"), [])


@pytest.mark.skipif(SYSTEM_BUNDLE is None, reason="this machine has no CA bundle")
def test_the_operating_systems_bundle_is_the_default() -> None:
    """Without `ca_file` each root of the system's bundle is found in it as its own anchor."""
    assert SYSTEM_BUNDLE is not None
    first = Path(SYSTEM_BUNDLE).read_text().partition("-----END CERTIFICATE-----")
    root = x509.load_pem_x509_certificate((first[0] + first[1]).encode())

    store = read_ca_store(None, [root])

    assert store is not None
    assert store.source == SYSTEM_BUNDLE
    assert root.public_bytes(serialization.Encoding.PEM).decode() in store.anchors


def test_without_any_store_there_is_none(monkeypatch: pytest.MonkeyPatch, authority: Authority) -> None:
    """Where OpenSSL's default bundle doesn't exist, trust has nothing to be judged by, and that is told apart."""
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent.pem")

    assert read_ca_store(None, [authority.root.certificate]) is None
