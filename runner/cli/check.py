"""The command that validates graphs: check."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from graphagent.errors import UsageError
from runner.check.baseline import read_baseline, without_known, write_baseline
from runner.check.document import check_document
from runner.check.find import Found, find
from runner.check.foreign import converter
from runner.check.github import github_commands, github_summary
from runner.check.judge import Outcome, Verdict, judge
from runner.check.junit import junit_report
from runner.check.places import repository
from runner.check.sarif import sarif_document
from runner.check.settings import Settings, read_settings
from runner.check.text import Paint, painted, text_report, unpainted
from runner.cli.options import CheckOptions, ReportFormat
from runner.cli.output import Output
from runner.cli.progress import is_terminal

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


def check(options: CheckOptions, output: Output) -> int:
    """Validate graphs and report what was found."""
    form = _format(options)
    settings = read_settings(options)
    if not settings.targets:
        raise UsageError("nothing to check: name a target, or 'targets' in [tool.graphagent.check] of pyproject.toml")
    if options.write_baseline and settings.baseline is None:
        raise UsageError("--write-baseline needs a file: say --baseline FILE")
    with _progress() as progress, contextlib.redirect_stdout(sys.stderr):  # what a module prints is no report
        progress("looking for graphs")
        found = find(settings.targets, converter(options.origin))
        outcome = _judged(found, settings, form, progress)
    if options.write_baseline:
        return _new_baseline(outcome, settings, output)
    if settings.baseline is not None:
        checked, gone = without_known(outcome.checked, read_baseline(settings.baseline))
        outcome = Outcome(checked, outcome.failures, settings, outcome.base, gone)
    paint = painted if options.output is None and _coloured(output) else unpainted
    _deliver(report(outcome, form, paint), options, output)
    if form is ReportFormat.github and (file := os.environ.get(SUMMARY_VARIABLE)):
        with open(file, "a", encoding="utf-8") as summary:
            summary.write(github_summary(outcome))
    return outcome.verdict


def _format(options: CheckOptions) -> ReportFormat:
    if options.as_json and options.format not in (None, ReportFormat.json):
        raise UsageError(f"--json and --format {options.format} can't both be had; say one of them")
    return options.format or (ReportFormat.json if options.as_json else ReportFormat.text)


def _judged(found: Found, settings: Settings, form: ReportFormat, progress: Callable[[str], None]) -> Outcome:
    here = Path.cwd()
    base = repository(here) if form in (ReportFormat.sarif, ReportFormat.github) else here
    return Outcome(judge(found.candidates, settings, base, progress), found.failures, settings, base)


def report(outcome: Outcome, form: ReportFormat, paint: Paint = unpainted) -> str:
    """The report in a format, without a newline at its end."""
    match form:
        case ReportFormat.text:
            return text_report(outcome, paint)
        case ReportFormat.json:
            return json.dumps(check_document(outcome), indent=2, ensure_ascii=False)
        case ReportFormat.sarif:
            return json.dumps(sarif_document(outcome), indent=2, ensure_ascii=False)
        case ReportFormat.junit:
            return junit_report(outcome)
        case ReportFormat.github:
            return github_commands(outcome)


def _new_baseline(outcome: Outcome, settings: Settings, output: Output) -> int:
    """Known from now on is what was found; what could not be looked at, or decided, stays a reason to fail."""
    assert settings.baseline is not None
    findings = outcome.findings
    if outcome.failures:
        failed = "; ".join(f"{failure.target}: {failure.message}" for failure in outcome.failures)
        raise UsageError(f"no baseline was written, since not all could be checked: {failed}")
    write_baseline(settings.baseline, findings)
    text = f"wrote {settings.baseline}: {len(findings)} known finding(s)"
    output.show({"file": str(settings.baseline), "findings": len(findings)}, text)
    return Verdict.CLEAN


def _deliver(text: str, options: CheckOptions, output: Output) -> None:
    if options.output is None:
        print(text, file=output.stream, flush=True)
        return
    try:
        Path(options.output).write_text(text + "\n", "utf-8")
    except OSError as error:
        raise UsageError(f"'{options.output}' can't be written: {error.strerror}; give another --output") from error
    output.note(f"wrote {options.output}")


def _coloured(output: Output) -> bool:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "") in ("", "dumb")
    return output.stream.isatty() and not plain


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Says on a terminal what goes on, in one line that goes away."""
    if not is_terminal():
        yield lambda text: None
        return
    from rich.console import Console  # slow to import

    with Console(stderr=True).status("checking") as status:
        yield lambda text: status.update(f"checking {text}")
