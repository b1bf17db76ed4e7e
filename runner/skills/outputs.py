"""What a command left behind: streams and files, as the model is shown them and as artifacts.

Source: spec/services, 2.7.
"""

from __future__ import annotations

import codecs
import hashlib
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from graphagent.agents.invocation import Invocation
from graphagent.errors import ServiceError
from graphagent.execution import KIB, Collected, CollectLimits, OutputFile, Ran, Workspace
from runner.skills.arguments import RunArguments
from runner.skills.command import inside

PRIMARY = 32 * KIB
AUTO = ("out/**",)
AUTO_LIMITS = CollectLimits(files=20)
EXPLICIT_LIMITS = CollectLimits()
ARTIFACTS = "temp:skill:artifacts"
"""State key under which the event of a result names the artifacts that were kept; sessions don't store it."""
_FOLDERS = ("out/", "work/", "runs/", "skills/")

Known = Mapping[str, tuple[int, bytes]]


class Kept(NamedTuple):
    """Artifacts that were saved, and warnings for those that were not."""

    files: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()


def clipped(data: bytes, most: int) -> tuple[str, bool]:
    """The beginning of a stream as text, cut between characters, and whether it was cut."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(data[:most], final=len(data) <= most), len(data) > most


def streams(ran: Ran, most: int) -> dict[str, Any]:
    """How a command ended, with warnings for what is cut."""
    told: dict[str, Any] = {}
    warnings = []
    for name, data in (("stdout", ran.stdout), ("stderr", ran.stderr)):
        told[name], cut = clipped(data, most)
        if cut or name in ran.truncated:
            warnings.append(f"{name} truncated")
    if ran.stopped and not ran.timed_out:
        warnings.append(f"the command was ended: it reached its limit of {ran.stopped}")
    more = {"exit_code": ran.exit_code, "timed_out": ran.timed_out, "duration_ms": round(ran.seconds * 1000)}
    return {**told, **more, "warnings": warnings}


def patterns_of(asked: RunArguments, cwd: str) -> tuple[list[str], list[str]]:
    """The patterns of the files that are asked for, relative to the workspace, and warnings for those that lead
    elsewhere."""
    found, warnings = [], []
    for pattern in asked.outputs.globs if asked.outputs is not None else asked.output_files:
        pattern = pattern.strip().removeprefix("./")
        path = posixpath.normpath(pattern) if pattern.startswith(_FOLDERS) else inside(pattern, cwd)
        if not pattern or path is None or path.startswith(("..", "/")):
            warnings.append(f"output {pattern[:200]!r} leads out of the workspace, and was not collected")
        else:
            found.append(path)
    return found, warnings


async def seen_before(workspace: Workspace) -> Known:
    """The files in `out` before a command runs, so that what it made can be told from what was there."""
    return {one.path: _mark(one) for one in (await workspace.collect(AUTO, AUTO_LIMITS)).files}


def without_known(collected: Collected, known: Known) -> Collected:
    """Only the files that are new, or have changed."""
    return Collected(tuple(one for one in collected.files if known.get(one.path) != _mark(one)), collected.limits_hit)


def settled_files(collected: Collected, failed: bool) -> tuple[tuple[OutputFile, ...], list[str]]:
    """The files that count, and warnings. Empty files of a command that failed don't."""
    warnings = ["not all output files were collected: there are too many, or they are too large"]
    warnings = warnings if collected.limits_hit else []
    files = collected.files
    if failed and (empty := [one.path for one in files if not one.size]):
        files = tuple(one for one in files if one.size)
        warnings.append(f"the command failed; its empty output files are left out: {', '.join(empty[:10])}")
    return files, warnings


def shown(file: OutputFile, *, inline: bool) -> dict[str, Any]:
    """A file as the model is told of it; its content only if that is text."""
    told: dict[str, Any] = {
        "name": file.path,
        "mime_type": file.mime_type,
        "size_bytes": file.size,
        "truncated": file.truncated,
        "ref": f"workspace://{file.path}",
    }
    text = _text(file) if inline else None
    return told if text is None else {**told, "content": text}


def primary(files: Sequence[OutputFile]) -> dict[str, Any] | None:
    """The first file by path that is a short text which isn't blank."""
    for one in sorted(files, key=lambda file: file.path):
        text = _text(one) if one.size <= PRIMARY else None
        if text is not None and text.strip():
            return shown(one, inline=True)
    return None


async def save(files: Sequence[OutputFile], asked: RunArguments, invocation: Invocation | None) -> Kept:
    """Keep files as artifacts of the session. Nothing is, with a warning, where there is nobody to keep them; a file
    that was collected in part isn't either."""
    why = ""
    if invocation is None:
        why = "invocation is missing from context"
    elif invocation.services.artifacts is None:
        why = "artifact service is not configured"
    elif invocation.session is None:
        why = "the run has no session"
    if why or invocation is None or invocation.session is None or invocation.services.artifacts is None:
        return Kept(warnings=(f"output files were not saved as artifacts: {why}",))
    template = "{name}" if asked.outputs is None else asked.outputs.name_template
    kept: list[dict[str, Any]] = []
    warnings: list[str] = []
    taken: set[str] = set()
    for one in files:
        name = _artifact_name(one.path, template, asked.artifact_prefix, taken)
        if one.truncated:
            warnings.append(f"'{one.path}' was not saved: it is larger than may be collected")
            continue
        try:
            version = await invocation.services.artifacts.save(
                invocation.session.key, name, one.data, mime_type=one.mime_type
            )
        except ServiceError as error:
            warnings.append(f"'{one.path}' was not saved: {error}")
            continue
        kept.append({"name": name, "version": version})
    return Kept(tuple(kept), tuple(warnings))


def announced(call_id: str, kept: Kept) -> dict[str, Any]:
    """What the event of the result says of the artifacts."""
    if not kept.files:
        return {}
    refs = [{**one, "ref": f"artifact://{one['name']}@{one['version']}"} for one in kept.files]
    return {ARTIFACTS: {"tool_call_id": call_id, "artifacts": refs}}


def _artifact_name(path: str, template: str, prefix: str, taken: set[str]) -> str:
    """A plain name, since artifacts have no directories; of two files never the same one."""
    plain = path.removeprefix("out/").replace("/", "_")
    name, number = prefix + template.replace("{name}", plain), 2
    while name in taken:
        name, number = f"{prefix}{number}_{template.replace('{name}', plain)}", number + 1
    taken.add(name)
    return name


def _text(file: OutputFile) -> str | None:
    """The content of a text; None for anything else."""
    kind = file.mime_type.partition(";")[0]
    known = kind.startswith("text/") or kind.endswith(("json", "xml", "yaml", "javascript", "x-sh", "csv"))
    if not known and kind not in ("", "application/octet-stream"):
        return None
    if b"\0" in file.data:
        return None
    try:
        decoder = codecs.getincrementaldecoder("utf-8")()
        return decoder.decode(file.data, final=not file.truncated)
    except UnicodeDecodeError:
        return None


def _mark(file: OutputFile) -> tuple[int, bytes]:
    return file.size, hashlib.sha256(file.data).digest()
