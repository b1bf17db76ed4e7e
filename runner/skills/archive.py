"""The files of an archive, read into memory and checked as a whole before anything is written.

Source: spec/services, 2.2; the formats are those of the ZIP application note (APPNOTE 6.3) and of POSIX pax (tar).
Everything is bounded: bytes that are unpacked, files, and how much a byte of the archive may become.
"""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from graphagent.errors import SkillRejected
from graphagent.execution import MIB
from graphagent.skills import SkillFile
from runner.skills.names import MAIN, folded, wrong_path


class ArchiveLimits(NamedTuple):
    """How large an archive may be, and what it becomes. `ratio`: bytes out of one byte in, judged from `ratio_from`
    bytes on."""

    archive_bytes: int = 64 * MIB
    file_bytes: int = 16 * MIB
    total_bytes: int = 64 * MIB
    files: int = 2000
    ratio: int = 200
    ratio_from: int = MIB


ARCHIVE_LIMITS = ArchiveLimits()


class _Member(NamedTuple):
    path: str
    data: bytes
    executable: bool
    directory: bool


def unpacked(archive: bytes, limits: ArchiveLimits = ARCHIVE_LIMITS) -> list[SkillFile]:
    """The files of a zip, a tar, a tar.gz, or of the lone text of a `SKILL.md`, sorted by path. Raises SkillRejected if
    any member is one that can't be taken: nothing of the archive is then."""
    if len(archive) > limits.archive_bytes:
        raise SkillRejected(f"the archive has {len(archive)} bytes; at most {limits.archive_bytes} are taken")
    try:
        return _checked(_members(archive, limits), limits)
    except SkillRejected:
        raise
    except Exception as error:  # the decoders raise whatever their parsing meets, struct.error and IndexError included
        raise SkillRejected(f"the archive is damaged, or of a kind that isn't known: {error!r:.200}") from error


