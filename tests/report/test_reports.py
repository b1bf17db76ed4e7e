"""Reports of stored runs: the page, Markdown, JUnit XML, and what notebooks show."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml
from report_graphs import GRAPHS, Note, completed, endless

from graphagent import Executor, Limits
from graphagent.errors import CheckpointNotFound
from runner.cli.output import Output
from runner.cli.report import report as report_command
from runner.cli.report_options import ReportOptions
from runner.report.gather import gather
from runner.report.junit import junit
from runner.report.markdown import markdown
from runner.report.page import page
from runner.report.values import FIRST, LAST, RunReport

pytestmark = pytest.mark.anyio
NASTY = "</pre><script>alert('x')</script> & `code` | *bold* \x07"
LIMITS = Limits(max_steps=3)


async def reported(store: Any, status: str, lineage: str, *, typed: bool = True, text: str = "hello") -> RunReport:
    """The report on a run that ended with that status."""
    executor = Executor(GRAPHS[status], store, limits=LIMITS)
    result = await executor.run({"text": text}, lineage=lineage)
    assert result.status == status
    return await gather(store, lineage, executor=executor if typed else None, target="flows.py:graph")


class Seen(HTMLParser):
    """Text and tags of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href") and value]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("status", GRAPHS)
async def test_every_form_says_how_the_run_stands_and_why(store: Any, lineage: str, status: str) -> None:
    """Status, reason or question, the way and the next command are in the page and in Markdown; JUnit XML is read by a
    reader of it, with a failure for a run that failed and a skip for one that waits."""
    report = await reported(store, status, lineage)
    seen = Seen(page(report))
    assert "svg" in seen.tags
    assert seen.links == []
    for text in (seen.text, markdown(report)):
        assert lineage in text
        assert report.advice in text
        assert "write" in text
    if status in ("failed", "limit_reached"):
        assert (report.info.error or "")[:30] in seen.text
    if status == "interrupted":
        assert "go <on>?" in seen.text
    suite = next(iter(JUnitXml.fromstring(junit(report).encode())))
    assert suite.tests == len([e for e in report.entries if e.moment.source == "step"]) + 1
    assert (suite.failures, suite.skipped) == (
        int(status in ("failed", "limit_reached")),
        int(status == "interrupted"),
    )


async def test_a_child_graph_is_told_inside_the_step_that_runs_it(store: Any, lineage: str) -> None:
    """The rows of the child are between the parent's, one level deeper, and the writes of each step name their node."""
    report = await reported(store, "completed", lineage)
    told = [(entry.depth, entry.moment.source, entry.moment.ran) for entry in report.entries]
    assert told == [
        (0, "input", ()),
        (0, "step", ("write",)),
        (1, "input", ()),
        (1, "step", ("write",)),
        (1, "end", ()),
        (0, "step", ("more",)),
        (0, "end", ()),
    ]
    assert [write.node for entry in report.entries for write in entry.writes] == ["write", "write", "more"]


async def test_without_its_graph_a_run_is_told_from_plain_data(store: Any, lineage: str) -> None:
    """No picture and no writes, but status, steps, changes and state."""
    report = await reported(store, "completed", lineage, typed=False)
    assert report.picture == ""
    assert report.state["log"] == ["wrote hello", "wrote hello"]
    assert "wrote hello" in Seen(page(report)).text


@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_nothing_of_a_state_is_taken_for_markup(store: Any, lineage: str, status: str) -> None:
    """Tags, Markdown and control characters in a state stay text in every form."""
    report = await reported(store, status, lineage, text=NASTY)
    seen = Seen(page(report))
    assert "script" not in seen.tags
    assert "alert('x')" in seen.text
    assert "<script>" not in markdown(report)
    for row in markdown(report).splitlines():
        assert not row.startswith("|") or len(re.findall(r"(?<!\\)\|", row)) == 5
    JUnitXml.fromstring(junit(report).encode())


async def test_a_long_run_is_shown_in_part_and_says_so(store: Any, lineage: str) -> None:
    """Of more rows than a report has, the first and the last are shown, and how many are missing."""
    await Executor(endless, store, limits=Limits(max_steps=FIRST + LAST + 40)).run({"text": "x"}, lineage=lineage)
    report = await gather(store, lineage)
    assert len(report.entries) == FIRST + LAST
    assert report.left_out == 42
    assert "42 checkpoints are left out here." in Seen(page(report)).text
    assert len(page(report)) < 2_000_000


async def test_an_unknown_run_is_refused_with_the_nearest_one(store: Any, lineage: str) -> None:
    """The message names what is there."""
    await reported(store, "completed", lineage)
    with pytest.raises(CheckpointNotFound, match=re.escape(lineage)):
        await gather(store, f"{lineage}x")


async def test_a_notebook_shows_a_result_as_a_table(lineage: str) -> None:
    """Status, reason and fields, escaped; long values are cut."""
    result = await Executor(completed).run({"text": NASTY + "x" * 500}, lineage=lineage)
    seen = Seen(result._repr_html_())
    assert seen.tags[0] == "table"
    assert "script" not in seen.tags
    assert "completed" in seen.text
    assert f"({len(result.state.text)} characters)" in seen.text


async def test_a_notebook_never_shows_a_secret() -> None:
    """A secret at any depth has its mask."""
    from pydantic import BaseModel, SecretStr

    from graphagent.engine.result import RunResult

    class Login(BaseModel):
        key: SecretStr = SecretStr("hunter2")

    class Account(BaseModel):
        login: Login = Login()
        key: SecretStr = SecretStr("hunter2")
        notes: list[Note] = [Note(text="plain")]

    text = RunResult("completed", "completed", Account())._repr_html_()
    assert "hunter2" not in text
    assert "plain" in text


def test_the_command_writes_the_files_it_is_asked_for(tmp_path: Path, capsys: Any) -> None:
    """Each form to its file, and what was written is said, as JSON with --json."""
    import anyio

    from graphagent import SqlCheckpoints

    url = f"sqlite:///{tmp_path / 'runs.db'}"

    async def run() -> None:
        async with SqlCheckpoints(url) as store:
            await Executor(completed, store).run({"text": "hello"}, lineage="l")

    anyio.run(run)
    files = {"html": str(tmp_path / "r.html"), "markdown": str(tmp_path / "r.md"), "junit": str(tmp_path / "r.xml")}
    graph = f"{Path(__file__).parent / 'report_graphs.py'}:completed"
    options = ReportOptions(lineage="l", db=url, graph=graph, as_json=True, **files)  # type: ignore[arg-type]
    import sys

    assert report_command(options, Output(True, sys.stdout)) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["files"] == files
    assert said["status"] == "completed"
    assert all(Path(file).stat().st_size for file in files.values())
