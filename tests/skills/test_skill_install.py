"""Skills out of archives: what is taken is there as a whole, anything else leaves nothing, inside or outside."""

from __future__ import annotations

import gzip
import io
import os
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from skill_archives import MAIN, Member, tarred, zipped

from graphagent.errors import AlreadyExists, ServiceError, SkillRejected
from runner.skills import ArchiveLimits, SkillDirectory, install_skill
from runner.skills.archive import ARCHIVE_LIMITS, unpacked
from runner.skills.install import _install, _write

pytestmark = pytest.mark.anyio
SKILL = Member("SKILL.md", MAIN)
PACKERS = {"zip": zipped, "tar": tarred, "tar.gz": lambda members: tarred(members, packed=True)}


@pytest.fixture(params=sorted(PACKERS))
def pack(request: pytest.FixtureRequest):
    """A function that makes an archive of each kind."""
    return PACKERS[request.param]


def everything(folder: Path) -> list[str]:
    """All that is below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


async def refused(archive: bytes, folder: Path, why: str) -> None:
    """The archive is refused for that reason, and nothing of it is anywhere below the folder."""
    before = everything(folder)
    with pytest.raises(SkillRejected, match=why):
        await install_skill(archive, folder / "skills")
    assert everything(folder) == before


async def test_a_skill_is_installed(tmp_path: Path, pack) -> None:
    """At the top of an archive or in its only directory: files, programs and the name, found after a refresh."""
    run = Member("scripts/run.sh", b"#!/bin/sh\n", mode=0o4755)
    folder = tmp_path / "skills"
    skills = SkillDirectory(folder)
    assert await install_skill(pack([Member("scripts/", kind="dir"), run, SKILL]), folder) == ("made", "d")
    second = [Member("./other/SKILL.md", MAIN.replace(b"made", b"two")), Member("other/doc.md", b"doc")]
    assert (await install_skill(pack(second), folder)).name == "two"
    await skills.refresh()
    assert [one.name for one in await skills.summaries()] == ["made", "two"]
    assert [(one.path, one.executable) for one in await skills.files("made")] == [
        ("SKILL.md", False),
        ("scripts/run.sh", True),
    ]
    assert (folder / "made/scripts/run.sh").stat().st_mode & 0o7777 == 0o755
    assert [doc.text for doc in (await skills.get("two")).docs] == ["doc"]
    assert everything(folder) == [
        "made",
        "made/SKILL.md",
        "made/scripts",
        "made/scripts/run.sh",
        "two",
        "two/SKILL.md",
        "two/doc.md",
    ]


async def test_a_lone_text_is_a_skill(tmp_path: Path) -> None:
    """The text of a `SKILL.md` is an archive of one; it has to say its name."""
    path = tmp_path / "SKILL.md"
    path.write_bytes(MAIN)
    assert (await install_skill(path, tmp_path / "skills")).name == "made"
    await refused(b"no front matter", tmp_path, "says no name")


async def test_a_name_is_taken_once(tmp_path: Path) -> None:
    """A skill never replaces another one, also where only the case differs."""
    folder = tmp_path / "skills"
    await install_skill(zipped([SKILL]), folder)
    for name in (b"made", b"MADE"):
        with pytest.raises(AlreadyExists, match="is there already"):
            await install_skill(MAIN.replace(b"made", name), folder)
    assert everything(folder) == ["made", "made/SKILL.md"]


async def test_of_two_at_once_one_is_there(tmp_path: Path) -> None:
    """Several that install the same skill at once: one does, the others are told; nothing else is left."""
    taken = []
    folder = tmp_path / "skills"

    async def install(number: int) -> None:
        files = [SKILL, *(Member(f"{number}-{part}.md", b"x") for part in range(20))]
        try:
            await install_skill(zipped(files), folder)
        except AlreadyExists:
            return
        taken.append(number)

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(install, number)
    [number] = taken
    assert len(everything(folder)) == 22
    assert (folder / f"made/{number}-0.md").exists()


async def test_what_can_not_be_written_leaves_nothing(tmp_path: Path) -> None:
    """A disk that fails in the middle is an error, and what had been written is gone."""
    folder = tmp_path / "skills"
    folder.mkdir()
    files = [one._replace(data=None) if one.path == "b" else one for one in unpacked(zipped([SKILL, Member("b")]))]
    with pytest.raises(TypeError):
        _write(files, folder, "made")
    assert everything(folder) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(ServiceError, match="could not be installed"):
        await install_skill(MAIN, tmp_path / "file")


# -- what is refused -----------------------------------------------------------------------------

BAD_PATHS = {
    "../evil": "is no name",
    "a/../../evil": "is no name",
    "/abs": "absolute",
    "//host/share": "absolute",
    "C:\\x": "':'",
    "C:/x": "':'",
    "a\\..\\..\\evil": "':'",
    "a//b": "is no name",
    "a/./b": "is no name",
    "..": "is no name",
    "CON": "device",
    "sub/nul.txt": "device",
    "lpt1.md": "device",
    "com\u00b9": "device",
    "a/b. ": "ends with a blank",
    "a/trailing.": "ends with a blank",
    " lead": "begins with a blank",
    "new\nline": "control character",
    "a\u2028b": "control character",
    "x" * 250: "more than 200 bytes",
    "/".join("abcdefghijklmnopqrst"): "levels deep",
    "/".join(["y" * 190] * 3): "more than 512",
}


@pytest.mark.parametrize("path", BAD_PATHS)
async def test_c233_bad_paths_refuse_the_whole_archive(tmp_path: Path, pack, path: str) -> None:
    """A path that leads elsewhere on any system, a drive, a device, a control character: nothing is extracted."""
    await refused(pack([SKILL, Member("fine.md", b"fine"), Member(path, b"evil")]), tmp_path, BAD_PATHS[path])


async def test_case_18_a_zip_that_climbs_out(tmp_path: Path) -> None:
    """A zip with `../evil` is refused, and nothing of it is extracted."""
    await refused(zipped([SKILL, Member("../evil", b"evil")]), tmp_path, r"'\.\./evil' that can't be taken")


async def test_c233_bombs_are_refused(tmp_path: Path) -> None:
    """Ten gigabytes of zeros as a sparse tar, as a gzip, and as a zip that lies about its size; too many members."""
    zeros = b"\0" * (20 * 1024 * 1024)
    await refused(zipped([SKILL, Member("zeros", zeros)]), tmp_path, "more than 16777216 bytes")
    await refused(zipped([SKILL, Member("zeros", zeros[: 8 * 1024 * 1024])]), tmp_path, "200 times its size")
    await refused(gzip.compress(zeros * 10), tmp_path, "unpacks to more than")
    await refused(tarred([SKILL, Member("zeros", zeros)]), tmp_path, "more than 16777216 bytes")
    await refused(tarred([SKILL, Member("zeros", zeros)], packed=True), tmp_path, "200 times its size")
    lying = zipped([SKILL, Member("zeros", zeros[: 2 * 1024 * 1024])])
    real, less = (2 * 1024 * 1024).to_bytes(4, "little"), (1000).to_bytes(4, "little")
    await refused(lying.replace(real, less), tmp_path, "damaged|times its size")
    many = [SKILL, *(Member(f"{number}") for number in range(2100))]
    for packer in PACKERS.values():
        await refused(packer(many), tmp_path, "more than 2000 members")
    await refused(zipped([SKILL], zipfile.ZIP_BZIP2), tmp_path, "otherwise than by deflate")


async def test_c233_a_sparse_file_is_refused(tmp_path: Path) -> None:
    """A tar whose header declares 10 GB of holes, in the pax way that GNU tar writes, is refused unread."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as made:
        info = tarfile.TarInfo("zeros")
        sparse = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(10 * 2**30)}
        info.pax_headers = {**sparse, "GNU.sparse.name": "zeros"}
        data = b"0\n".ljust(512, b"\0")
        info.size = len(data)
        made.addfile(info, io.BytesIO(data))
    await refused(out.getvalue(), tmp_path, "no regular file|damaged")


