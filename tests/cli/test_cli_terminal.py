"""The command line as a person at a terminal sees it, in a real terminal (tmux)."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_help import COMMAND, environment, graph

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """A terminal of 100 columns with a shell command in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = str(folder / "tmux")

    def tmux(self, *words: str) -> str:
        """Call tmux on a server of our own."""
        with_server = ["tmux", "-S", self._socket, "-f", "/dev/null", *words]
        kept = {k: v for k, v in environment().items() if k not in ("TMUX", "TERM")}
        kept |= {"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
        return subprocess.run(with_server, capture_output=True, text=True, env=kept, cwd=self._folder).stdout

    def start(self, *words: str) -> None:
        """Run a command, then show its exit status, and stay."""
        line = f"{shlex.join(words)}; echo status=$?; exec sleep 600"
        self.tmux("new-session", "-d", "-x", "100", "-y", "40", line)

    def until(self, text: str) -> str:
        """What is on the screen when `text` is."""
        end = time.monotonic() + 40
        screen = ""
        while time.monotonic() < end:
            screen = self.tmux("capture-pane", "-p", "-S", "-")
            if text in screen:
                return screen
            time.sleep(0.05)
        raise AssertionError(f"{text!r} was not shown in 40 s; the screen:\n{screen}")

    def type(self, *keys: str) -> None:
        """Type keys, such as `yes` and `Enter`."""
        self.tmux("send-keys", *keys)


@pytest.fixture
def terminal(folder: Path) -> Iterator[Terminal]:
    """A terminal whose current directory is the test's."""
    made = Terminal(folder)
    yield made
    made.tmux("kill-server")


def test_a_person_is_asked_and_answers(terminal: Terminal) -> None:
    """The prompt shows question and choices; an answer that doesn't fit is asked again; the right one goes on."""
    terminal.start(COMMAND, "run", graph("approval"), "--db", "runs.db", "-l", "t", "-i", '{"text": "hi"}')
    screen = terminal.until("yes|no >")
    assert "[1/1] approve:" in screen
    assert "question: Write it?" in screen
    terminal.type("perhaps", "Enter")
    terminal.until("that doesn't fit: Input should be 'yes' or 'no'")
    terminal.type("yes", "Enter")
    screen = terminal.until("status=")
    assert "completed\n" in screen
    assert "status=0" in screen
    assert "2 done: approve, write" in screen


@pytest.mark.parametrize("key", ["C-c", "C-d"])
def test_leaving_the_prompt_leaves_the_run_waiting(terminal: Terminal, key: str) -> None:
    """Ctrl-C or the end of input at the question ends with 3 and the command that resumes."""
    terminal.start(COMMAND, "run", graph("approval"), "--db", "runs.db", "-l", "t")
    terminal.until("yes|no >")
    terminal.type(key)
    screen = terminal.until("status=")
    assert "status=3" in screen
    assert "graphagent resume t" in screen


def test_progress_is_live_and_ctrl_c_cancels(terminal: Terminal) -> None:
    """What runs is drawn with its progress and redrawn in place; Ctrl-C cancels with 5; the cursor is back."""
    terminal.start(COMMAND, "run", graph("slow"), "--db", "runs.db", "-l", "t")
    screen = terminal.until("50% half way")
    assert "slow  t  step 2" in screen
    assert "1 done: read" in screen
    terminal.type("C-c")
    screen = terminal.until("status=")
    assert "status=5" in screen
    assert "cancelled\nlineage t, checkpoint t:1" in screen
    assert screen.count("slow  t  step 2") == 1
    assert terminal.tmux("display-message", "-p", "#{cursor_flag}").strip() == "1"


def test_a_nodes_own_output_stays_whole(terminal: Terminal) -> None:
    """What a node prints goes above the drawing and isn't overwritten by it."""
    terminal.start(COMMAND, "run", graph("parent"), "-a", "approve=yes")
    screen = terminal.until("status=0")
    assert "out loud" in screen
    assert "aside" in screen


def test_no_color_means_plain_lines(terminal: Terminal) -> None:
    """With NO_COLOR a terminal gets the same lines as a log file, without any escape sequence."""
    terminal.start("env", "NO_COLOR=1", COMMAND, "run", graph("plain"))
    screen = terminal.until("status=0")
    assert "s  step 1  read  started" in screen
    assert "done:" not in screen
