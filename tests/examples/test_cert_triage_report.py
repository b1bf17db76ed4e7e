"""The report as data and as Markdown: the facts that a person needs are in it, whatever names say."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from cert_help import NOW, Authority, judge, sample_case

from examples.cert_triage.files import output_path, write_file
from examples.cert_triage.findings import verdict
from examples.cert_triage.path import Case
from examples.cert_triage.report import Report, make_report, markdown
from examples.cert_triage.samples import HOST, Profile, Sample, issue


def report_of(case: Case, target: str, *, approve: str | None = None, script: str | None = None) -> Report:
    """The report of what all checks find."""
    findings = judge(case)
    return make_report(target, case, findings, verdict(findings), approve, script)


def test_the_report_of_an_expired_certificate(samples: dict[str, Sample]) -> None:
    """Verdict, host, time, finding with evidence and mend, the path with its root, and what was not checked."""
    sample = samples["expired"]
    report = report_of(sample_case(sample), "expired.pem", approve="yes", script="remediate-expired.sh")
    text = markdown(report)

    assert report.verdict == "critical"
    assert [one.source for one in report.path] == ["bundle", "bundle", "bundle", "CA store"]
    assert text.startswith("# TLS certificate of expired.pem: CRITICAL\n")
    for fact in (
        f"- Host: {HOST}",
        f"- Judged at: {NOW.isoformat()}",
        "- Certificates presented: 3",
        "- Remediation: script written to remediate-expired.sh",
        "### critical: The server certificate 'CN=shop.example.test' has expired (`expired`)",
        "5 days before the time judged",
        "- Mend: renew the certificate and install it",
        "| 3 | CN=Sample Root | CN=Sample Root |",
        "Not checked: revocation",
    ):
        assert fact in text, fact


def test_the_report_says_what_became_of_the_question(samples: dict[str, Sample]) -> None:
    """Nobody asked, refused and written are told apart."""
    case = sample_case(samples["self-signed"])

    assert "no script needed" in markdown(report_of(sample_case(samples["healthy"]), "t"))
    assert "refused, no script written" in markdown(report_of(case, "t", approve="no"))
    assert "script written to s.sh" in markdown(report_of(case, "t", approve="yes", script="s.sh"))


def test_a_healthy_report_says_that_all_checks_passed(samples: dict[str, Sample]) -> None:
    """Silence is not left to be interpreted."""
    assert "None: every check passed." in markdown(report_of(sample_case(samples["healthy"]), "healthy.pem"))


def test_findings_come_worst_first(authority: Authority) -> None:
    """Critical before warning before note, whichever check found them."""
    chain = [authority.server(days=(-30, 10), names=("x.example.test",)), authority.issuing, authority.root]
    report = report_of(authority.case(chain), "t")

    assert [one.code for one in report.findings] == ["host_mismatch", "expires_soon", "root_included"]


def test_the_data_survive_json(samples: dict[str, Sample]) -> None:
    """What is written as JSON reads back as the same report."""
    report = report_of(sample_case(samples["wrong-host"]), "wrong-host.pem")

    assert Report.model_validate_json(report.model_dump_json()) == report


@pytest.mark.parametrize("name", ["healthy", "expired", "wrong-host"])
def test_the_commands_in_the_report_can_be_run(samples: dict[str, Sample], name: str) -> None:
    """`openssl verify`, as the report gives it, comes to the report's own verdict."""
    sample = samples[name]
    text = markdown(report_of(sample_case(sample), str(sample.bundle)))
    command = next(line.strip() for line in text.splitlines() if line.startswith("    openssl verify"))
    done = subprocess.run(shlex.split(command), capture_output=True, check=False)

    assert (done.returncode == 0) is (sample.verdict == "ok")


def test_a_server_is_seen_again_with_s_client(authority: Authority) -> None:
    """For host:port the report gives the `openssl s_client` call with name and CA store."""
    case = authority.case([authority.server(), authority.issuing])
    text = markdown(report_of(case, "10.0.0.1:443"))

    assert f"openssl s_client -connect 10.0.0.1:443 -servername {HOST} -CAfile 'test CA file'" in text


def test_markup_in_names_is_shown_not_obeyed(authority: Authority) -> None:
    """A subject can't add rows, links or line breaks to the report."""
    leaf = issue(Profile("a | b](http://x) <b>\n# c", names=("*.example.test",)), NOW, authority.issuing)
    text = markdown(report_of(authority.case([leaf, authority.issuing]), "t"))
    row = next(line for line in text.splitlines() if line.startswith("| 0 |"))

    assert "a \\| b\\](http://x) \\\\\\<b\\\\\\>\\\\x0a\\# c" in row
    assert "\n# c" not in text


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("demo-out/expired.pem", "out/report-expired.md"),
        ("example.org:443", "out/report-example.org-443.md"),
        ("[::1]:443", "out/report-1-443.md"),
        ("/x/../..", "out/report-target.md"),
        ("a b;c.pem", "out/report-a-b-c.md"),
    ],
)
def test_files_are_named_after_the_target_and_stay_in_the_folder(target: str, expected: str) -> None:
    """No target, however odd, leads out of the output folder or needs quoting."""
    assert output_path("out", "report", target, ".md") == Path(expected)


def test_a_file_is_written_whole_with_its_mode(tmp_path: Path) -> None:
    """The folder is made, an older file is replaced, no draft stays behind."""
    path = str(tmp_path / "new" / "s.sh")
    write_file(path, "one\n", 0o644)

    assert write_file(path, "two\n", 0o755) == path
    assert [(one.name, one.read_text(), one.stat().st_mode & 0o777) for one in Path(path).parent.iterdir()] == [
        ("s.sh", "two\n", 0o755)
    ]
