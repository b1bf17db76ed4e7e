"""Which numbered cases of agents, models, tools, Runner and sessions have a test that names them, and which have none:
`python -m tests.tools.case_census [--list]`. Ends with code 1 if one has none.

A test names a case in its function's name (`test_e079_...`) or in the id of a parameter (`c195`, `c197 same index`).
`e` is spec/graph, `s` spec/services, `c` spec/context or a public fault report: spec/context has its tests where
services, processors, agents and the Runner have theirs, and no fault report of these kinds has a number that
spec/context has here. Number 31 of spec/services is about a tool that comes with skills.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
CONTEXT = ("acceptance", "agents", "context", "memory", "processors", "recall", "runner", "services", "summary")
OTHER_REPORTS = ("test_c071_a_process", "test_c073_the_recorded", "test_c113_c114")
"""Tests in these places that name fault reports of other kinds, with numbers that spec/context has too."""


class Kind(NamedTuple):
    """A row of numbered cases. `places`: folders of tests that may name them, none: any."""

    title: str
    letter: str
    numbers: tuple[int, ...]
    places: tuple[str, ...] = ()


def span(first: int, last: int) -> tuple[int, ...]:
    """The numbers from first to last, with both."""
    return tuple(range(first, last + 1))


KINDS = (
    Kind("spec/graph, agents", "e", span(79, 89)),
    Kind("spec/context, events and sessions", "c", span(1, 20), CONTEXT),
    Kind(
        "spec/context, rolling summary",
        "c",
        (*span(21, 26), *span(28, 33), 41, 42, *span(47, 53)),
        ("summary", "context"),
    ),
    Kind("spec/context, making a summary", "c", (27, *span(34, 40), *span(43, 46), 54), ("summary",)),
    Kind("spec/context, projection", "c", span(55, 73), CONTEXT),
    Kind("spec/context, compaction and rescue", "c", span(74, 90), ("context", "processors")),
    Kind("spec/context, recall", "c", span(91, 101), CONTEXT),
    Kind("spec/context, memory", "c", span(102, 110), CONTEXT),
    Kind("spec/context, runner", "c", span(111, 118), CONTEXT),
    Kind("spec/services, tools", "s", span(20, 30)),
    Kind("spec/services, artifacts", "s", span(40, 42)),
    Kind("spec/services, models", "s", (79, 80)),
    Kind("reports: history", "c", (169, 173, 174, 177, 178, 180, 182, 183, 187, 188)),
    Kind("reports: token", "c", (189, 191, 193)),
    Kind("reports: provider", "c", (195, 197, 199, 202, 204)),
    Kind("reports: stream", "c", (36, 37, 38)),
    Kind("reports: concur", "c", (142, 144, 145, 146, 148, 151, 153)),
    Kind("reports: leak", "c", (154, 156)),
    Kind("reports: cancel", "c", (80, 81, 83, 84, 90)),
)


def named(kind: Kind, number: int, texts: dict[Path, str]) -> list[str]:
    """The files with a test that names a case of a kind."""
    word = rf"{kind.letter}0*{number}"
    pattern = re.compile(rf"def test_(?:[ces]\d+_)*{word}_|[\"']{word}(?=[\"' _:])", re.IGNORECASE)
    return sorted(
        str(path.relative_to(TESTS))
        for path, text in texts.items()
        if (not kind.places or path.relative_to(TESTS).parts[0] in kind.places) and pattern.search(text)
    )


def sources() -> dict[Path, str]:
    """The tests, without the names that stand for other cases."""
    others = re.compile("|".join(OTHER_REPORTS))
    paths: Iterable[Path] = sorted(TESTS.rglob("test_*.py"))
    return {path: others.sub("test_other", path.read_text(encoding="utf-8")) for path in paths}


def main() -> int:
    """Print the counts of each kind, and the cases without a test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="also which files name each case")
    told = parser.parse_args()
    texts = sources()
    missing = total = 0
    for kind in KINDS:
        found = {number: named(kind, number, texts) for number in kind.numbers}
        without = [f"{kind.letter}{number:03}" for number, files in found.items() if not files]
        total, missing = total + len(found), missing + len(without)
        print(f"{kind.title:36}{len(found) - len(without):3} of {len(found):3}  {' '.join(without)}".rstrip())
        for number, files in found.items() if told.list else ():
            print(f"    {kind.letter}{number:03}  {', '.join(files)}")
    print(f"{total - missing} of {total} cases have a test that names them")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