def _members(archive: bytes, limits: ArchiveLimits) -> Iterator[_Member]:
    if archive[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _of_zip(archive, limits)
    if archive[:2] == b"\x1f\x8b":
        archive = _inflated(archive, limits)
    if archive[257:262] == b"ustar":
        return _of_tar(archive, limits)
    if b"\0" in archive or not _is_text(archive):
        raise SkillRejected(
            f"the archive is no zip, no tar and no tar.gz with a file {MAIN}, and no text of one: pack the skill's "
            "directory"
        )
    return iter([_Member(MAIN, archive, False, False)])


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _checked(members: Iterator[_Member], limits: ArchiveLimits) -> list[SkillFile]:
    """The files, of which no two are one on any file system, and none is a directory of another."""
    files: dict[str, SkillFile] = {}
    spelled: dict[str, str] = {}
    total = 0
    for number, member in enumerate(members, 1):
        path = member.path
        total += len(member.data)
        if number > limits.files:
            raise SkillRejected(f"the archive has more than {limits.files} members")
        if total > limits.total_bytes:
            raise SkillRejected(f"the archive unpacks to more than {limits.total_bytes} bytes")
        if member.directory:
            continue
        if folded(path) in files:
            raise SkillRejected(
                f"the archive has '{path}' twice, or in two spellings that some file systems take as one"
            )
        files[folded(path)] = SkillFile(path, member.data, member.executable)
    for one in files.values():
        parts = one.path.split("/")
        for depth in range(1, len(parts)):
            above = "/".join(parts[:depth])
            if folded(above) in files:
                raise SkillRejected(f"the archive has '{above}' both as a file and as a directory")
            if spelled.setdefault(folded(above), above) != above:
                raise SkillRejected(f"the archive has the directory '{above}' in two spellings")
    return sorted(files.values())


def _path(name: str, *, directory: bool) -> str:
    """A member's path. Raises SkillRejected."""
    path = name.removeprefix("./")
    if directory:
        path = path.rstrip("/")
        if path in ("", "."):
            return ""
    if why := wrong_path(path):
        raise SkillRejected(f"the archive has a member '{_shown(name)}' that can't be taken: {why}")
    return path


def _shown(name: str) -> str:
    return ascii(name[:120])[1:-1]


def _too_large(name: str, limits: ArchiveLimits) -> SkillRejected:
    return SkillRejected(f"member '{_shown(name)}' of the archive has more than {limits.file_bytes} bytes")


# -- zip -----------------------------------------------------------------------------------------


def _of_zip(archive: bytes, limits: ArchiveLimits) -> Iterator[_Member]:
    if archive.count(b"PK\x01\x02") > 4 * limits.files + 100:  # counted before anything is built of them
        raise SkillRejected(f"the archive has more than {limits.files} members")
    left = limits.total_bytes
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        for info in opened.infolist():
            if "\0" in info.orig_filename:
                raise SkillRejected(f"the archive has a member '{_shown(info.orig_filename)}' with a NUL in its name")
            directory = info.is_dir()
            path = _path(info.orig_filename, directory=directory)
            mode = info.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise SkillRejected(f"member '{_shown(path)}' of the archive is a link, or no regular file")
            if directory:
                if info.file_size:
                    raise SkillRejected(f"member '{_shown(path)}' of the archive is a directory with contents")
                yield _Member(path, b"", False, True)
                continue
            data = _read(opened, info, min(limits.file_bytes, left), limits)
            left -= len(data)
            yield _Member(path, data, bool(mode & 0o111), False)


def _read(opened: zipfile.ZipFile, info: zipfile.ZipInfo, most: int, limits: ArchiveLimits) -> bytes:
    """A member's bytes, whatever size it says it has."""
    if info.flag_bits & 0x1:
        raise SkillRejected(f"member '{_shown(info.filename)}' of the archive is encrypted")
    if info.file_size > most:
        raise _too_large(info.filename, limits)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise SkillRejected(f"member '{_shown(info.filename)}' of the archive is packed otherwise than by deflate")
    _check_ratio(info.file_size, info.compress_size, info.filename, limits)
    with opened.open(info) as member:
        data = member.read(most + 1)
    if len(data) > most:
        raise _too_large(info.filename, limits)
    _check_ratio(len(data), info.compress_size, info.filename, limits)
    return data


def _check_ratio(size: int, packed: int, name: str, limits: ArchiveLimits) -> None:
    if size > limits.ratio_from and size > limits.ratio * max(packed, 1):
        raise SkillRejected(f"'{_shown(name)}' unpacks to {limits.ratio} times its size and more")


# -- tar -----------------------------------------------------------------------------------------


def _inflated(archive: bytes, limits: ArchiveLimits) -> bytes:
    """The tar inside, within the limits: its headers may take as much again as the files."""
    most = 2 * limits.total_bytes
    found: list[bytes] = []
    size = 0
    rest = archive
    while rest[:2] == b"\x1f\x8b":
        inflater = zlib.decompressobj(wbits=31)
        data = inflater.decompress(rest, most - size + 1)
        size += len(data)
        if size > most:
            raise SkillRejected(f"the archive unpacks to more than {limits.total_bytes} bytes")
        if not inflater.eof:
            raise SkillRejected("the archive is damaged: its end is missing")
        found.append(data)
        rest = inflater.unused_data
    _check_ratio(size, len(archive), "the archive", limits)
    return b"".join(found)


def _of_tar(archive: bytes, limits: ArchiveLimits) -> Iterator[_Member]:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as opened:
        for info in opened:
            path = _path(info.name, directory=info.isdir())
            if info.isdir():
                yield _Member(path, b"", False, True)
                continue
            if not info.isreg() or info.issparse():
                raise SkillRejected(f"member '{_shown(info.name)}' of the archive is a link, or no regular file")
            if info.size > limits.file_bytes:
                raise _too_large(info.name, limits)
            member = opened.extractfile(info)
            data = b"" if member is None else member.read(limits.file_bytes + 1)
            if len(data) != info.size:
                raise SkillRejected(f"the archive is damaged: member '{_shown(info.name)}' is not all there")
            yield _Member(path, data, bool(info.mode & 0o111), False)
        rest = archive[opened.offset :]
    if len(rest) < tarfile.BLOCKSIZE or rest.strip(b"\0"):  # a header that can't be read ends the loop without a word
        raise SkillRejected("the archive is damaged: its end is missing, or something comes after it")
