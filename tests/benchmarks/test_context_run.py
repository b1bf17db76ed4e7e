"""The context benchmark as it is run: on a tiny data set written here, and its loaders on the real one."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.context import data, run
from benchmarks.context.plot import plot
from benchmarks.context.savings import savings
from graphagent.agents.model import ModelRequest
from graphagent.errors import ModelError
from graphagent.models import ScriptedModel
from graphagent.models.scripted import Item

ROOT = Path(__file__).parents[2]
REAL = ROOT.parent / "shared" / "data"
WORDS = ("garden", "tractor", "invoice", "kettle", "harbour", "violin", "glacier", "saddle", "lantern", "orchard")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of each kind, of one short conversation each."""
    made = tmp_path_factory.mktemp("data")
    for name, kind, content in (
        ("qmsum", "test.jsonl", json.dumps(_meeting())),
        ("locomo", "locomo10.json", json.dumps([_chat()])),
        ("longmemeval", "longmemeval_s_3.json", json.dumps([_history()])),
        ("longmemeval", "extra_questions.jsonl", json.dumps(_extra())),
        ("mtbench101", "mtbench101.jsonl", "\n".join(json.dumps(_dialogue(n)) for n in range(2))),
    ):
        (made / name).mkdir(exist_ok=True)
        (made / name / kind).write_text(content + "\n", encoding="utf-8")
    return made


def _line(at: int) -> str:
    return f"In point {at} we speak of the {WORDS[at % len(WORDS)]} and what is to be done about it, number {at * 7}."


def _meeting() -> dict[str, Any]:
    turns = [{"speaker": f"P{at % 3}", "content": _line(at)} for at in range(130)]
    query = {"query": "What of the tractor, number 7?", "answer": "Point 1.", "relevant_text_span": [["1", "2"]]}
    late = {"query": "And the end?", "answer": "None.", "relevant_text_span": [["100", "101"]]}
    return {"meeting_id": "M1", "domain": "Tiny", "meeting_transcripts": turns, "specific_query_list": [query, late]}


def _chat() -> dict[str, Any]:
    conversation: dict[str, Any] = {}
    for part in (1, 2):
        turns = [
            {"speaker": ("Ann", "Bob")[at % 2], "dia_id": f"D{part}:{at}", "text": _line(at + 40 * part)}
            for at in range(40)
        ]
        turns[3]["blip_caption"] = "a red kite"
        conversation |= {f"session_{part}": turns, f"session_{part}_date_time": f"{part} May"}
    asked = [
        {"question": "Who shares a kite?", "answer": 3, "category": 4, "evidence": ["D1:3"]},
        {"question": "Unfair?", "adversarial_answer": "no", "category": 5, "evidence": ["D1:4"]},
        {"question": "No evidence?", "answer": "no", "category": 1, "evidence": ["D9:1"]},
    ]
    return {"sample_id": "conv-48", "conversation": conversation, "qa": asked}


def _history() -> dict[str, Any]:
    turns = [{"role": ("user", "assistant")[at % 2], "content": _line(at)} for at in range(120)]
    turns[4]["has_answer"] = True
    return {
        "question_id": "L1",
        "question_type": "single",
        "question": "What is number 28?",
        "answer": "A harbour.",
        "answer_session_ids": ["s1"],
        "haystack_dates": ["2024/02", "2024/01"],
        "haystack_session_ids": ["s2", "s1"],
        "haystack_sessions": [turns[60:], turns[:60]],
    }


def _extra() -> dict[str, Any]:
    asked = {"question_id": "L1_x1", "haystack_of": "L1", "question": "What else?", "answer": "Nothing."}
    return {**asked, "answer_session_ids": ["s2"], "origin": "third-party"}


def _dialogue(number: int) -> dict[str, Any]:
    return {"task": "CM", "id": number, "history": [{"user": _line(at), "bot": _line(at + 1)} for at in range(4)]}


