"""What every memory service promises, one function a promise; `service_suites` makes tests of them."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from graphagent.errors import NotFound, ServiceError, UsageError
from graphagent.ids import fresh_id
from graphagent.services import MemoryService
from graphagent.testing.service_help import opened, refused

Memories = Callable[[], MemoryService]
USER = "user"


def _app() -> str:
    return f"app-{fresh_id()}"


async def what_is_not_there_is_empty(factory: Memories) -> None:
    """Of an unknown user nothing is loaded, found or deleted; an update is refused."""
    async with opened(factory) as memory:
        app = _app()
        assert await memory.load(app, USER) == []
        assert await memory.search(app, USER, "anything") == []
        assert await memory.delete(app, USER, "x") is False
        assert await memory.clear(app, USER) == 0
        assert "'x'" in await refused(NotFound, memory.update(app, USER, "x", "text"))


async def a_memory_comes_back_equal(factory: Memories) -> None:
    """Text, topics and kind are read as they were written, also by another handle."""
    async with opened(factory) as memory, opened(factory) as other:
        app = _app()
        made = [
            await memory.add(app, USER, "früh 早上好 👩‍👩‍👧 '\"\\%s?\n", topics=["ü", "a b"]),
            await memory.add(app, USER, "went to Rome", kind="episode"),
        ]
        assert (made[0].topics, made[0].kind, made[1].kind) == (("ü", "a b"), "fact", "episode")
        assert made[0].created_at == made[0].updated_at > 0
        for service in (memory, other):
            found = {one.id: one for one in await service.load(app, USER)}
            assert found == {one.id: one for one in made}


async def the_same_text_is_the_same_memory(factory: Memories) -> None:
    """Adding a fact again changes topics and time, not its id (spec/context case 102); another kind is another one."""
    async with opened(factory) as memory:
        app = _app()
        first = await memory.add(app, USER, "likes tea", topics=["drinks"])
        await anyio.sleep(0.002)
        again = await memory.add(app, USER, "likes tea", topics=["tea"])
        assert (again.id, again.topics, again.created_at) == (first.id, ("tea",), first.created_at)
        assert again.updated_at > first.updated_at
        assert await memory.load(app, USER) == [again]
        await memory.add(app, USER, "likes tea", kind="episode")
        assert len(await memory.load(app, USER)) == 2


async def an_update_never_makes_two_memories_one(factory: Memories) -> None:
    """An update to a text that another memory has is refused and both stay (spec/context case 104)."""
    async with opened(factory) as memory:
        app = _app()
        tea = await memory.add(app, USER, "likes tea", topics=["drinks"])
        milk = await memory.add(app, USER, "likes milk")
        before = await memory.load(app, USER)
        assert "already" in await refused(ServiceError, memory.update(app, USER, tea.id, "likes milk"))
        assert await memory.load(app, USER) == before
        changed = await memory.update(app, USER, tea.id, "likes green tea")
        assert (changed.text, changed.topics, changed.created_at) == ("likes green tea", ("drinks",), tea.created_at)
        same = await memory.update(app, USER, milk.id, "likes milk", topics=["food"])
        assert (same.id, same.topics) == (milk.id, ("food",))
        assert {one.text for one in await memory.load(app, USER)} == {"likes green tea", "likes milk"}
        await refused(NotFound, memory.update(app, USER, "unknown", "text"))


async def the_last_changed_comes_first(factory: Memories) -> None:
    """`load` is ordered by time of change, and takes a limit."""
    async with opened(factory) as memory:
        app = _app()
        for text in ("one", "two", "three", "one"):
            await memory.add(app, USER, text)
            await anyio.sleep(0.002)
        assert [one.text for one in await memory.load(app, USER)] == ["one", "three", "two"]
        assert [one.text for one in await memory.load(app, USER, limit=2)] == ["one", "three"]
        await refused(UsageError, memory.load(app, USER, limit=0))


async def users_know_nothing_of_each_other(factory: Memories) -> None:
    """Another user's or app's memories are never loaded, found, changed or cleared."""
    async with opened(factory) as memory:
        app = _app()
        mine = await memory.add(app, USER, "likes tea")
        theirs = await memory.add(app, "other", "likes tea and cake")
        await memory.add(f"{app}-2", USER, "likes tea with sugar")
        assert [one.text for one in await memory.search(app, USER, "tea")] == ["likes tea"]
        assert await memory.delete(app, USER, theirs.id) is False
        await refused(NotFound, memory.update(app, USER, theirs.id, "x"))
        assert await memory.clear(app, USER) == 1
        assert await memory.delete(app, USER, mine.id) is False
        assert await memory.load(app, "other") == [theirs]


async def a_search_finds_what_fits(factory: Memories) -> None:
    """Best first, with scores, none that fits badly; words count, not their case, in Chinese too."""
    async with opened(factory) as memory:
        app = _app()
        for text in (
            "The user's favourite city is Rome",
            "The user works at a bank in Berlin",
            "Has a dog that is named Rex",
            "用户喜欢喝绿茶",
        ):
            await memory.add(app, USER, text)
        await memory.add(app, USER, "Allergic to nuts", topics=["health", "food"])
        cases = {
            "Which CITY is the favourite?": "The user's favourite city is Rome",
            "name of the dog": "Has a dog that is named Rex",
            "bank Berlin": "The user works at a bank in Berlin",
            "喜欢绿茶吗": "用户喜欢喝绿茶",
            "food": "Allergic to nuts",
        }
        for query, text in cases.items():
            found = await memory.search(app, USER, query)
            assert found, query
            assert found[0].text == text, query
            assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
            assert all(0.3 <= one.score <= 1.0 for one in found)
        for query in ("", " ", "?!", "the of and", "volcano"):
            assert await memory.search(app, USER, query) == [], query
        assert len(await memory.search(app, USER, "user", limit=1)) == 1


async def a_memory_has_a_text(factory: Memories) -> None:
    """Blank texts, blank names and unknown kinds are refused."""
    async with opened(factory) as memory:
        app = _app()
        await refused(ServiceError, memory.add(app, USER, " "))
        await refused(ServiceError, memory.add("", USER, "x"))
        await refused(ServiceError, memory.add(app, "", "x"))
        await refused(ServiceError, memory.add(app, USER, "x", topics=[""]))
        assert "'fact'" in await refused(ServiceError, memory.add(app, USER, "x", kind="dream"))
        assert await memory.load(app, USER) == []


CASES = (
    what_is_not_there_is_empty,
    a_memory_comes_back_equal,
    the_same_text_is_the_same_memory,
    an_update_never_makes_two_memories_one,
    the_last_changed_comes_first,
    users_know_nothing_of_each_other,
    a_search_finds_what_fits,
    a_memory_has_a_text,
)
