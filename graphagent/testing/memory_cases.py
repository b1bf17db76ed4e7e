"""What every memory service promises, one function a promise; `service_suites` makes tests of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

from graphagent.errors import AlreadyExists, NotFound, ServiceError, UsageError
from graphagent.ids import fresh_id
from graphagent.services import MemoryFilter, MemoryService
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
        assert "already" in await refused(AlreadyExists, memory.update(app, USER, tea.id, "likes milk"))
        assert await memory.load(app, USER) == before
        changed = await memory.update(app, USER, tea.id, "likes green tea")
        assert (changed.text, changed.topics, changed.created_at) == ("likes green tea", ("drinks",), tea.created_at)
        same = await memory.update(app, USER, milk.id, "likes milk", topics=["food"])
        assert (same.id, same.topics) == (milk.id, ("food",))
        assert {one.text for one in await memory.load(app, USER)} == {"likes green tea", "likes milk"}
        await refused(NotFound, memory.update(app, USER, "unknown", "text"))


async def an_event_has_a_time_and_a_place(factory: Memories) -> None:
    """Time, participants and place come back as they were given; the order of participants makes no other memory."""
    async with opened(factory) as memory, opened(factory) as other:
        app = _app()
        made = await memory.add(
            app,
            USER,
            "went hiking",
            kind="episode",
            event_time=1_683_417_600.5,
            participants=["Ben", "Ann"],
            location="Alps",
        )
        assert (made.event_time, made.participants, made.location) == (1_683_417_600.5, ("Ben", "Ann"), "Alps")
        assert await other.load(app, USER) == [made]
        again = await memory.add(
            app,
            USER,
            "went hiking",
            kind="episode",
            event_time=1_683_417_600.5,
            participants=["Ann", "Ben"],
            location="Alps",
        )
        assert again.id == made.id
        await refused(ServiceError, memory.add(app, USER, "x", event_time=float("nan")))
        await refused(ServiceError, memory.add(app, USER, "x", participants=[" "]))


async def the_same_text_of_another_event_is_another_memory(factory: Memories) -> None:
    """Another time, other participants or another place make another episode (spec/context case 102)."""
    async with opened(factory) as memory:
        app = _app()
        ids = {
            (await memory.add(app, USER, "had lunch", kind="episode")).id,
            (await memory.add(app, USER, "had lunch", kind="episode", event_time=1.0)).id,
            (await memory.add(app, USER, "had lunch", kind="episode", event_time=2.0)).id,
            (await memory.add(app, USER, "had lunch", kind="episode", event_time=2.0, participants=["Ann"])).id,
            (await memory.add(app, USER, "had lunch", kind="episode", event_time=2.0, location="Rome")).id,
            (await memory.add(app, USER, "had lunch", event_time=2.0)).id,
        }
        assert len(ids) == 6
        assert {one.id for one in await memory.load(app, USER)} == ids


async def an_update_keeps_what_it_does_not_name(factory: Memories) -> None:
    """Only the named parts change, and what is given as empty is emptied."""
    async with opened(factory) as memory:
        app = _app()
        made = await memory.add(
            app,
            USER,
            "had lunch",
            topics=["food"],
            kind="episode",
            event_time=5.0,
            participants=["Ann"],
            location="Rome",
        )
        changed = await memory.update(app, USER, made.id, "had a long lunch")
        assert changed.id != made.id
        kept = changed._replace(id=made.id, text=made.text, updated_at=made.updated_at)
        assert kept == made
        moved = await memory.update(app, USER, changed.id, "had a long lunch", location="Paris", event_time=None)
        assert (moved.location, moved.event_time, moved.participants) == ("Paris", None, ("Ann",))
        alone = await memory.update(app, USER, moved.id, "had a long lunch", topics=[], participants=[])
        assert await memory.load(app, USER) == [alone]
        assert (alone.topics, alone.participants, alone.kind) == ((), (), "episode")


async def a_search_is_for_some_of_them(factory: Memories) -> None:
    """By kind, with others where too few are of that kind; by time, where what has none passes; without near
    duplicates; by the worst score that will do."""
    async with opened(factory) as memory:
        app = _app()
        await memory.add(app, USER, "likes the sea")
        for day in range(4):
            await memory.add(app, USER, f"swam in the sea on trip {day}{day}", kind="episode", event_time=float(day))

        async def found(**only: Any) -> list[str]:
            hits = await memory.search(app, USER, "sea", only=MemoryFilter(**only))
            return sorted(hit.text[-7:] for hit in hits)

        trips = [f"trip {day}{day}" for day in range(4)]
        assert await found() == ["the sea", *trips]
        assert await found(kind="episode") == trips
        assert await found(kind="episode", fallback=True) == trips
        assert await found(kind="fact") == ["the sea"]
        assert len(await found(kind="fact", fallback=True)) == 5
        assert await found(after=1.0, before=2.0) == ["the sea", *trips[1:3]]
        assert await found(min_score=1.5) == []
        first = await memory.search(app, USER, "sea", only=MemoryFilter(kind="fact", fallback=True), limit=2)
        assert (len(first), first[0].kind) == (2, "fact")


async def near_duplicates_are_found_once(factory: Memories) -> None:
    """Of memories that say nearly the same of one event only the best is found; of two events each."""
    async with opened(factory) as memory:
        app = _app()
        text = "drove with her sister from Oslo to Bergen by train"
        await memory.add(app, USER, text)
        await memory.add(app, USER, f"{text} once")
        await memory.add(app, USER, text, kind="episode", event_time=1.0)
        await memory.add(app, USER, text, kind="episode", event_time=2.0)
        only = MemoryFilter(distinct=True)
        assert len(await memory.search(app, USER, "Oslo Bergen")) == 4
        episodes = await memory.search(app, USER, "Oslo Bergen", only=only._replace(kind="episode"))
        assert {hit.event_time for hit in episodes} == {1.0, 2.0}
        assert len(await memory.search(app, USER, "Oslo Bergen", only=only._replace(kind="fact"))) == 1


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
    an_event_has_a_time_and_a_place,
    the_same_text_of_another_event_is_another_memory,
    an_update_keeps_what_it_does_not_name,
    a_search_is_for_some_of_them,
    near_duplicates_are_found_once,
    the_last_changed_comes_first,
    users_know_nothing_of_each_other,
    a_search_finds_what_fits,
    a_memory_has_a_text,
)
