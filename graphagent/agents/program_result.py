"""What a node that runs a program hands on."""

from __future__ import annotations

import hashlib

from pydantic import BaseModel, ConfigDict

from graphagent.execution import KIB, Collected, OutputFile, Ran

INLINE = 64 * KIB
"""Bytes of a file up to which its text stands in the result."""


class ProducedFile(BaseModel):
    """A file that a program left. `text`: what is in it, None if it is no UTF-8 text, or too long to be carried about;
    `sha256`: of its bytes, hexadecimal; `version`: under which it is an artifact, None if it isn't one."""

    model_config = ConfigDict(frozen=True)

    path: str
    mime_type: str
    size: int
    sha256: str
    text: str | None = None
    version: int | None = None


class ProgramResult(BaseModel):
    """How a program ended, and what it left. `stopped`: the limit that ended it, empty if it ended by itself; `cut`:
    the streams of which only the beginning is here; `more_files`: not all files were taken out; `digest`: of the skill
    that ran. Times are not in it: the state of two runs is the same."""

    model_config = ConfigDict(frozen=True)

    exit_code: int
    stdout: str = ""
    stderr: str = ""
    stopped: str = ""
    cut: tuple[str, ...] = ()
    files: tuple[ProducedFile, ...] = ()
    more_files: bool = False
    digest: str = ""

    @property
    def ok(self) -> bool:
        """True if it ended by itself, with 0."""
        return self.exit_code == 0 and not self.stopped

    def file(self, path: str) -> ProducedFile | None:
        """A file by its path in the workspace."""
        return next((one for one in self.files if one.path == path), None)


def result_of(ran: Ran, found: Collected, versions: dict[str, int], digest: str) -> ProgramResult:
    """The result of a run, of which some files have been saved as artifacts."""
    return ProgramResult(
        exit_code=ran.exit_code,
        stdout=ran.stdout.decode("utf-8", "replace"),
        stderr=ran.stderr.decode("utf-8", "replace"),
        stopped=ran.stopped,
        cut=ran.truncated,
        files=tuple(_produced(one, versions.get(one.path)) for one in found.files),
        more_files=found.limits_hit,
        digest=digest,
    )


def _produced(file: OutputFile, version: int | None) -> ProducedFile:
    text = None
    if not file.truncated and file.size <= INLINE and b"\0" not in file.data:
        try:
            text = file.data.decode("utf-8")
        except UnicodeDecodeError:
            text = None
    digest = hashlib.sha256(file.data).hexdigest()
    return ProducedFile(
        path=file.path, mime_type=file.mime_type, size=file.size, sha256=digest, text=text, version=version
    )
