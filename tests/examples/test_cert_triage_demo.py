"""The demo as a person at a terminal, a CI job and a program start it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples.cert_triage.demo import main

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every demo runs in a folder of its own."""
    monkeypatch.chdir(tmp_path)


def at_a_terminal(answer: str) -> str:
    """What the demo shows at a real (pseudo) terminal at which a person types this answer."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "examples.cert_triage.demo"],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # what Linux raises when the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0, shown.decode()
    return shown.decode()


def test_a_person_at_a_terminal_is_asked(tmp_path: Path) -> None:
    """In colour, with the question and its reason; the answer decides whether there is a script."""
    shown = at_a_terminal("y")

    assert "\x1b[31mcritical\x1b[0m" in shown
    assert "May a remediation script for 'demo-out/leaf-last.pem' be written" in shown
    assert "Approve? [y/n]" in shown.replace("\x1b[1;35m", "").replace("\x1b[0m", "")
    assert (tmp_path / "demo-out" / "remediate-leaf-last.sh").exists()


def test_the_demo_ends_with_report_graph_and_next_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Answered on the command line it shows table, report, explanation, the later talk, graph and four commands; no
    colours into a pipe."""
    assert main(["--answer", "approve=yes"]) == 0
    shown = capsys.readouterr().out

    for text in (
        "waits for 'approve'",
        "- Remediation: script written to",
        "The script 'demo-out/remediate-leaf-last.sh' does it.\nSaved as artifact 'report.md', version 0.",
        "> What about yesterday's certificate?\nAs I said: Clients refuse 'demo-out/leaf-last.pem'.",
        "The report: demo-out/leaf-last.pem: CRITICAL.",
        "flowchart TD",
        "Try next",
        "graphagent replay",
    ):
        assert text in shown, text
    assert "\x1b[" not in shown
    assert (tmp_path / "demo-out" / "demo.db").exists()


def test_the_commands_to_try_next_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of the commands that the demo ends with runs as it is printed; the talk goes on in the session."""
    assert main(["--answer", "approve=yes"]) == 0
    shown = capsys.readouterr().out
    commands = [line.strip() for line in shown.splitlines() if line.startswith("    graphagent ")]
    assert [command.split()[1] for command in commands] == ["debug", "studio", "replay", "chat", "run"]
    scripts = Path(sys.executable).parent
    for command in commands:
        if command.startswith("graphagent studio"):
            _serves([str(scripts / "graphagent"), *command.split()[1:], "--no-browser"])
            continue
        done = subprocess.run(
            [str(scripts / "graphagent"), *command.split()[1:]],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, input="And the first one?\n", capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert "graphagent chat" not in command or "As I said: As I said: Clients refuse" in done.stdout, done.stdout


def _serves(words: list[str]) -> None:
    """A server says where it is, and ends in an orderly way when it is told to."""
    server = subprocess.Popen(words, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert "http://127.0.0.1:" in server.stdout.readline()
    server.send_signal(signal.SIGINT)
    assert server.wait(30) == 0
    server.stdout.close()


def test_without_terminal_and_answer_the_run_keeps_waiting(tmp_path: Path) -> None:
    """Nobody is asked where nobody can answer: no script, and the way to answer is shown."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.cert_triage.demo"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=True,
    )  # fmt: skip

    assert "--answer approve=yes" in done.stdout
    assert "Later, in the same session" not in done.stdout
    assert not list((tmp_path / "demo-out").glob("remediate-*"))


def test_the_demo_loads_no_provider() -> None:
    """With its script for a model it starts quickly: nothing is imported that only a provider or a migration needs."""
    program = (
        "import sys; from examples.cert_triage.demo import main; main(['--answer', 'approve=no', '--json']); "
        "sys.exit(', '.join({'litellm', 'sqlalchemy', 'mcp'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")


def test_the_demo_as_data_can_be_run_again(capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints one document, and a second run in the same folder starts its lineages anew."""
    shown = []
    for _ in range(2):
        assert main(["--json", "--sample", "expired", "--answer", "approve=no"]) == 0
        shown.append(json.loads(capsys.readouterr().out))

    assert shown[0] == shown[1]
    assert shown[0]["samples"]["expired"] == {"verdict": "critical", "findings": ["expired"], "status": "interrupted"}
    assert (shown[0]["chosen"]["status"], shown[0]["chosen"]["script"]) == ("completed", None)
    assert shown[0]["chosen"]["artifact"] == {"name": "report.md", "version": 0}
    assert shown[0]["later"]["answer"].startswith(f"As I said: {shown[0]['chosen']['explanation']}")


@pytest.mark.parametrize("sample", ["healthy", "nosuch"])
def test_a_sample_that_asks_nothing_is_refused(capsys: pytest.CaptureFixture[str], sample: str) -> None:
    """Only critical samples have a question to answer; the others are refused with the list of them."""
    with pytest.raises(SystemExit):
        main(["--sample", sample])

    assert (
        f"sample '{sample}' is not one of the critical ones: expired, missing-intermediate" in capsys.readouterr().err
    )


def test_the_demo_by_a_skill(capsys: pytest.CaptureFixture[str]) -> None:
    """With --skill its script writes the diagnosis before the answer and after it: version 0, then 1, every time."""
    for _ in range(2):
        assert main(["--answer", "approve=yes", "--skill", "--json"]) == 0
        data = json.loads(capsys.readouterr().out)
        assert data["diagnoses"] == [{"name": "diagnosis.md", "version": n} for n in (0, 1)]
    assert main(["--answer", "approve=yes", "--skill"]) == 0
    shown = capsys.readouterr().out
    assert "# demo-out/leaf-last.pem: critical" in shown
    assert "A script that mends it: demo-out/remediate-leaf-last.sh" in shown
    assert "Saved as artifact 'diagnosis.md', version 1." in shown