def test_the_whole_table(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One run measures everything, prints each figure with its bar, and writes the same as JSON and as pictures. In
    short talks a summary every two turns costs more in all of them, and the estimate makes none."""
    out = tmp_path / "figures.json"
    given = ["--data", str(folder), "--size", "100", "--turns", "30,200"]
    code = run.main([*given, "--json", str(out), "--plot", str(tmp_path / "plot")])
    figures = json.loads(out.read_text())
    printed = capsys.readouterr().out
    assert code == int("MISSED" in printed)
    assert "proxy" in printed
    assert all(f"{name} " in printed for name in figures)
    assert figures["qmsum.cases"] == 1
    assert 0 < figures["qmsum.summary.tokens"] < figures["qmsum.search.tokens"] < figures["qmsum.load.tokens"]
    assert figures["qmsum.saved"] > 0.5
    assert figures["qmsum.rolling_share"] < 1
    assert figures["qmsum.search.calls"] == 2
    assert figures["qmsum.shown.hit"] == figures["qmsum.hit@5"] == figures["locomo.shown.hit"] == 1
    assert figures["qmsum.break_even"] > 0
    assert figures["mtbench101.every_two_turns.negative"] == 2
    assert figures["mtbench101.pays_back.negative"] == figures["mtbench101.default.negative"] == 0
    assert figures["live.turns"] == 60
    assert figures["live.calls"] > 0
    assert figures["growth.sqlite.ratio"] == pytest.approx(1, abs=0.02)
    assert (tmp_path / "plot.png").read_bytes()[1:4] == b"PNG"
    assert "</svg>" in (tmp_path / "plot.svg").read_text()


def test_a_model_answers_in_the_place_of_the_stand_in(folder: Path) -> None:
    """It sums up, answers and has the tools; what it answers is measured, and a run that fails counts as no answer."""
    refused = ModelError("too long", kind="context_length")

    def answer(request: ModelRequest) -> Item:
        return refused if len(request.messages) > 100 else "Point 1."

    model = ScriptedModel(answer, context_window=100_000)
    figures = asyncio.run(savings("qmsum", data.qmsum(folder), 100, print, model=model))
    assert figures["qmsum.full.failed"] == 1
    assert figures["qmsum.full.f1"] == 0
    assert figures["qmsum.recalled.f1"] == figures["qmsum.summary.rouge_l"] == 1
    assert figures["qmsum.saved.recalled"] > 0
    assert "qmsum.own.anew" not in figures
    assert {tool.name for tool in model.requests[-1].tools} == {"session_search", "session_load"}


def test_it_is_a_script(folder: Path) -> None:
    """The documented command runs from any folder; a part that isn't one is refused with those that are."""
    script = str(ROOT / "benchmarks" / "context" / "run.py")
    command = [sys.executable, script, "--data", str(folder), "--only"]
    done = subprocess.run([*command, "mtbench101"], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "mtbench101.default.negative" in done.stdout
    done = subprocess.run([*command, "growht"], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "the parts are qmsum, locomo" in done.stderr


def test_nothing_to_draw(tmp_path: Path) -> None:
    """Without figures there is no picture."""
    assert plot({}, tmp_path / "plot") == []


def test_the_loaders_read_the_published_files(folder: Path) -> None:
    """Questions near a meeting's end, of the adversarial kind or without usable evidence are left out; parts of a
    history are put in order by their dates."""
    assert [one.id for one in data.qmsum(folder).questions] == ["M1_specific_01"]
    assert data.qmsum(folder).questions[0].evidence == {"M1:1", "M1:2"}
    [asked] = data.locomo(folder).questions
    assert (asked.answer, asked.evidence, asked.sessions) == ("3", {"conv-48:D1:3"}, {"conv-48/s1"})
    assert data.locomo(folder).conversations["conv-48"][3].text.endswith("[shares a red kite]")
    history = data.longmemeval(folder)
    assert [one.session for one in history.conversations["L1"]] == ["s1"] * 60 + ["s2"] * 60
    assert [one.kind for one in history.questions] == ["single", "third-party"]
    assert [len(one.turns) for one in data.mtbench101(folder)] == [4, 4]


@pytest.mark.filterwarnings("ignore:.*unclosed file")  # by the data's own tools
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(not REAL.is_dir(), reason="the data sets lie beside the project, which is not so here")
def test_the_loaders_agree_with_those_of_the_data() -> None:
    """On the real files they give the same conversations, questions and dialogues as the tools that come with them."""
    spec = importlib.util.spec_from_file_location("sets", REAL / "tools" / "sets.py")
    assert spec is not None
    assert spec.loader is not None
    sets: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sets)
    for ours, theirs in (
        (data.qmsum(REAL), sets.qmsum("test", 80)),
        (data.locomo(REAL), sets.locomo()),
        (data.longmemeval(REAL), sets.longmemeval()),
    ):
        said = {
            name: [(one.id, one.session, one.role, one.text) for one in v] for name, v in ours.conversations.items()
        }
        assert said == {
            name: [(m["id"], m["session"], m["role"], m["text"]) for m in one["messages"]]
            for name, one in theirs[0].items()
        }
        asked = [(one.id, one.conversation, one.text, one.answer, set(one.evidence)) for one in ours.questions]
        names = ("id", "conversation", "question", "answer", "evidence")
        assert asked == [tuple(one[name] for name in names) for one in theirs[1]]
    dialogues = [(one["id"], one["task"], tuple(one["turns"])) for one in sets.mtbench101(sets.NINE)]
    assert dialogues == [tuple(one) for one in data.mtbench101(REAL)]
    assert len(dialogues) == 917


@pytest.mark.skipif(not REAL.is_dir(), reason="the data sets lie beside the project, which is not so here")
def test_real_dialogues_never_cost_more(tmp_path: Path) -> None:
    """On real dialogues, all calls counted: a summary every two turns loses each time, the estimate never does."""
    out = tmp_path / "figures.json"
    assert run.main(["--data", str(REAL), "--only", "mtbench101", "--limit", "40", "--json", str(out)]) == 0
    figures = json.loads(out.read_text())
    assert figures["mtbench101.every_two_turns.negative"] == 40
    assert figures["mtbench101.pays_back.negative"] == figures["mtbench101.default.negative"] == 0
