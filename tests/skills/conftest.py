"""Directories of skills, written as a test needs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

WriteSkill = Callable[..., Path]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty directory for skills."""
    made = tmp_path / "skills"
    made.mkdir()
    return made


@pytest.fixture
def write_skill(root: Path) -> WriteSkill:
    """A function that writes a skill: its name, description and body, and other files by path."""

    def write(name: str, description: str = "", body: str = "", *, under: Path | None = None, **files: str) -> Path:
        directory = (under or root) / name
        directory.mkdir(parents=True, exist_ok=True)
        text = f"---\nname: {name}\ndescription: {description}\n---\n{body or f'How to {name}.'}\n"
        (directory / "SKILL.md").write_text(text)
        for path, content in files.items():
            target = directory / path.replace("__", "/").replace("_DOT_", ".")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
        return directory

    return write
