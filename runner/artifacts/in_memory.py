"""Files in the memory of one process."""

from __future__ import annotations

from graphagent.ledger import SessionKey
from graphagent.services import Artifact
from runner.artifacts.names import DEFAULT_MIME_TYPE, Place, no_such_version, owners, place, shown


class InMemoryArtifacts:
    """Files that end with the process."""

    def __init__(self) -> None:
        self._files: dict[Place, list[Artifact]] = {}

    async def save(self, key: SessionKey, name: str, data: bytes, *, mime_type: str = DEFAULT_MIME_TYPE) -> int:
        """Store a new version; returns its number, counted from 0. Raises ServiceError for a name that isn't one."""
        versions = self._files.setdefault(place(key, name), [])
        versions.append(Artifact(name, bytes(data), mime_type, len(versions)))
        return len(versions) - 1

    async def load(self, key: SessionKey, name: str, version: int | None = None) -> Artifact | None:
        """A version, or the newest; None if the file isn't there. Raises NotFound for a version that isn't."""
        versions = self._files.get(place(key, name))
        if not versions:
            return None
        if version is None:
            return versions[-1]
        if not 0 <= version < len(versions):
            raise no_such_version(name, version, list(range(len(versions))))
        return versions[version]

    async def names(self, key: SessionKey) -> list[str]:
        """The files of the session and those of its user, sorted."""
        seen = owners(key)
        return sorted(shown(owner, name) for owner, name in self._files if owner in seen)

    async def versions(self, key: SessionKey, name: str) -> list[int]:
        """The versions of a file, ascending."""
        return list(range(len(self._files.get(place(key, name), ()))))

    async def delete(self, key: SessionKey, name: str) -> bool:
        """Remove all versions of a file; False if there was none."""
        return self._files.pop(place(key, name), None) is not None

    async def aclose(self) -> None:
        """Nothing to close; the files stay."""

    async def __aenter__(self) -> InMemoryArtifacts:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
