"""Files of workspaces: whole or not at all, and never outside."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphagent.errors import PathEscape, UsageError
from graphagent.execution import CollectLimits, Program
from runner.execution.files import WorkspaceFiles
from runner.execution.globs import matcher

ESCAPES = ["../../etc/x", "/etc/x", "work/../../x", "C:\\x", "work\\..\\x", "a\0b", "..", "C:/x"]


@pytest.fixture
def files(tmp_path: Path) -> WorkspaceFiles:
    """The files of a new workspace."""
    made = WorkspaceFiles(tmp_path / "room")
    made.make()
    return made


@pytest.mark.parametrize("path", ESCAPES)
def test_case_34_a_path_that_escapes(files: WorkspaceFiles, tmp_path: Path, path: str) -> None:
    """It is refused for writing, reading, removing and collecting, and nothing is written."""
    for attempt in (
        lambda: files.put(path, b"x", False),
        lambda: files.read(path, 10),
        lambda: files.remove(path),
        lambda: files.collect([path]),
    ):
        with pytest.raises(PathEscape, match="escapes workspace"):
            attempt()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["room"]


@pytest.mark.anyio
async def test_case_35_links_that_leave_are_not_collected(executor: Any, tmp_path: Path) -> None:
    """A glob through a link, of a file or of a directory, takes nothing out that is outside; what stays inside counts
    once."""
    (tmp_path / "secret").write_text("secret")
    room = await executor.open("links")
    text = f"echo own > out/a; ln -s {tmp_path}/secret out/s; ln -s {tmp_path} out/d; ln -s a out/b; ln -s /proc out/p"
    await room.run(Program(("bash", "-c", f"{text}; mkfifo out/pipe; ln -s ../work out/w; echo w > work/w")))
    found = await room.collect(["out/**", "work/*"])
    assert [one.path for one in found.files] == ["out/a", "work/w"]
    with pytest.raises(PathEscape):
        await room.read("out/s")
    with pytest.raises(PathEscape):
        await room.put("out/d/new", b"x")
    assert not (tmp_path / "new").exists()
    assert await room.read("out/pipe") is None


def test_case_36_more_files_than_are_taken(files: WorkspaceFiles) -> None:
    """Of 101 files 100 are taken and the limit is told; so are bytes of one file and of all."""
    for n in range(101):
        files.put(f"out/{n:03}", b"1234", False)
    found = files.collect(["out/**"])
    assert (len(found.files), found.limits_hit) == (100, True)
    found = files.collect(["out/00?"], CollectLimits(100, 3, 7))
    assert [(one.data, one.size, one.truncated) for one in found.files] == [
        (b"123", 4, True),
        (b"123", 4, True),
        (b"1", 4, True),
    ]
    assert found.limits_hit
    assert not files.collect(["out/00*"]).limits_hit


def test_a_file_is_whole_or_not_there(files: WorkspaceFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails leaves the old file, and nothing beside it."""
    files.put("work/deep/a.txt", b"old", False)
    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "no space")))
        with pytest.raises(OSError, match="no space"):
            files.put("work/deep/a.txt", b"new", False)
    assert sorted(one.name for one in (files.root / "work/deep").iterdir()) == ["a.txt"]
    found = files.read("work/deep/a.txt", 100)
    assert found is not None
    assert (found.data, found.mime_type, found.path) == (b"old", "text/plain", "work/deep/a.txt")
    files.put("work/run.sh", b"#!", True)
    assert (files.root / "work/run.sh").stat().st_mode & 0o777 == 0o700


def test_what_stands_in_the_way(files: WorkspaceFiles) -> None:
    """A directory where a file is to be, a file where a directory is to be, and the workspace itself, are misuse."""
    files.put("work/file", b"", False)
    for path in ("work", "work/file/below", "", "."):
        with pytest.raises(UsageError):
            files.put(path, b"", False)
    assert files.remove("work/file")
    assert not files.remove("work/file")
    assert files.remove("work")
    with pytest.raises(UsageError):
        files.remove(".")


@pytest.mark.parametrize(
    ("glob", "fits", "not_"),
    [
        ("out/**", ["out/a", "out/a/b"], ["out", "work/out/a"]),
        ("**/*.txt", ["a.txt", "out/x/a.txt"], ["a.txtx", "out/a"]),
        ("out/*", ["out/a"], ["out/a/b"]),
        ("$OUTPUT_DIR/a?c", ["out/abc"], ["out/a/c", "abc"]),
        ("${WORK_DIR}/[!a]*", ["work/b"], ["work/a"]),
        ("work/[", ["work/["], ["work/x"]),
    ],
)
def test_what_a_glob_means(glob: str, fits: list[str], not_: list[str]) -> None:
    """`**` for any depth, `*` and `?` within a name, variables at the beginning."""
    found = matcher([glob])
    assert all(found.fullmatch(path) for path in fits)
    assert not any(found.fullmatch(path) for path in not_)


@pytest.fixture(scope="module")
def watched() -> Iterator[Path]:
    """A directory with a workspace in it, and a file beside that."""
    with TemporaryDirectory() as made:
        (Path(made) / "kept").write_text("kept")
        WorkspaceFiles(Path(made) / "room").make()
        os.symlink("/", Path(made) / "room/work/root")
        os.symlink("..", Path(made) / "room/work/up")
        os.symlink("../..", Path(made) / "room/work/above")
        yield Path(made)


names = st.sampled_from(["work", "root", "up", "above", "..", ".", "", "kept", "room", "a", "b", "/", "tmp", "\0", "é"])


@settings(max_examples=400, deadline=None)
@given(path=st.lists(names, max_size=6).map("/".join) | st.text(max_size=20), data=st.binary(max_size=5))
def test_no_path_leads_outside(watched: Path, path: str, data: bytes) -> None:
    """Arbitrary paths, also through links that leave: written is below the workspace or nothing, and what is outside
    is neither read nor removed."""
    files = WorkspaceFiles(watched / "room")
    before = {one.name for one in Path("/tmp").iterdir()} if path.count("tmp") else set()
    try:
        files.put(path, data, False)
        wrote = True
    except (PathEscape, UsageError, UnicodeEncodeError):
        wrote = False
    except OSError as error:
        if error.errno not in (errno.ENAMETOOLONG, errno.ELOOP):
            raise
        wrote = False
    assert sorted(one.name for one in watched.iterdir()) == ["kept", "room"]
    assert (watched / "kept").read_text() == "kept"
    assert not before or not ({"a", "b", "kept"} & ({one.name for one in Path("/tmp").iterdir()} - before))
    if wrote:
        found = files.read(path, 100)
        assert found is not None
        assert found.data == data
        assert files.remove(path)
