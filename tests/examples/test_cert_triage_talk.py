"""The triage as an agent: checks asked for in words, explained by a model, and talked about in a later process."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from cert_help import NOW
from support.openai_server import Answer, fails, openai_server, says

from examples.cert_triage.desk import FOLLOW_UP, opened_desk
from examples.cert_triage.graph import graph as plain
from examples.cert_triage.samples import HOST, Sample, make_samples
from examples.cert_triage.talk import APP, REPORT_NAME, REQUEST, agent, build, graph, make_agent
from examples.cert_triage.words import NOTHING_CHECKED, script
from graphagent.agents import RunOptions
from graphagent.errors import InterruptedRunError
from graphagent.ledger import SessionKey
from graphagent.models import ScriptedModel
from runner import Runner
from runner.artifacts import InMemoryArtifacts

pytestmark = pytest.mark.anyio
KEY = SessionKey(APP, "ann", "s")
ROOT = Path(__file__).parents[2]


def asked(sample: Sample, folder: Path) -> str:
    """A person's words for the check of a sample."""
    return f"Please check {sample.bundle} for {HOST} trusting {sample.ca_file} into {folder}"


async def said(runner: Runner, message: str | None, options: RunOptions = RunOptions()) -> tuple[str, str]:
    """How a run ends, and its last words."""
    text, outcome = "", ""
    async for event in runner.run(KEY.user, KEY.session, message, options):
        text = event.text if event.is_final else text
        outcome = event.extensions.get("outcome", "")
    return outcome, text


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("Check a.pem", {"target": "a.pem"}),
        ("check x/a.pem for shop.test", {"target": "x/a.pem", "hostname": "shop.test"}),
        ("could you check shop.test:443 trusting ca.pem?", {"target": "shop.test:443", "ca_file": "ca.pem?"}),
        ("check a.crt for b.test trusting ca.pem into out", {
            "target": "a.crt", "hostname": "b.test", "ca_file": "ca.pem", "out_dir": "out",
        }),
        ("Can you check yesterday's certificate again?", None),
        (FOLLOW_UP, None),
    ],
)  # fmt: skip
def test_what_is_a_request_for_a_check(message: str, found: dict[str, str] | None) -> None:
    """A file or host:port after 'check' is one; anything else is a question."""
    match = REQUEST.search(message)

    assert found == (match and {name: text for name, text in match.groupdict().items() if text})


def test_the_talk_is_the_triage_with_words_around_it() -> None:
    """Every node of the plain triage is in it, with the same ways between them; no warning."""
    assert graph.warnings == ()
    assert set(plain.nodes) < set(graph.nodes)
    assert set(graph.nodes) - set(plain.nodes) == {"read", "explain", "archive", "answer"}


async def test_each_check_saves_a_new_version_of_the_report(samples: dict[str, Sample], tmp_path: Path) -> None:
    """Two checks in one session are versions 0 and 1; the artifact ends with the model's words, the file has none."""
    artifacts = InMemoryArtifacts()
    async with Runner(APP, agent, artifacts=artifacts) as runner:
        for name in ("expiring", "out-of-order"):
            outcome, text = await said(runner, asked(samples[name], tmp_path))
            assert (outcome, text.partition(".pem")[0]) == ("completed", f"Clients accept '{samples[name].bundle}"[:-4])
    newest = await artifacts.load(KEY, REPORT_NAME)

    assert await artifacts.versions(KEY, REPORT_NAME) == [0, 1]
    assert newest is not None
    assert newest.data.decode().endswith(f"## In plain words\n\n{text}\n")
    assert "plain words" not in (tmp_path / "report-out-of-order.md").read_text()


async def test_without_artifacts_the_check_ends_all_the_same(samples: dict[str, Sample], tmp_path: Path) -> None:
    """A Runner without a service for files explains and has nothing to save to."""
    async with Runner(APP, agent) as runner:
        assert (await said(runner, asked(samples["healthy"], tmp_path)))[0] == "completed"


async def test_a_question_before_any_check_is_answered_with_the_way_to_ask_for_one() -> None:
    """There is nothing in the session to answer from."""
    async with Runner(APP, agent, artifacts=InMemoryArtifacts()) as runner:
        assert await said(runner, FOLLOW_UP) == ("completed", NOTHING_CHECKED)


