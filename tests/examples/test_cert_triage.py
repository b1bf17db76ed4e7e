"""The whole triage as a graph: from the target to the report, with the question before the script."""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cert_help import NOW, Authority, tls_server

from examples.cert_triage.graph import CHECKS, graph
from examples.cert_triage.load import FetchError, InputError
from examples.cert_triage.report import Report
from examples.cert_triage.samples import HOST, Sample, make_samples, write_bundle
from graphagent import Executor, MemoryCheckpoints, RunResult, SqlCheckpoints
from graphagent.clock import SystemClock
from graphagent.errors import AnswerError, NodeError

pytestmark = pytest.mark.anyio


class StoppedClock(SystemClock):
    """A clock that shows one time of day."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> float:
        return self.moment.timestamp()


def executor() -> Executor:
    """An executor that keeps its runs in memory."""
    return Executor(graph, checkpoints=MemoryCheckpoints())


def inputs(sample: Sample, folder: Path) -> dict[str, Any]:
    """The input of a sample, judged at NOW, with its files in `folder`."""
    return sample.inputs(out_dir=str(folder), now=NOW.isoformat())


def written(folder: Path) -> list[str]:
    """The names of the files in a folder."""
    return sorted(path.name for path in folder.iterdir())


def read(path: str) -> str:
    """The text of a file."""
    return Path(path).read_text(encoding="utf-8")


def above_info(result: RunResult) -> list[str]:
    """The codes of all findings but the notes."""
    return [one.code for one in result.state.findings if one.severity != "info"]


async def test_every_sample_comes_to_its_verdict(samples: dict[str, Sample], tmp_path: Path) -> None:
    """Through the graph each sample has the verdict and findings it was made for; only critical ones ask."""
    for name, sample in samples.items():
        result = await executor().run(inputs(sample, tmp_path))

        assert (result.state.severity, tuple(above_info(result))) == (sample.verdict, sample.codes), name
        assert result.status == ("interrupted" if sample.verdict == "critical" else "completed"), name


async def test_what_is_not_critical_goes_straight_to_the_report(samples: dict[str, Sample], tmp_path: Path) -> None:
    """No question, no script; the report lies as Markdown and as JSON under the target's name."""
    result = await executor().run(inputs(samples["expiring"], tmp_path))
    state = result.unwrap()
    report = Report.model_validate_json((tmp_path / "report-expiring.json").read_text())

    assert written(tmp_path) == ["report-expiring.json", "report-expiring.md"]
    assert (state.approve, state.script, state.report) == (None, None, str(tmp_path / "report-expiring.md"))
    assert (report.verdict, report.host, [one.code for one in report.findings]) == ("warning", HOST, ["expires_soon"])
    assert "no script needed" in read(state.report)


async def test_nothing_is_written_before_the_question_is_answered(samples: dict[str, Sample], tmp_path: Path) -> None:
    """A critical finding stops the run with a question that names it; no file exists yet, not even the report."""
    result = await executor().run(inputs(samples["expired"], tmp_path))
    (question,) = result.interrupts

    assert (result.status, question.key, question.node) == ("interrupted", "approve", "approve")
    assert "expired.pem" in question.prompt["question"]
    assert question.prompt["critical"] == ["The server certificate 'CN=shop.example.test' has expired"]
    assert written(tmp_path) == []


async def test_approved_writes_the_script_and_says_so(samples: dict[str, Sample], tmp_path: Path) -> None:
    """Yes: an executable script for the finding, and a report that names it."""
    runs = executor()
    await runs.run(inputs(samples["leaf-last"], tmp_path), lineage="case")
    state = (await runs.resume("case", {"approve": "yes"})).unwrap()
    script = tmp_path / "remediate-leaf-last.sh"

    assert state.script == str(script)
    assert os.access(script, os.X_OK)
    assert "# [leaf_not_first]" in script.read_text()
    assert f"script written to {script}".replace("_", "\\_") in read(state.report)


