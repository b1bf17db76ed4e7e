"""Archives of skills, put together member by member, also such as no tool would write."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Iterable
from typing import NamedTuple

MAIN = b"---\nname: made\ndescription: d\n---\nbody\n"


class Member(NamedTuple):
    """A member. `kind`: `file`, `dir`, `link`, `hard`, `fifo`, `device`; `leads`: where a link leads."""

    name: str
    data: bytes = b""
    kind: str = "file"
    leads: str = ""
    mode: int = 0o644


def zipped(members: Iterable[Member], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip; links are what Info-ZIP makes of them."""
    kinds = {"file": stat.S_IFREG, "dir": stat.S_IFDIR, "link": stat.S_IFLNK, "fifo": stat.S_IFIFO}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for one in members:
            info = zipfile.ZipInfo("x")
            info.filename = one.name  # as it stands, without the changes that ZipInfo makes
            info.compress_type = method
            info.external_attr = (kinds.get(one.kind, stat.S_IFCHR) | one.mode) << 16
            made.writestr(info, one.leads.encode() if one.kind == "link" else one.data)
    return out.getvalue()


def tarred(members: Iterable[Member], *, packed: bool = False) -> bytes:
    """A tar, or a tar.gz."""
    kinds = {
        "file": tarfile.REGTYPE,
        "dir": tarfile.DIRTYPE,
        "link": tarfile.SYMTYPE,
        "hard": tarfile.LNKTYPE,
        "fifo": tarfile.FIFOTYPE,
        "device": tarfile.CHRTYPE,
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as made:
        for one in members:
            info = tarfile.TarInfo(one.name)
            info.type, info.linkname, info.mode = kinds[one.kind], one.leads, one.mode
            info.size = len(one.data) if one.kind == "file" else 0
            made.addfile(info, io.BytesIO(one.data))
    return gzip.compress(out.getvalue(), 6) if packed else out.getvalue()
