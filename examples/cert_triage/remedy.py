"""The remediation script: shell with real openssl commands that fit the findings. Text only; nothing is run here."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Callable, Mapping, Sequence

from cryptography import x509

from examples.cert_triage.checks.chain import issuer_urls, presented
from examples.cert_triage.checks.identity import names
from examples.cert_triage.describe import fingerprint, issuer_name, name, pem, printable
from examples.cert_triage.findings import Code, Finding
from examples.cert_triage.path import Case

_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?"
_DNS_NAME = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")
Action = Callable[[Case, int], list[str]]
"""Case and place in the path of the first finding, to lines of shell."""


def remediation_script(case: Case, findings: Sequence[Finding], target: str, ca_file: str | None) -> str:
    """A POSIX shell script for the findings above info: it writes new files into one folder and installs nothing.

    Certificates are data of strangers: their names appear in comments only, on one line; what becomes an argument is
    either checked against a strict pattern or quoted.
    """
    lines = [
        "#!/bin/sh",
        f"# Remediation for {printable(target)}, judged at {case.now.isoformat()} by examples.cert_triage.",
        "# Read it before you run it. It writes new files into one folder (the first argument) and installs nothing.",
        "set -eu",
        "umask 077",
        "OUT=${1:-remediation}",
        'mkdir -p "$OUT"',
        "",
        "# The certificates as they were presented, and the server's own.",
        *_heredoc("presented.pem", case.chain),
        *_heredoc("leaf.pem", [case.leaf]),
        'openssl x509 -in "$OUT/leaf.pem" -noout -subject -issuer -dates -fingerprint -sha256',
    ]
    for action, reasons in _actions(findings).items():
        lines += ["", *(f"# [{one.code}] {printable(one.title)}: {printable(one.mend)}" for one in reasons)]
        lines += [
            f"echo '== {', '.join(dict.fromkeys(one.code for one in reasons))}'",
            *action(case, reasons[0].position or 0),
        ]
    return "\n".join([*lines, "", *_final_check(case, ca_file), ""])


def _actions(findings: Sequence[Finding]) -> dict[Action, list[Finding]]:
    """The actions that the findings call for, each once, with the findings it is for.

    Several may write `fixed-chain.pem`; the one that mends most comes last.
    """
    wanted: dict[Action, list[Finding]] = {}
    for finding in findings:
        if finding.severity == "info":
            continue
        table = SERVER_ACTIONS if finding.position in (0, None) else CA_ACTIONS
        wanted.setdefault(table[finding.code], []).append(finding)
    return {action: wanted[action] for action in ORDER if action in wanted}


def _renew(case: Case, _position: int) -> list[str]:
    wanted = [*names(case.leaf), *([case.host] if case.host and case.host not in names(case.leaf) else [])]
    entries = [entry for entry in map(_san_entry, wanted) if entry is not None]
    san = ",".join(entries) if entries else "${NAMES:?such as DNS:www.example.org,DNS:example.org}"
    return [
        "# A new key and a request for a certificate; an existing key is kept. Send server.csr to your CA.",
        '[ -e "$OUT/server.key" ] || openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 '
        '-out "$OUT/server.key"',
        f'openssl req -new -key "$OUT/server.key" -subj / -addext "subjectAltName={san}" '
        '-addext "extendedKeyUsage=serverAuth" -out "$OUT/server.csr"',
        'openssl req -in "$OUT/server.csr" -noout -verify -text',
        "# When the answer is there: openssl x509 -in server.crt -noout -checkend 2592000",
    ]


def _fetch_issuer(case: Case, child: int) -> list[str]:
    urls = issuer_urls(case.path[child])
    if urls:
        fetch = f'curl -fsS --max-time 20 -o "$ISSUER" {shlex.quote(urls[0])}'
        get = ["ISSUER=${ISSUER-}", '[ -n "$ISSUER" ] || { ISSUER=$OUT/issuer.der; ' + fetch + "; }"]
    else:
        get = [': "${ISSUER:?must be the path of the issuer certificate, PEM or DER}"']
    sent = presented(case)
    return [
        f"# The issuer: {issuer_name(case.path[child])}",
        *get,
        'openssl x509 -in "$ISSUER" -out "$OUT/issuer.pem" 2>/dev/null ||',
        '    openssl x509 -inform DER -in "$ISSUER" -out "$OUT/issuer.pem"',
        *_heredoc("below.pem", sent[: child + 1]),
        *_heredoc("above.pem", sent[child + 2 :]),
        'cat "$OUT/below.pem" "$OUT/issuer.pem" "$OUT/above.pem" > "$OUT/fixed-chain.pem"',
    ]


def _rewrite_bundle(case: Case, _position: int) -> list[str]:
    order = ", ".join(name(one) for one in presented(case))
    return [f"# The order a server must send: {order}", *_heredoc("fixed-chain.pem", presented(case))]


def _inspect_top(case: Case, _position: int) -> list[str]:
    return [
        "# Compare the fingerprint with the one the CA publishes before you add it to a CA store.",
        f"# top of the path: {name(case.top)}",
        f"# SHA-256 {fingerprint(case.top)}",
        *_heredoc("top.pem", [case.top]),
        'openssl x509 -in "$OUT/top.pem" -noout -subject -issuer -dates -fingerprint -sha256',
        'openssl verify -partial_chain -trusted "$OUT/top.pem" -untrusted "$OUT/presented.pem" "$OUT/leaf.pem" ||',
        "    echo 'the path does not hold even if its top is trusted'",
    ]


def _check_clock(case: Case, position: int) -> list[str]:
    return [
        "# Compare this machine's clock with the validity.",
        "date -u",
        *_heredoc("early.pem", [case.path[position]]),
        'openssl x509 -in "$OUT/early.pem" -noout -dates',
    ]


def _replace_issuer(case: Case, position: int) -> list[str]:
    return ["# The CA's current certificate in place of the one in the bundle.", *_fetch_issuer(case, position - 1)]


SERVER_ACTIONS: Mapping[Code, Action] = {
    "expired": _renew, "expires_soon": _renew, "not_yet_valid": _check_clock, "missing_intermediate": _fetch_issuer,
    "leaf_not_first": _rewrite_bundle, "out_of_order": _rewrite_bundle, "unrelated": _rewrite_bundle,
    "duplicate": _rewrite_bundle, "bad_signature": _fetch_issuer, "host_mismatch": _renew,
    "name_only_in_cn": _renew, "no_names": _renew, "wrong_purpose": _renew, "weak_key": _renew,
    "weak_signature": _renew, "self_signed": _renew, "signature_not_judged": _inspect_top,
}  # fmt: skip
"""What helps against a finding about the server certificate or the bundle; every code above info has an entry."""

CA_ACTIONS: Mapping[Code, Action] = {
    "expired": _replace_issuer, "expires_soon": _replace_issuer, "not_yet_valid": _check_clock,
    "bad_signature": _fetch_issuer, "issuer_not_ca": _renew, "path_too_long": _renew,
    "weak_key": _replace_issuer, "weak_signature": _replace_issuer, "untrusted_root": _inspect_top,
    "unknown_issuer": _inspect_top, "signature_not_judged": _inspect_top,
}  # fmt: skip
"""The same for a finding about a CA certificate of the path."""

ORDER = (_check_clock, _inspect_top, _rewrite_bundle, _fetch_issuer, _replace_issuer, _renew)


def _final_check(case: Case, ca_file: str | None) -> list[str]:
    entry = _san_entry(case.host) if case.host is not None else None
    kind, _, host = (entry or "").partition(":")
    option = {"IP": f" -verify_ip {host}", "DNS": f" -verify_hostname {host}"}.get(kind, "")
    return [
        "# What a client would say now (no CA file: the system's). Install nothing before this says OK.",
        "CA=${CA-}",
        *([f'[ -n "$CA" ] || CA={shlex.quote(ca_file)}'] if ca_file else []),
        'if [ -e "$OUT/fixed-chain.pem" ]; then',
        f'    openssl verify ${{CA:+-CAfile "$CA"}}{option} -untrusted "$OUT/fixed-chain.pem" "$OUT/fixed-chain.pem"',
        "fi",
    ]


def _heredoc(file: str, certificates: Sequence[x509.Certificate]) -> list[str]:
    lines = "".join(pem(one) for one in certificates).splitlines()
    return [f"cat > \"$OUT/{file}\" <<'END-OF-PEM'", *lines, "END-OF-PEM"]


def _san_entry(host: str) -> str | None:
    """The name as an entry of subjectAltName, or None when it isn't one that is safe as a word of the shell."""
    try:
        return f"IP:{ipaddress.ip_address(host)}" if "%" not in host else None
    except ValueError:
        pass
    try:
        encoded = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return None
    return f"DNS:{encoded}" if _DNS_NAME.fullmatch(encoded) else None
