"""Files with versions in a folder: on a disk, or in an object store.

A version is a card `<version>.json`, which names the file with the bytes; that is written first. So a version is there
as a whole or not at all, and of two writers at the same moment only one makes the card; the other takes the next
number. A writer that is killed in between leaves bytes that no card names.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import anyio.to_thread

from graphagent.errors import ServiceError
from graphagent.ids import fresh_id
from graphagent.ledger import SessionKey
from graphagent.services import Artifact
from runner.artifacts.folder import Folder, LocalFolder
from runner.artifacts.names import DEFAULT_MIME_TYPE, Owner, Place, no_such_version, owners, place, shown
from runner.artifacts.objects import folder_for
from runner.names import check_name

T = TypeVar("T")
_ATTEMPTS = 100


class _Artifacts:
    """Both services; calls go to a thread, since they wait for a disk or a network."""

    def __init__(self, folder: Folder, where: str) -> None:
        self._folder = folder
        self._where = where

    async def save(self, key: SessionKey, name: str, data: bytes, *, mime_type: str = DEFAULT_MIME_TYPE) -> int:
        """Store a new version; returns its number, counted from 0. Raises ServiceError for a name that isn't one."""
        check_name("MIME type", mime_type)
        return await self._call(partial(_save, self._folder, place(key, name), bytes(data), mime_type))

    async def load(self, key: SessionKey, name: str, version: int | None = None) -> Artifact | None:
        """A version, or the newest; None if the file isn't there. Raises NotFound for a version that isn't."""
        return await self._call(partial(_load, self._folder, place(key, name), name, version))

    async def names(self, key: SessionKey) -> list[str]:
        """The files of the session and those of its user, sorted."""
        return await self._call(partial(_names, self._folder, owners(key)))

    async def versions(self, key: SessionKey, name: str) -> list[int]:
        """The versions of a file, ascending."""
        found = await self._call(partial(_cards, self._folder, place(key, name)))
        return sorted(found)

    async def delete(self, key: SessionKey, name: str) -> bool:
        """Remove all versions of a file; False if there was none."""
        return await self._call(partial(_delete, self._folder, place(key, name)))

    async def _call(self, work: Callable[[], T]) -> T:
        try:
            return await anyio.to_thread.run_sync(work)
        except OSError as error:
            raise ServiceError(f"files in '{self._where}' could not be read or written: {error}") from error

    async def aclose(self) -> None:
        """Nothing is held open; harmless twice."""


class FileArtifacts(_Artifacts):
    """Files in a folder on a disk, which is made if need be."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(LocalFolder(path), str(path))

    async def __aenter__(self) -> FileArtifacts:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


class FsspecArtifacts(_Artifacts):
    """Files in whatever fsspec knows, such as `s3://bucket/path`; `options` go to the file system.

    Needs the extra `artifacts`. Raises UsageError for a url that fsspec can't open.
    """

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(folder_for(url, options), url)

    async def __aenter__(self) -> FsspecArtifacts:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


def _segment(name: str) -> str:
    """A name as a segment of a path, also where one must not begin or end with a dot."""
    text = quote(name, safe="")
    return text.replace(".", "%2E") if text.strip(".") != text else text


def _owner_path(owner: Owner) -> str:
    scope = f"sessions/{_segment(owner.session)}" if owner.session else "user"
    return f"{_segment(owner.app)}/{_segment(owner.user)}/{scope}"


def _path(file: Place) -> str:
    return f"{_owner_path(file.owner)}/{_segment(file.name)}"


def _cards(folder: Folder, file: Place) -> dict[int, str]:
    """The paths of a file's cards by version."""
    found = {}
    for path in folder.find(_path(file)):
        parent, _, name = path.rpartition("/")
        if parent == _path(file):
            found[int(name.removesuffix(".json"))] = path
    return found


def _save(folder: Folder, file: Place, data: bytes, mime_type: str) -> int:
    body = f"{_path(file)}/{fresh_id()}/{_segment(file.name)}"
    folder.write(body, data)
    card = json.dumps({"mime_type": mime_type, "data": body}).encode()
    try:
        for _ in range(_ATTEMPTS):
            version = max(_cards(folder, file), default=-1) + 1
            try:
                folder.create(f"{_path(file)}/{version}.json", card)
            except FileExistsError:  # another writer took that number
                continue
            return version
    except BaseException:
        folder.remove(body)
        raise
    folder.remove(body)
    raise ServiceError(f"file '{file.name}' got no version in {_ATTEMPTS} attempts: others are writing it all the time")


def _load(folder: Folder, file: Place, name: str, version: int | None) -> Artifact | None:
    cards = _cards(folder, file)
    if not cards:
        return None
    number = max(cards) if version is None else version
    if number not in cards:
        raise no_such_version(name, number, sorted(cards))
    try:
        card = json.loads(folder.read(cards[number]))
        return Artifact(name, folder.read(card["data"]), card["mime_type"], number)
    except FileNotFoundError:  # deleted since
        return None


def _names(folder: Folder, seen: tuple[Owner, ...]) -> list[str]:
    found = set()
    for owner in seen:
        depth = _owner_path(owner).count("/") + 1
        for path in folder.find(_owner_path(owner)):
            segments = path.split("/")[depth:]
            if len(segments) == 2:
                found.add(shown(owner, unquote(segments[0])))
    return sorted(found)


def _delete(folder: Folder, file: Place) -> bool:
    cards = _cards(folder, file)
    for path in cards.values():
        try:
            body = json.loads(folder.read(path))["data"]
        except FileNotFoundError:  # another process deletes it too
            continue
        folder.remove(path)
        folder.remove(body)
    return bool(cards)
