"""What every artifact service promises, one function a promise; `service_suites` makes tests of them."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from graphagent.errors import NotFound, ServiceError
from graphagent.ledger import SessionKey
from graphagent.services import Artifact, ArtifactService
from graphagent.testing.service_help import fresh_key, opened, refused

Artifacts = Callable[[], ArtifactService]


async def what_is_not_there_is_none(factory: Artifacts) -> None:
    """An unknown file is None, has no versions, and can be deleted without an error."""
    async with opened(factory) as artifacts:
        key = fresh_key()
        assert await artifacts.load(key, "a.txt") is None
        assert await artifacts.load(key, "a.txt", 7) is None
        assert await artifacts.versions(key, "a.txt") == []
        assert await artifacts.names(key) == []
        assert await artifacts.delete(key, "a.txt") is False


async def versions_count_from_zero(factory: Artifacts) -> None:
    """Two saves are versions 0 and 1, the newest is loaded, an unknown version is an error (spec/services case 40)."""
    async with opened(factory) as artifacts, opened(factory) as others:
        key = fresh_key()
        assert await artifacts.save(key, "a.txt", b"one") == 0
        assert await others.save(key, "a.txt", b"", mime_type="text/plain; charset=utf-8") == 1
        for service in (artifacts, others):
            newest = Artifact("a.txt", b"", "text/plain; charset=utf-8", 1)
            assert await service.load(key, "a.txt") == newest
            assert await service.load(key, "a.txt", 1) == newest
            assert await service.load(key, "a.txt", 0) == Artifact("a.txt", b"one", "application/octet-stream", 0)
            assert await service.versions(key, "a.txt") == [0, 1]
            for version in (7, -1):
                assert f"no version {version}" in await refused(NotFound, service.load(key, "a.txt", version))
        assert await artifacts.load(key, "b.txt") is None


async def a_file_of_the_user_is_in_all_sessions(factory: Artifacts) -> None:
    """A `user:` file is loaded and listed in every session of its user, in nobody else's (spec/services case 41)."""
    async with opened(factory) as artifacts:
        key = fresh_key()
        mate, stranger = key._replace(session="mate"), key._replace(user="stranger")
        await artifacts.save(key, "user:profile.txt", b"me")
        await artifacts.save(key, "profile.txt", b"here")
        loaded = await artifacts.load(mate, "user:profile.txt")
        assert loaded is not None
        assert (loaded.name, loaded.data) == ("user:profile.txt", b"me")
        assert await artifacts.names(mate) == ["user:profile.txt"]
        assert await artifacts.names(key) == ["profile.txt", "user:profile.txt"]
        for other in (stranger, key._replace(app=f"{key.app}-2")):
            assert await artifacts.load(other, "user:profile.txt") is None
            assert await artifacts.names(other) == []
        assert await artifacts.save(mate, "user:profile.txt", b"me too") == 1
        assert await artifacts.versions(key, "user:profile.txt") == [0, 1]
        odd = key._replace(session="user")
        assert await artifacts.names(odd) == ["user:profile.txt"]
        assert await artifacts.load(odd, "profile.txt") is None


async def after_a_delete_it_begins_anew(factory: Artifacts) -> None:
    """A delete removes all versions of one file; the next save is version 0 (spec/services case 42)."""
    async with opened(factory) as artifacts:
        key = fresh_key()
        for name in ("a", "a", "a.b", "user:a"):
            await artifacts.save(key, name, name.encode())
        assert await artifacts.delete(key, "a") is True
        assert await artifacts.delete(key, "a") is False
        assert await artifacts.load(key, "a") is None
        assert await artifacts.names(key) == ["a.b", "user:a"]
        assert await artifacts.save(key, "a", b"new") == 0
        assert await artifacts.versions(key, "a") == [0]


async def names_are_checked(factory: Artifacts) -> None:
    """What could leave the file's place is refused; anything else is a name, in sessions of any name too."""
    async with opened(factory) as artifacts:
        key = fresh_key()
        for bad in ("", " ", "user:", "a/b", "a\\b", "..", "a..b", "a\0b", "\ud800", "user:../x", "user:a/b"):
            await refused(ServiceError, artifacts.save(key, bad, b"x"))
            await refused(ServiceError, artifacts.load(key, bad))
            await refused(ServiceError, artifacts.delete(key, bad))
        assert await artifacts.names(key) == []
        odd = SessionKey(f"{key.app}/../%2E ü", "..", ". /:*?")
        names = sorted(["0.json", ".env", "früh 早上好.pdf", "%2F", "a'b\"?*<>|", "user:.", "A", "users:x"])
        for name in names:
            assert await artifacts.save(odd, name, name.encode()) == 0
        assert await artifacts.names(odd) == names
        for name in names:
            loaded = await artifacts.load(odd, name)
            assert loaded is not None
            assert (loaded.name, loaded.data) == (name, name.encode())


async def every_save_gets_a_version(factory: Artifacts) -> None:
    """Writers at the same moment each get a number of their own, and their bytes under it."""
    async with opened(factory) as artifacts, opened(factory) as others:
        key = fresh_key()
        found: dict[int, bytes] = {}

        async def write(service: ArtifactService, who: int) -> None:
            for number in range(5):
                data = f"{who}-{number}".encode() * 100
                version = await service.save(key, "a", data)
                assert version not in found
                found[version] = data

        async with anyio.create_task_group() as tasks:
            for who, service in enumerate((artifacts, others) * 3):
                tasks.start_soon(write, service, who)
        assert sorted(found) == list(range(30))
        for version, data in found.items():
            loaded = await others.load(key, "a", version)
            assert loaded is not None
            assert loaded.data == data


async def many_bytes_come_back_equal(factory: Artifacts) -> None:
    """Three megabytes of every byte value."""
    async with opened(factory) as artifacts:
        key = fresh_key()
        data = bytes(range(256)) * 12_000
        await artifacts.save(key, "big", data)
        loaded = await artifacts.load(key, "big")
        assert loaded is not None
        assert loaded.data == data


CASES = (
    what_is_not_there_is_none,
    versions_count_from_zero,
    a_file_of_the_user_is_in_all_sessions,
    after_a_delete_it_begins_anew,
    names_are_checked,
    every_save_gets_a_version,
    many_bytes_come_back_equal,
)
