"""Findings that are known already: a file that lets a team begin with the ones that are new."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphagent.errors import UsageError
from graphagent.validation import Diagnostic
from runner.check.judge import Checked

_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Known:
    """The findings of a baseline: how many there are by fingerprint, and by fingerprint and message."""

    exact: Counter[tuple[str, str]]
    alike: Counter[str]


def read_baseline(path: Path) -> Known:
    """The findings in a file. Raises UsageError."""
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["schema"] != _SCHEMA:
            raise ValueError(f"its schema is {content['schema']!r}, not {_SCHEMA}")
        items = [(str(item["fingerprint"]), str(item["message"])) for item in content["findings"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = "make it with --write-baseline"
        raise UsageError(f"'{path}' can't be read as a baseline: {type(error).__name__}: {error}; {hint}") from error
    return Known(Counter(items), Counter(fingerprint for fingerprint, _ in items))


def write_baseline(path: Path, findings: Sequence[Diagnostic]) -> None:
    """Write the findings in a form that merges well: sorted, one key a line. Raises UsageError."""
    items = sorted((_item(finding) for finding in findings), key=lambda item: (item["graph"], item["code"], item["at"]))
    text = json.dumps({"schema": _SCHEMA, "findings": items}, indent=2, ensure_ascii=False)
    try:
        path.write_text(text + "\n", "utf-8")
    except OSError as error:
        raise UsageError(f"'{path}' can't be written: {error.strerror}; give another --baseline") from error


def _item(finding: Diagnostic) -> dict[str, Any]:
    return {
        "fingerprint": finding.fingerprint,
        "graph": finding.graph,
        "code": finding.code,
        "at": list(finding.at),
        "message": finding.message,
    }


def without_known(checked: Sequence[Checked], known: Known) -> tuple[list[Checked], int]:
    """The graphs with the findings that are new, and how many of the known ones are gone.

    Each entry stands for one finding: first for one with the same message, then, since messages may be reworded, for
    the mildest with the same fingerprint.
    """
    exact, alike = Counter(known.exact), Counter(known.alike)
    matched: set[int] = set()
    findings = [finding for one in checked for finding in one.report.findings]
    for finding in findings:
        if exact[finding.fingerprint, finding.message] > 0:
            exact[finding.fingerprint, finding.message] -= 1
            alike[finding.fingerprint] -= 1
            matched.add(id(finding))
    for finding in reversed(findings):
        if id(finding) not in matched and alike[finding.fingerprint] > 0:
            alike[finding.fingerprint] -= 1
            matched.add(id(finding))
    kept = []
    for one in checked:
        new = tuple(finding for finding in one.report.findings if id(finding) not in matched)
        kept.append(replace(one, report=replace(one.report, findings=new), known=len(one.report.findings) - len(new)))
    return kept, alike.total()