async def test_refused_writes_no_script_and_says_so(samples: dict[str, Sample], tmp_path: Path) -> None:
    """No: the report is written all the same and says that the script was refused."""
    runs = executor()
    await runs.run(inputs(samples["leaf-last"], tmp_path), lineage="case")
    state = (await runs.resume("case", {"approve": "no"})).unwrap()

    assert written(tmp_path) == ["report-leaf-last.json", "report-leaf-last.md"]
    assert (state.script, state.approve) == (None, "no")
    assert "refused, no script written" in read(state.report)


async def test_an_answer_that_is_neither_yes_nor_no_is_refused(samples: dict[str, Sample], tmp_path: Path) -> None:
    """The answer is validated before anything is stored; the question stays open."""
    runs = executor()
    await runs.run(inputs(samples["weak-key"], tmp_path), lineage="case")

    with pytest.raises(AnswerError):
        await runs.resume("case", {"approve": "maybe"})
    with pytest.raises(AnswerError, match="'approve'"):
        await runs.resume("case", {"aprove": "yes"})
    assert [one.key for one in await runs.interrupts("case")] == ["approve"]
    assert written(tmp_path) == []


async def test_the_answer_may_come_to_another_process_after_the_bundle_is_gone(tmp_path: Path) -> None:
    """All evidence is in the checkpoint: another executor on the same file finishes without bundle and CA file."""
    folder = tmp_path / "samples"
    sample = next(one for one in make_samples(folder, NOW) if one.name == "missing-intermediate")
    database = f"sqlite:///{tmp_path / 'runs.db'}"
    async with SqlCheckpoints(database) as store:
        await Executor(graph, checkpoints=store).run(inputs(sample, tmp_path / "out"), lineage="case")
    sample.bundle.unlink()
    sample.ca_file.unlink()
    async with SqlCheckpoints(database) as store:
        state = (await Executor(graph, checkpoints=store).resume("case", {"approve": "yes"})).unwrap()

    assert "http://ca.example.test/issuing.der" in read(state.script)
    assert written(tmp_path / "out") == [
        "remediate-missing-intermediate.sh",
        "report-missing-intermediate.json",
        "report-missing-intermediate.md",
    ]


async def test_the_same_evidence_gives_the_same_state_and_report(samples: dict[str, Sample], tmp_path: Path) -> None:
    """Twice the same run: same findings in the same order (that of the checks), same report to the letter."""
    reports = []
    for _ in range(2):
        result = await executor().run(inputs(samples["out-of-order"], tmp_path))
        reports.append(((tmp_path / "report-out-of-order.json").read_text(), result.unwrap()))

    assert reports[0] == reports[1]


async def test_eager_and_superstep_engines_come_to_the_same_report(samples: dict[str, Sample], tmp_path: Path) -> None:
    """The join and the route don't depend on the engine."""
    texts = []
    for engine in ("superstep", "eager"):
        await Executor(graph, engine=engine).run(inputs(samples["expiring"], tmp_path))
        texts.append((tmp_path / "report-expiring.md").read_text())

    assert texts[0] == texts[1]


async def test_a_live_server_is_triaged(authority: Authority, tmp_path: Path) -> None:
    """host:port: the chain comes over TLS, the host is judged by default, and files are named after both."""
    ca_file = write_bundle(tmp_path / "ca.pem", [authority.root])
    with tls_server(tmp_path, [authority.server(), authority.issuing]) as target:
        given = {"target": target, "ca_file": str(ca_file), "out_dir": str(tmp_path / "out")}
        right = (await executor().run({**given, "hostname": HOST})).unwrap()
        wrong = await executor().run(given)

    assert (right.severity, right.findings) == ("ok", [])
    assert Path(right.report).name == f"report-{target.replace(':', '-')}.md"
    assert above_info(wrong) == ["host_mismatch"]
    assert wrong.state.host == "127.0.0.1"


async def test_without_now_the_clock_of_the_run_is_judged_by(samples: dict[str, Sample], tmp_path: Path) -> None:
    """The executor's clock decides when no time is given; a given time without zone is UTC."""
    healthy = samples["healthy"].inputs(out_dir=str(tmp_path))
    late = Executor(graph, clock=StoppedClock(datetime(2099, 1, 1, tzinfo=UTC)))
    result = await late.run(healthy)
    early = await executor().run({**healthy, "now": "1999-01-01T00:00:00"})

    assert set(above_info(result)) == {"expired"}
    assert set(above_info(early)) == {"not_yet_valid"}
    assert early.state.judged_at == datetime(1999, 1, 1, tzinfo=UTC)


