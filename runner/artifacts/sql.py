"""Files in a SQLite or PostgreSQL database."""

from __future__ import annotations

from dataclasses import replace

from graphagent.errors import ServiceError
from graphagent.ledger import SessionKey
from graphagent.services import Artifact
from runner.artifacts.names import DEFAULT_MIME_TYPE, Owner, no_such_version, owners, place, shown
from runner.names import check_name
from runner.sql.database import DatabaseOptions, OnDatabase, database_for

_FILE = "app = ? AND user_id = ? AND session = ? AND name = ?"
_SAVE = (
    "INSERT INTO ga_artifacts (app, user_id, session, name, version, mime_type, data) "
    "SELECT CAST(? AS text), CAST(? AS text), CAST(? AS text), CAST(? AS text), "
    f"(SELECT COALESCE(MAX(version) + 1, 0) FROM ga_artifacts WHERE {_FILE}), CAST(? AS text), ? "
    "ON CONFLICT (app, user_id, session, name, version) DO NOTHING RETURNING version"
)
_NEWEST = f"SELECT data, mime_type, version FROM ga_artifacts WHERE {_FILE} ORDER BY version DESC LIMIT 1"
_ONE = f"SELECT data, mime_type, version FROM ga_artifacts WHERE {_FILE} AND version = ?"
_VERSIONS = f"SELECT version FROM ga_artifacts WHERE {_FILE} ORDER BY version"
_NAMES = (
    "SELECT DISTINCT session, name FROM ga_artifacts WHERE app = ? AND user_id = ? AND (session = '' OR session = ?)"
)
_DELETE = f"DELETE FROM ga_artifacts WHERE {_FILE} RETURNING 1"
_ATTEMPTS = 100


class SqlArtifacts(OnDatabase):
    """Files that outlive the process. `url`: as for `SqlSessions`. The service opens itself on first use.

    A file and version is unique: of two writers at the same moment each gets a number of its own.
    """

    def __init__(self, url: str, *, options: DatabaseOptions | None = None) -> None:
        self.url = url
        super().__init__(database_for(url, replace(options or DatabaseOptions(), in_thread=True)))

    async def save(self, key: SessionKey, name: str, data: bytes, *, mime_type: str = DEFAULT_MIME_TYPE) -> int:
        """Store a new version; returns its number, counted from 0. Raises ServiceError for a name that isn't one."""
        owner, bare = place(key, name)
        check_name("MIME type", mime_type)
        file = (*owner, bare)
        for _ in range(_ATTEMPTS):
            found = await self._database.run(_SAVE, (*file, *file, mime_type, bytes(data)))
            if found:
                return int(found[0][0])  # else another writer took that number
        raise ServiceError(f"file '{name}' got no version in {_ATTEMPTS} attempts: others are writing it all the time")

    async def load(self, key: SessionKey, name: str, version: int | None = None) -> Artifact | None:
        """A version, or the newest; None if the file isn't there. Raises NotFound for a version that isn't."""
        owner, bare = place(key, name)
        if version is None:
            found = await self._database.run(_NEWEST, (*owner, bare))
        else:
            found = await self._database.run(_ONE, (*owner, bare, version))
        if found:
            data, mime_type, number = found[0]
            return Artifact(name, bytes(data), mime_type, number)
        known = await self.versions(key, name)
        if version is None or not known:
            return None
        raise no_such_version(name, version, known)

    async def names(self, key: SessionKey) -> list[str]:
        """The files of the session and those of its user, sorted."""
        own, _ = owners(key)
        found = await self._database.run(_NAMES, own)
        return sorted(shown(Owner(key.app, key.user, session), name) for session, name in found)

    async def versions(self, key: SessionKey, name: str) -> list[int]:
        """The versions of a file, ascending."""
        owner, bare = place(key, name)
        return [row[0] for row in await self._database.run(_VERSIONS, (*owner, bare))]

    async def delete(self, key: SessionKey, name: str) -> bool:
        """Remove all versions of a file; False if there was none."""
        owner, bare = place(key, name)
        return bool(await self._database.run(_DELETE, (*owner, bare)))
