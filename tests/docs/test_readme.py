"""The README is true: its Python blocks run, the files it names exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_python_block_runs(number, tmp_path):
    """Every Python block of the README runs as it stands."""
    script = tmp_path / "block.py"
    script.write_text(BLOCKS[number], encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_first_block_does_what_the_text_says(tmp_path):
    """The 20-line graph stops at its question and completes after the answer."""
    script = tmp_path / "triage.py"
    script.write_text(BLOCKS[0], encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    first, second = done.stdout.splitlines()
    assert first.startswith("interrupted ['web-1 answers', 'web-1: disk 91 % full']")
    assert second.startswith("completed case-1:")


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_linked_file_exists(target):
    """Every file that the README links to exists."""
    assert (ROOT / target).exists()


def test_the_commands_of_the_readme_work(tmp_path):
    """Every `graphagent` command that the README shows runs on the run that its first block leaves behind."""
    script = tmp_path / "triage.py"
    script.write_text(BLOCKS[0], encoding="utf-8")
    subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, timeout=60, check=True)
    shell = re.search(r"```sh\n(export GRAPHAGENT_DB.*?)```", README, flags=re.DOTALL).group(1)
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["sh", "-ec", shell], cwd=tmp_path, capture_output=True, text=True, timeout=120, env={"PATH": path}
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "case-1:1" in done.stdout
    assert "flowchart TD" in done.stdout