@pytest.mark.parametrize("kind", ["link", "hard"])
@pytest.mark.parametrize("leads", ["{outside}", "../../outside", "SKILL.md"])
async def test_c234_a_link_and_a_member_behind_it(tmp_path: Path, kind: str, leads: str) -> None:
    """A link to another directory and then a member "in" it: refused for symbolic and hard links, in tar and zip, also
    where it leads to something of the archive; the other directory stays empty."""
    outside = tmp_path / "outside"
    outside.mkdir()
    members = [SKILL, Member("d", kind=kind, leads=leads.format(outside=outside)), Member("d/x", b"evil")]
    for packer in PACKERS.values() if kind == "link" else (tarred, PACKERS["tar.gz"]):
        await refused(packer(members), tmp_path, "is a link")
    assert everything(outside) == []


@pytest.mark.parametrize("kind", ["fifo", "device"])
async def test_special_files_are_refused(tmp_path: Path, pack, kind: str) -> None:
    """Pipes and devices are no files of a skill."""
    await refused(pack([SKILL, Member("special", kind=kind)]), tmp_path, "no regular file")


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([SKILL, Member("a"), Member("a")], "twice"),
        ([SKILL, Member("read.md"), Member("READ.md")], "two spellings"),
        ([SKILL, Member("caf\u00e9"), Member("cafe\u0301")], "two spellings"),
        ([SKILL, Member("a"), Member("a/b")], "both as a file and as a directory"),
        ([SKILL, Member("a/b"), Member("A/c")], "in two spellings"),
        ([Member("skill.md", MAIN)], "no SKILL.md"),
        ([Member("a/SKILL.md", MAIN), Member("b/SKILL.md", MAIN)], "pack one skill"),
        ([Member("a/b/SKILL.md", MAIN)], "pack one skill"),
        ([Member("a/SKILL.md", MAIN), Member("b.md")], "pack one skill"),
        ([Member("SKILL.md", b"---\nname: ../up\n---\n")], "is no name for a skill"),
        ([Member("SKILL.md", b"\xff\xff")], "no UTF-8"),
        ([], "no SKILL.md|with a file SKILL.md"),
    ],
)
async def test_what_is_no_skill_is_not_installed(tmp_path: Path, pack, members: list[Member], why: str) -> None:
    """Members in one place, names of skills that aren't, no or several skills: refused with the reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of zipfile, for two members with one name
        archive = pack(members)
    await refused(archive, tmp_path, why)


async def test_damaged_archives_are_refused(tmp_path: Path, pack) -> None:
    """An archive that was cut off anywhere, or isn't one, is refused; never a part of it is taken."""
    whole = pack([SKILL, Member("a.md", os.urandom(3000)), Member("b.md", b"b" * 3000)])
    tried = 0
    for end in range(1, len(whole), max(len(whole) // 60, 1)):
        if not whole[end:].strip(b"\0"):
            break  # the blocks of zeros that end a tar, and more than two are padding
        await refused(whole[:end], tmp_path, "damaged|no text of one|says no name")
        tried += 1
    assert tried > 30
    await refused(b"\x89PNG\r\n\x1a\n\xff", tmp_path, "is no zip, no tar")


# -- anything at all -----------------------------------------------------------------------------

names = st.one_of(
    st.sampled_from(["SKILL.md", "a", "a/b", "A", "d", "d/x", *BAD_PATHS, "./a", "\x00", "a\x00b", "🙂", "%2e%2e/x"]),
    st.lists(st.sampled_from(["..", ".", "", "a", "d", "C:", "~", "etc"]), min_size=1, max_size=4).map("/".join),
    st.text(max_size=12),
)
plain_files = st.lists(
    st.tuples(st.sampled_from(["a", "b.md", "c/d.md", "c/e", "f/g/h.txt"]), st.binary(max_size=50)).map(
        lambda file: Member(*file)
    ),
    max_size=4,
    unique_by=lambda member: member.name,
)
members_of_any_kind = st.lists(
    st.builds(
        Member,
        names.filter(lambda name: all(not "\ud800" <= char <= "\udfff" for char in name)),
        st.binary(max_size=50),
        st.sampled_from(["file", "file", "file", "dir", "link", "hard", "fifo", "device"]),
        st.sampled_from(["", "..", "../..", "/tmp", "a", "SKILL.md", "../outside"]),
        st.sampled_from([0o644, 0o755, 0o7777, 0]),
    ),
    max_size=5,
)
EXAMPLES = 700


@pytest.fixture(scope="module")
def watched() -> Iterator[Path]:
    """A folder with a directory for skills in it and things beside it; only what is in that directory may change."""
    with TemporaryDirectory() as made:
        (Path(made) / "outside").mkdir()
        (Path(made) / "outside/kept").write_text("kept")
        yield Path(made)


def _attempt(archive: bytes, watched: Path) -> bool:
    """Install into the watched folder, check that nothing beside the skill has changed, and clean up."""
    root = watched / "deep/skills"
    try:
        summary = _install(archive, root, ARCHIVE_LIMITS)
    except (SkillRejected, AlreadyExists):
        assert everything(watched) == ["outside", "outside/kept"]
        return False
    found = everything(root)
    assert all(path == summary.name or path.startswith(f"{summary.name}/") for path in found), found
    assert sorted(everything(watched)) == sorted(
        ["deep", "deep/skills", "outside", "outside/kept", *(f"deep/skills/{path}" for path in found)]
    )
    assert (watched / "outside/kept").read_text() == "kept"
    for path in sorted(root.rglob("*"), reverse=True):
        assert not path.is_symlink()
        path.rmdir() if path.is_dir() else path.unlink()
    root.rmdir()
    root.parent.rmdir()
    return True


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plain_files | members_of_any_kind, st.booleans(), st.sampled_from(sorted(PACKERS)), st.integers(0, 2**32))
def test_nothing_is_ever_written_outside(watched: Path, members, whole: bool, packer: str, damage: int) -> None:
    """Archives of arbitrary members, some of them damaged at one place, write into the skill's own directory or not at
    all, and raise nothing but the typed refusals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            archive = bytearray(PACKERS[packer]([*([SKILL] if whole else []), *members]))
        except (ValueError, KeyError, UnicodeError, struct.error):  # what the packer itself doesn't write
            return
    if damage % 3 == 0 and archive:
        archive[damage % len(archive)] ^= 1 + damage % 255
    event("installed" if _attempt(bytes(archive), watched) else "refused")


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=2000), st.sampled_from([b"", b"PK\x03\x04", b"\x1f\x8b\x08\x00"]))
def test_any_bytes_are_a_refusal_or_a_skill(data: bytes, start: bytes) -> None:
    """Whatever bytes come, reading them ends with files or with the typed refusal."""
    try:
        unpacked(start + data, ArchiveLimits(total_bytes=100_000))
    except SkillRejected:
        return
