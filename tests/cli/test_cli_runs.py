"""The command that lists and searches the runs of a store."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from cli_help import Call, graph

from graphagent.checkpoint.finding import STATUSES
from graphagent.errors import UsageError
from runner.cli.runs import moment
from runner.cli.runs_options import RunState

DB = ("--db", "sqlite:///runs.db")
NOW = 1_750_000_000.0


@pytest.fixture(autouse=True)
def stored(call: Call) -> None:
    """A finished run `o1`, one that waits, `o2`, and one that failed, `o3`."""
    given = ("-i", '{"text": "hi", "due": "2026-01-02"}', *DB)
    assert call("run", graph("approval"), "-l", "o1", *given, "-a", "approve=yes").code == 0
    assert call("run", graph("approval"), "-l", "o2", *given).code == 3
    assert call("run", graph("failing"), "-l", "o3", *DB).code == 1


def test_runs_are_listed_the_last_changed_first(call: Call) -> None:
    """A line a run: what has become of it, and what it waits for, what failed, or what ran last."""
    lines = call("runs", *DB).out.splitlines()
    assert lines[0].split() == ["LINEAGE", "STATUS", "STEP", "CHANGED"]
    assert [line.split()[:3] for line in lines[1:]] == [
        ["o3", "failed", "1"], ["o2", "interrupted", "1"], ["o1", "completed", "3"],
    ]  # fmt: skip
    assert [line.split(maxsplit=5)[5] for line in lines[1:]] == [
        "node 'broken' failed: ValueError: the printer is on fire", "waits for 'approve'", "write",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["o2"], ["o2"]),
        (["--status", "failed", "-s", "interrupted"], ["o3", "o2"]),
        (["--node", "write"], ["o1"]),
        (["--node", "read"], ["o3", "o2", "o1"]),
        (["--error", "VALUEERROR"], ["o3"]),
        (["--since", "1h"], ["o3", "o2", "o1"]),
        (["--until", "2h"], []),
        (["--since", "2020-01-01", "--until", "2020-01-02T10:00+01:00"], []),
        (["--node", "read", "--status", "completed", "o1"], ["o1"]),
    ],
)
def test_conditions_narrow_the_list(call: Call, words: list[str], expected: list[str]) -> None:
    """Each condition by itself and several together."""
    done = call("runs", *words, *DB, "--json")
    assert (done.code, [run["lineage"] for run in done.data["runs"]]) == (0, expected)
    assert call("runs", *words, *DB).out.startswith("LINEAGE" if expected else "no such runs")


def test_json_has_all_that_is_known_of_a_run(call: Call) -> None:
    """One document, with times of a zone, and whether there is more; text says so on standard error."""
    data = call("runs", *DB, "--limit", "2", "--json").data
    assert data["more"] is True
    [failed, waiting] = data["runs"]
    assert (failed["error"], failed["graph"]) == ("node 'broken' failed: ValueError: the printer is on fire", "failing")
    assert (waiting["waits"], waiting["rows"], waiting["nodes"]) == (["approve"], 3, ["read"])
    assert datetime.fromisoformat(waiting["began"]) <= datetime.fromisoformat(waiting["updated"])
    assert datetime.fromisoformat(waiting["began"]).tzinfo is not None
    assert "more than 2: narrow it down, or give --limit" in call("runs", *DB, "--limit", "2").err
    assert call("runs", *DB, "--limit", "3").err == ""


def test_what_is_not_understood_is_misuse(call: Call) -> None:
    """A time or a status that there isn't, a store that isn't there: status 2 and the mend."""
    done = call("runs", *DB, "--since", "yesterday", "--json")
    assert done.code == 2
    assert (
        "--since 'yesterday' is not understood; write an age such as '30m'" in json.loads(done.out)["error"]["message"]
    )
    assert call("runs", *DB, "--status", "done").code == 2
    assert "no database 'other.db'" in call("runs", "--db", "other.db").err


def test_a_moment_is_an_age_or_a_date() -> None:
    """Ages go back from now; a date without a zone is local; what is neither is refused."""
    assert [moment(text, "--since", NOW) for text in ("90", "30m", "2h", "7d")] == [
        NOW - 90, NOW - 1800, NOW - 7200, NOW - 7 * 86400,
    ]  # fmt: skip
    assert moment("2026-03-01T14:30+00:00", "--since", NOW) == datetime(2026, 3, 1, 14, 30, tzinfo=UTC).timestamp()
    assert moment("2026-03-01", "--since", NOW) == datetime(2026, 3, 1).astimezone().timestamp()
    for text in ("", "0001-01-01x", "h2", "-1h", "tomorrow"):
        with pytest.raises(UsageError, match=r"--until '.*' is not understood"):
            moment(text, "--until", NOW)


def test_every_status_can_be_asked_for() -> None:
    """The command line knows the statuses that stores tell."""
    assert tuple(RunState) == STATUSES
