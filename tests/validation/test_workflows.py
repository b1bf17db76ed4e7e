"""Workflows as they are known from elsewhere, and what is wrong with them: through the command as a user calls it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from runner.cli.main import app

FOLDER = Path(__file__).parent
WORKFLOWS = sorted((FOLDER / "workflows").glob("*.json"))
UPGRADES = sorted((FOLDER / "upgrades").glob("*.json"))


def asked(*words: str) -> dict[str, Any]:
    """What a command prints as JSON."""
    done = CliRunner().invoke(app, [*words, "--format", "json"])
    assert done.exit_code in (0, 1), done.output
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("engine", ["eager", "superstep"])
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_known_workflow_is_judged_as_expected(path: Path, engine: str) -> None:
    """All findings that must be there, none that must not, the worst severity; clean means with both engines."""
    expected = json.loads(path.read_text("utf-8"))["expected"]
    findings = asked("check", str(path), "--engine", engine)["findings"]
    worst = next((s for s in ("error", "warning", "info") if any(f["severity"] == s for f in findings)), "clean")
    for must in expected["must"]:
        same = [f for f in findings if f["code"] == must["code"] and {*must.get("at", ())} <= {*f["at"]}]
        assert same, (must, findings)
    if engine == "eager" or expected["verdict"] == "clean":
        assert not {f["code"] for f in findings} & set(expected["must_not"])
        assert worst == expected["verdict"], findings


@pytest.mark.parametrize("path", UPGRADES, ids=lambda path: path.stem)
def test_an_upgrade_is_judged_as_expected(path: Path, tmp_path: Path) -> None:
    """The class of the change for the run at hand, or for any there may be, and the codes that say why."""
    case = json.loads(path.read_text("utf-8"))
    file: Callable[[str], Path] = lambda member: tmp_path / f"{member}.json"  # noqa: E731
    for member in ("old", "new", "checkpoint", "map"):
        file(member).write_text(json.dumps(case.get(member)))
    words = [str(file("old")), str(file("new"))]
    words += [word for option in ("checkpoint", "map") if option in case for word in (f"--{option}", str(file(option)))]
    report = asked("compat", *words)
    assert report["class"] == case["expected"]["class"], report["findings"]
    assert {*case["expected"]["codes"]} <= {finding["code"] for finding in report["findings"]}
