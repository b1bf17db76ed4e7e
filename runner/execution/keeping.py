"""Keeping a file of a workspace as an artifact of its session. Source: spec/services, 3.13."""

from __future__ import annotations

from graphagent.agents.tool import ToolContext, ToolResult
from graphagent.errors import ServiceError, ToolError
from graphagent.execution import MIB, Workspace
from runner.execution.beneath import parts_of

MOST = 64 * MIB
KEPT_FROM = ("work", "out", "runs")
ARTIFACTS = "temp:skill:artifacts"
"""State key under which the event of a result names the artifacts that were kept; sessions don't store it."""


async def keep_file(workspace: Workspace, path: str, context: ToolContext) -> ToolResult:
    """Save one file under its path below `out`, with `_` for `/`. Raises ToolError if it isn't there, is too large, or
    can't be kept; nothing is saved then."""
    invocation = context.invocation
    if invocation is None or invocation.session is None or invocation.services.artifacts is None:
        raise ToolError("the file was not saved: the run has no session, or no artifact service")
    place = _place(path)
    try:
        found = await workspace.read(place, most=MOST)
    except ServiceError as error:
        raise ToolError(str(error)) from error
    if found is None:
        raise ToolError(f"there is no file '{place}' in the workspace")
    if found.truncated:
        raise ToolError(f"file '{place}' has {found.size} bytes, and at most {MOST} can be kept; it was not saved")
    name = place.removeprefix("out/").replace("/", "_")
    try:
        version = await invocation.services.artifacts.save(
            invocation.session.key, name, found.data, mime_type=found.mime_type
        )
    except ServiceError as error:
        raise ToolError(f"file '{place}' was not saved: {error}") from error
    ref = f"artifact://{name}@{version}"
    told = {"path": place, "saved_as": name, "version": version, "ref": ref}
    kept = {"tool_call_id": context.call_id, "artifacts": [{"name": name, "version": version, "ref": ref}]}
    return ToolResult({**told, "mime_type": found.mime_type, "size_bytes": found.size}, state_delta={ARTIFACTS: kept})


def _place(path: str) -> str:
    """A file's path in the workspace; one with a leading slash is meant from there too. Raises ToolError."""
    if set("*?[]") & set(path):
        raise ToolError(f"path {path[:200]!r} has a glob in it; name one file")
    try:
        parts = parts_of(path.strip().lstrip("/"))
    except ServiceError as error:
        raise ToolError(str(error)) from error
    if len(parts) < 2 or parts[0] not in KEPT_FROM:
        raise ToolError(f"path {path[:200]!r} is no file below {', '.join(KEPT_FROM)}")
    return "/".join(parts)
