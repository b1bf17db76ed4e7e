"""A skill's files in a workspace, where its commands run. Source: spec/services, 2.9."""

from __future__ import annotations

import posixpath
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

import anyio

from graphagent.errors import NotFound, ServiceError, ToolError
from graphagent.execution import COLLECT_LIMITS, Program, Workspace
from graphagent.ledger import SessionKey
from graphagent.services import ArtifactService
from graphagent.skills import SkillFile
from runner.skills.arguments import RunInput
from runner.skills.command import inside
from runner.skills.reading import digest_of

MARKS = "skills/.staged"
"""Where it is written which state of each skill is staged: a skill's own name can't begin with a dot."""
_LINKS = {name: f"../../{path}" for name, path in (("out", "out"), ("work", "work"), ("inputs", "work/inputs"))}


class Staging:
    """Puts skills into workspaces, one at a time in each."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def _alone(self, key: str) -> AsyncGenerator[None]:
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = anyio.Lock()
        async with lock:
            yield

    async def put(self, workspace: Workspace, name: str, files: Sequence[SkillFile]) -> None:
        """Have the skill's files in `skills/<name>`, with links to `out`, `work` and `work/inputs` where it has nothing
        of that name. What is there already in this state stays, with whatever its commands left beside it. The mark is
        written last: what was cut off is done again."""
        digest = digest_of(files).encode()
        mark, root = f"{MARKS}/{name}", f"skills/{name}"
        async with self._alone(workspace.key):
            known = await workspace.read(mark, most=len(digest) + 1)
            if known is not None and known.data == digest:
                return
            await workspace.remove(mark)
            await workspace.remove(root)
            for one in files:
                await workspace.put(f"{root}/{one.path}", one.data, executable=one.executable)
            own = {one.path.partition("/")[0] for one in files}
            links = [f"ln -s {leads} {link}" for link, leads in _LINKS.items() if link not in own]
            await workspace.run(Program(("sh", "-c", "; ".join(["mkdir -p .venv", *links])), cwd=root))
            await workspace.put(mark, digest)


async def put_inputs(
    workspace: Workspace, inputs: Sequence[RunInput], artifacts: ArtifactService | None, key: SessionKey | None
) -> list[dict[str, str]]:
    """Copy files to where a command wants them; what was copied, and to where. Raises ToolError for a source that isn't
    there, or isn't of a known kind, and for a place outside of the workspace's `work` and `out`."""
    done = []
    for one in inputs:
        name, data = await _source(workspace, one.source, artifacts, key)
        to = await _put(workspace, one.to or f"inputs/{name}", data)
        done.append({"from": one.source, "to": to})
    return done


async def _put(workspace: Workspace, to: str, data: bytes) -> str:
    path = f"work/{to}" if to.startswith("inputs/") else to
    found = inside(path, "work") if not path.startswith("out/") else inside(path[4:], "out")
    if found is None or found.partition("/")[0] not in ("work", "out") or found in ("work", "out"):
        raise ToolError(f"an input can't be put to '{to[:200]}'; put it below inputs/, $WORK_DIR or $OUTPUT_DIR")
    try:
        await workspace.put(found, data)
    except ServiceError as error:
        raise ToolError(f"an input could not be put to '{to[:200]}': {error}") from error
    return found


async def _source(
    workspace: Workspace, source: str, artifacts: ArtifactService | None, key: SessionKey | None
) -> tuple[str, bytes]:
    kind, _, rest = source.partition("://")
    if kind == "workspace" and rest:
        found = await workspace.read(rest, most=COLLECT_LIMITS.total_bytes)
        if found is None or found.truncated:
            raise ToolError(f"input '{source[:200]}' isn't there, or is larger than {COLLECT_LIMITS.total_bytes} bytes")
        return posixpath.basename(rest), found.data
    if kind != "artifact" or not rest:
        raise ToolError(f"input '{source[:200]}' is of no known kind: artifact://name, or workspace://path")
    if artifacts is None or key is None:
        raise ToolError(f"input '{source[:200]}' can't be read: the run has no artifacts")
    name, _, version = rest.rpartition("@")
    if not name or not version.isdecimal():
        name, version = rest, ""
    try:
        artifact = await artifacts.load(key, name, int(version) if version else None)
    except NotFound as error:
        raise ToolError(str(error)) from error
    if artifact is None:
        raise ToolError(f"there is no artifact '{name}'")
    return name.removeprefix("user:"), artifact.data