async def test_a_target_that_is_nothing_fails_the_run_with_its_reason(tmp_path: Path) -> None:
    """A wrong path is not a finding: the run fails, once, and the error says what to do."""
    result = await executor().run({"target": "nowhere.pem", "out_dir": str(tmp_path)})

    assert result.status == "failed"
    assert isinstance(result.error, NodeError)
    assert (result.error.node, result.error.attempts) == ("load", 1)
    assert isinstance(result.error.__cause__, InputError)
    assert "'nowhere.pem' is neither a file nor 'host:port'" in str(result.error)
    assert written(tmp_path) == []


async def test_a_server_that_is_down_is_tried_twice(tmp_path: Path) -> None:
    """Network trouble is retried, a wrong path isn't."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    result = await executor().run({"target": f"127.0.0.1:{port}", "out_dir": str(tmp_path)})

    assert isinstance(result.error, NodeError)
    assert isinstance(result.error.__cause__, FetchError)
    assert result.error.attempts == 2


async def test_a_script_that_a_person_edited_is_not_written_again(samples: dict[str, Sample], tmp_path: Path) -> None:
    """When the report fails and the run is resumed, the script that was written before stays as it is."""
    runs = executor()
    await runs.run(inputs(samples["leaf-last"], tmp_path), lineage="case")
    obstacle = tmp_path / "report-leaf-last.json"
    obstacle.mkdir()
    failed = await runs.resume("case", {"approve": "yes"})
    script = tmp_path / "remediate-leaf-last.sh"
    script.write_text("echo edited\n")
    obstacle.rmdir()
    state = (await runs.resume("case")).unwrap()

    assert (failed.status, failed.state.script) == ("failed", str(script))
    assert (state.script, script.read_text()) == (str(script), "echo edited\n")


async def test_both_answers_can_be_tried_from_one_checkpoint(samples: dict[str, Sample], tmp_path: Path) -> None:
    """A fork takes the pending question with it; the answers don't touch each other."""
    runs = executor()
    waiting = await runs.run(inputs(samples["expired"], tmp_path), lineage="case")
    assert waiting.checkpoint is not None
    await runs.fork("case", waiting.checkpoint, new_lineage="other")
    refused = (await runs.resume("other", {"approve": "no"})).unwrap()
    approved = (await runs.resume("case", {"approve": "yes"})).unwrap()

    assert (refused.approve, refused.script) == ("no", None)
    assert (approved.approve, Path(approved.script).name) == ("yes", "remediate-expired.sh")
    assert refused.findings == approved.findings


async def test_a_finished_triage_replays_without_a_divergence(samples: dict[str, Sample], tmp_path: Path) -> None:
    """The recorded results lead through the same nodes to the same state: nothing was left to chance."""
    runs = executor()
    await runs.run(inputs(samples["expired"], tmp_path), lineage="case")
    await runs.resume("case", {"approve": "yes"})
    nodes = [header.nodes for header in reversed(await runs.history("case"))]

    assert (await runs.replay("case")).divergence is None
    assert [set(names) for names in nodes if names] == [
        {"load"}, set(CHECKS), {"verdict"}, {"approve"}, {"remediate"}, {"report"},
    ]  # fmt: skip


def test_the_graph_compiles_without_a_warning() -> None:
    """Not even a note: every label has its target, every target its way in."""
    assert graph.warnings == ()
    assert set(CHECKS) < set(graph.nodes)


def test_inputs_on_disk_fit_the_state(samples: dict[str, Sample]) -> None:
    """The JSON beside each sample is what `graphagent run --input` takes."""
    for sample in samples.values():
        given = json.loads(sample.bundle.with_suffix(".json").read_text())

        assert set(given) <= set(graph.schema.fields)
        assert Path(given["target"]) == sample.bundle
