"""Checks of graphs and replays of recorded runs as tests of the pytest plugin: whether it failed, and what to show."""

from __future__ import annotations

import contextlib
from pathlib import Path

import anyio

from graphagent.engine.export import replay_exported
from graphagent.errors import GraphAgentError, UsageError, alternatives
from runner.check.baseline import read_baseline, without_known
from runner.check.find import find
from runner.check.judge import Outcome, Verdict, judge
from runner.check.settings import read_settings
from runner.check.text import text_report
from runner.cli.options import CheckOptions, FailOn
from runner.cli.recorded import graph_of_run, read_run


def check_target(target: str, root: Path, fail_on: str = "") -> tuple[bool, str]:
    """Whether a graph fails, and the report. A graph that could not be found or decided fails.

    `root`: the folder that targets are named from. `fail_on`: the least severity that counts; empty: as
    `[tool.graphagent.check]` says, like all other settings.
    """
    try:
        with contextlib.chdir(root):
            settings = read_settings(CheckOptions(targets=[target], fail_on=_severity(fail_on)))
            found = find(settings.targets)
            outcome = Outcome(judge(found.candidates, settings, root, _silent), found.failures, settings, root)
            if settings.baseline is not None:
                checked, gone = without_known(outcome.checked, read_baseline(settings.baseline))
                outcome = Outcome(checked, outcome.failures, settings, root, gone)
            return outcome.verdict is not Verdict.CLEAN, text_report(outcome)
    except GraphAgentError as error:
        return True, str(error)


def replay_file(path: str, root: Path) -> tuple[bool, str]:
    """Whether the graph of an exported run goes another way than the run did, and where."""
    try:
        with contextlib.chdir(root):
            if not Path(path).is_file():
                raise UsageError(f"graphagent_runs names '{path}', and no file is there: mend the pattern")
            document = read_run(path)
            report = anyio.run(replay_exported, graph_of_run(document, path), document)
    except GraphAgentError as error:
        return True, str(error)
    skipped = f", {report.skipped} could not be checked" if report.skipped else ""
    counted = f"{path}: {report.steps} step(s) of '{report.lineage}' checked{skipped}"
    if report.divergence is not None:
        return True, f"{counted}: diverges at {report.divergence.checkpoint}: {report.divergence.message}"
    if not report.steps:
        return True, f"{counted}: no step could be, so this proves nothing; record with durability 'step'"
    return False, f"{counted}: no divergence"


def _severity(text: str) -> FailOn | None:
    if text and text not in list(FailOn):
        raise UsageError(f"graphagent_fail_on is '{text}', which is unknown: {alternatives(text, list(FailOn))}")
    return FailOn(text) if text else None


def _silent(text: str) -> None:
    """Nothing is shown while a test runs."""