async def test_a_question_does_not_take_the_place_of_an_answer(samples: dict[str, Sample], tmp_path: Path) -> None:
    """While the approval is open a message is refused; the answer then goes on with the same run."""
    async with Runner(APP, agent) as runner:
        assert (await said(runner, asked(samples["expired"], tmp_path)))[0] == "interrupted"
        with pytest.raises(InterruptedRunError, match="approve"):
            await said(runner, FOLLOW_UP)
        outcome, text = await said(runner, None, RunOptions(answers={"approve": "no"}))

    assert (outcome, "has expired" in text) == ("completed", True)
    assert not (tmp_path / "remediate-expired.sh").exists()


async def test_a_later_process_finds_the_session_again(tmp_path: Path) -> None:
    """The request of the second turn holds what was said in the first, and the report; the model is a fresh one."""
    sample = next(one for one in make_samples(tmp_path, NOW) if one.name == "leaf-last")
    database = f"sqlite:///{tmp_path / 'talk.db'}"
    async with opened_desk(make_agent(ScriptedModel(script)), database) as desk:
        await desk.check(sample, str(tmp_path))
        first = await desk.answer(sample, "yes")
    model = ScriptedModel(script)
    async with opened_desk(make_agent(model), database) as desk:
        later = await desk.ask(sample, FOLLOW_UP)
    (request,) = model.requests
    system, check, explanation, question = request.messages

    assert (first.state.report_version, later.outcome) == (0, "completed")
    assert [one.role for one in request.messages] == ["system", "user", "assistant", "user"]
    assert str(sample.bundle) in check.text
    assert (explanation.text, question.text) == (first.text, FOLLOW_UP)
    assert "## In plain words" in system.text
    assert first.text in later.text


async def test_a_model_that_is_down_costs_the_words_only(samples: dict[str, Sample], tmp_path: Path) -> None:
    """The run fails with the model's reason, the report is on disk, and the next check in the session works."""
    answers: list[Any] = [RuntimeError("no route to the model"), "All is well."]
    async with Runner(APP, make_agent(ScriptedModel(answers)), artifacts=InMemoryArtifacts()) as runner:
        failed = await said(runner, asked(samples["healthy"], tmp_path))
        assert (tmp_path / "report-healthy.md").exists()
        done = await said(runner, asked(samples["healthy"], tmp_path))

    assert failed[0] == "failed"
    assert done == ("completed", "All is well.")


def test_the_builder_takes_any_model() -> None:
    """The graph is the same whoever speaks."""
    assert build(ScriptedModel([])).compile().fingerprint == graph.fingerprint


async def with_model(folder: Path, url: str) -> tuple[int, dict[str, Any]]:
    """Exit status and data of the demo with a model behind a real socket."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_BASE": url, "OPENAI_API_KEY": "none"}
    command = [sys.executable, "-m", "examples.cert_triage.demo", "--json", "--answer", "approve=no"]
    done = await anyio.run_process([*command, "--model", "openai/small"], env=environment, cwd=folder, check=False)
    return done.returncode, json.loads(done.stdout)


async def test_the_demo_speaks_with_a_real_model(tmp_path: Path) -> None:
    """`--model` goes through litellm: the model is sent the facts, and in the later turn its own earlier words."""

    def answer(body: dict[str, Any]) -> Answer:
        question = body["messages"][-1]["content"]
        return says("It was ", "refused.") if question == FOLLOW_UP else says("Mend ", "it.")

    async with openai_server(answer) as server:
        status, data = await with_model(tmp_path, server.url)
    facts, later = server.requests[-2], server.requests[-1]

    assert (status, data["chosen"]["explanation"], data["later"]["answer"]) == (0, "Mend it.", "It was refused.")
    assert "leaf_not_first" in facts["messages"][0]["content"]
    assert [one["role"] for one in later["messages"]] == ["system", "user", "assistant", "user"]
    assert later["messages"][2]["content"] == "Mend it."


async def test_the_demo_says_why_a_model_does_not_speak(tmp_path: Path) -> None:
    """A refused key fails the runs; the data say so, and so does the exit status."""
    async with openai_server(lambda body: fails(401, "wrong key")) as server:
        status, data = await with_model(tmp_path, server.url)

    assert (status, data["chosen"]["status"], data["later"]) == (1, "failed", None)
    assert data["samples"]["healthy"]["status"] == "failed"
