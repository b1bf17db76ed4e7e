"""Artifacts: edge cases 40 to 42 of spec/services by number, and what lies on the disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from graphagent.errors import NotFound, ServiceError, UsageError
from graphagent.ledger import SessionKey
from runner.artifacts import FileArtifacts, FsspecArtifacts, InMemoryArtifacts, SqlArtifacts

pytestmark = pytest.mark.anyio

KINDS = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres), "files", "fsspec"]


@pytest.fixture(params=KINDS)
def artifacts(request: pytest.FixtureRequest, tmp_path: Path, app: str) -> Any:
    """An artifact service of each kind."""
    made: dict[str, Callable[[], Any]] = {
        "memory": InMemoryArtifacts,
        "sqlite": lambda: SqlArtifacts(f"{tmp_path}/a.db"),
        "postgres": lambda: SqlArtifacts(request.getfixturevalue("shared_postgres_url")),
        "files": lambda: FileArtifacts(tmp_path / "files"),
        "fsspec": lambda: FsspecArtifacts(f"memory://{app}"),
    }
    return made[request.param]()


async def test_s040_saves_count_from_zero(artifacts: Any, app: str) -> None:
    """Two saves are versions 0 and 1; the newest is loaded; version 7 is an error; an unknown file is None."""
    key = SessionKey(app, "u", "s")
    async with artifacts:
        assert [await artifacts.save(key, "a.txt", data) for data in (b"0", b"1")] == [0, 1]
        newest = await artifacts.load(key, "a.txt")
        assert (newest.data, newest.version) == (b"1", 1)
        with pytest.raises(NotFound, match="no version 7; known: 0, 1"):
            await artifacts.load(key, "a.txt", 7)
        assert await artifacts.load(key, "other.txt") is None


async def test_s041_a_file_of_the_user_is_seen_in_all_sessions(artifacts: Any, app: str) -> None:
    """Saved in session A it is loaded and listed in B of the same user, not in a session of another."""
    async with artifacts:
        await artifacts.save(SessionKey(app, "u", "A"), "user:profile.txt", b"me")
        b, other = SessionKey(app, "u", "B"), SessionKey(app, "other", "B")
        assert (await artifacts.load(b, "user:profile.txt")).data == b"me"
        assert await artifacts.names(b) == ["user:profile.txt"]
        assert (await artifacts.load(other, "user:profile.txt"), await artifacts.names(other)) == (None, [])


async def test_s042_deleting_what_is_not_there_is_no_error(artifacts: Any, app: str) -> None:
    """It is False; after a delete the next save is version 0."""
    key = SessionKey(app, "u", "s")
    async with artifacts:
        assert await artifacts.delete(key, "a") is False
        for _ in range(2):
            await artifacts.save(key, "a", b"x")
        assert await artifacts.delete(key, "a") is True
        assert await artifacts.save(key, "a", b"y") == 0


def files_below(folder: Path) -> list[str]:
    """All files below a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


async def test_a_person_finds_the_file_on_the_disk(tmp_path: Path) -> None:
    """The bytes lie in a file of their own name, below app, user, session; a delete leaves nothing, no folder too."""
    artifacts = FileArtifacts(tmp_path)
    key = SessionKey("triage", "ann", "s1")
    await artifacts.save(key, "report.md", b"# all is well")
    (data, card) = sorted(files_below(tmp_path), key=len, reverse=True)
    assert data.startswith("triage/ann/sessions/s1/report.md/")
    assert (tmp_path / data).name == "report.md"
    assert (tmp_path / data).read_bytes() == b"# all is well"
    assert card == "triage/ann/sessions/s1/report.md/0.json"
    await artifacts.delete(key, "report.md")
    assert os.listdir(tmp_path) == []


async def test_a_save_that_failed_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk is full when the card is written the version isn't there, and its bytes are gone too."""
    artifacts = FileArtifacts(tmp_path)
    key = SessionKey("app", "u", "s")
    await artifacts.save(key, "a", b"0")
    before = files_below(tmp_path)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.link", full)
        with pytest.raises(ServiceError, match="No space left"):
            await artifacts.save(key, "a", b"1")
    assert files_below(tmp_path) == before
    assert await artifacts.versions(key, "a") == [0]


@pytest.mark.parametrize("kind", ["files", "fsspec"])
async def test_saves_and_deletes_side_by_side(tmp_path: Path, app: str, kind: str) -> None:
    """A file that others delete all the time is saved, listed and loaded without an error, and never half."""
    artifacts = FileArtifacts(tmp_path) if kind == "files" else FsspecArtifacts(f"memory://{app}")
    key = SessionKey(app, "u", "s")

    async def save() -> None:
        for number in range(20):
            await artifacts.save(key, "a", str(number).encode() * 100)

    async def delete() -> None:
        for _ in range(20):
            await artifacts.delete(key, "a")

    async def look() -> None:
        for _ in range(20):
            found = await artifacts.load(key, "a")
            assert found is None or len(set(found.data.decode()[: len(found.data)])) <= 2
            assert await artifacts.names(key) in ([], ["a"])

    async with anyio.create_task_group() as tasks:
        for work in (save, save, delete, look):
            tasks.start_soon(work)
    await artifacts.delete(key, "a")
    assert await artifacts.names(key) == []


@pytest.mark.parametrize(
    ("url", "text"), [("nonsense://x", "nonsense"), ("s3://bucket/x", "s3")], ids=["unknown", "not installed"]
)
def test_a_url_that_fsspec_can_not_open_is_named(url: str, text: str) -> None:
    """An unknown scheme, or one whose package is missing, is a UsageError with the reason."""
    with pytest.raises(UsageError, match=text):
        FsspecArtifacts(url)
