"""Each check on chains that were issued to be faulty in one respect."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest
from cert_help import NOW, Authority, bare, codes, judge, key_usage, sample_case
from cryptography import x509

from examples.cert_triage.checks import check_chain, check_validity
from examples.cert_triage.findings import Finding, verdict
from examples.cert_triage.path import Case
from examples.cert_triage.samples import HOST, Profile, Sample, issue


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


@pytest.mark.parametrize(
    ("extensions", "expected"),
    [
        ([], ["issuer_not_ca"]),
        ([x509.BasicConstraints(ca=True, path_length=None)], []),
        ([x509.BasicConstraints(ca=True, path_length=None), key_usage(sign=True)], []),
        ([x509.BasicConstraints(ca=True, path_length=None), key_usage(sign=False)], ["issuer_not_ca"]),
    ],
)
def test_a_ca_says_so_and_may_sign(
    authority: Authority, extensions: list[x509.ExtensionType], expected: list[str]
) -> None:
    """Basic constraints must say CA; key usage may be left out, but if it is there it must include keyCertSign."""
    middle = bare("Middle", authority.root, *extensions)
    leaf = issue(Profile(HOST, names=(HOST,)), NOW, middle)

    assert codes(authority.case([leaf, middle])) == expected


def test_path_length_counts_the_cas_below(authority: Authority) -> None:
    """A CA with path length 0 may issue server certificates, but no CA that issues them."""
    below = issue(Profile("CA too many", authority=True), NOW, authority.issuing)
    leaf = issue(Profile(HOST, names=(HOST,)), NOW, below)
    found = judge(authority.case([leaf, below, authority.issuing]))

    assert [(one.code, one.position) for one in found] == [("path_too_long", 2)]


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
