"""The artifacts of a thread: which there are, what a run has added, and handing one out."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from graphagent.errors import NotFound, ServiceError
from graphagent.ledger import SessionKey
from graphagent.services import ArtifactService
from runner.servers.agui.errors import Refused, nothing_there

_log = logging.getLogger(__name__)

ARTIFACTS = "artifacts"
"""The name of the CUSTOM event with the artifacts that a run has added: `artifacts`, each `name` and `version`."""


async def newest(files: ArtifactService | None, key: SessionKey) -> dict[str, int]:
    """The artifacts of a session and of its user, with their newest versions. A service that doesn't answer has
    none: runs don't wait for it."""
    if files is None:
        return {}
    try:
        return {name: max(await files.versions(key, name), default=-1) for name in await files.names(key)}
    except ServiceError:
        _log.warning("the artifacts of session '%s' can't be listed", key.session, exc_info=True)
        return {}


def added(before: Mapping[str, int], now: Mapping[str, int]) -> list[dict[str, Any]]:
    """What is new, as a client is told it."""
    return [
        {"name": name, "version": version}
        for name, last in now.items()
        for version in range(before.get(name, -1) + 1, last + 1)
    ]


async def handed_out(files: ArtifactService | None, key: SessionKey, name: str, version: str | None) -> Response:
    """An artifact, to be kept and never to be run by a browser. Raises Refused for one that isn't there."""
    if version is not None and not (version.isascii() and version.isdigit() and len(version) < 10):
        raise Refused(f"version {version[:40]!r} is no number from 0 on", param="version")
    try:
        found = None if files is None else await files.load(key, name, None if version is None else int(version))
    except (NotFound, ServiceError):
        found = None
    if found is None:
        raise nothing_there("artifact")
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(name.removeprefix('user:'), safe='')}",
        "x-content-type-options": "nosniff",
        "content-security-policy": "sandbox",
        "x-artifact-version": str(found.version),
    }
    return Response(found.data, media_type=found.mime_type, headers=headers)
