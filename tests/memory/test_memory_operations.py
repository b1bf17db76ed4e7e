"""Operations on memories as an extraction makes them, and the policies that stand before an addition."""

from __future__ import annotations

from typing import Any

import pytest
from support.remembering import add

from graphagent.services import Memory
from runner.memory import InMemoryMemory, Operation, append_only, merge_similar, preserve_history
from runner.memory.operations import ALL, apply

pytestmark = pytest.mark.anyio
APP, USER = "app", "ann"


async def made(memory: Any, *operations: Operation, allowed: Any = ALL) -> list[str]:
    """What became of operations."""
    return [done.result for done in await apply(memory, APP, USER, operations, allowed)]


async def texts(memory: Any) -> list[str]:
    """What is remembered, sorted."""
    return sorted(one.text for one in await memory.load(APP, USER))


async def test_c108_what_is_not_there_and_what_is_not_allowed() -> None:
    """An update of an unknown memory adds it, the deletion of one is done already, an operation that isn't allowed is
    left out, and so is one that nobody knows."""
    memory = InMemoryMemory()
    assert await made(memory, Operation("update", "unknown", "likes tea")) == ["added"]
    assert await made(memory, Operation("delete", "unknown")) == ["deleted"]
    assert await made(memory, Operation("merge", "x", "y")) == ["unknown"]
    some = frozenset({"update", "clear"})
    assert await made(memory, add("x"), Operation("update", "unknown", "y"), allowed=some) == ["disabled", "disabled"]
    assert await made(memory, Operation("delete", "x"), allowed=frozenset()) == ["disabled"]
    assert await texts(memory) == ["likes tea"]
    assert await made(memory, Operation("clear"), allowed=some) == ["cleared"]
    assert await texts(memory) == []


async def test_refused_operations_say_why() -> None:
    """One memory too many, and an update to what is there: nothing is changed, the others are made."""
    memory = InMemoryMemory(limit=2)
    first = await memory.add(APP, USER, "a")
    await memory.add(APP, USER, "b")
    done = await apply(
        memory, APP, USER, [add("c"), Operation("update", first.id, "b"), Operation("update", first.id, "d")], ALL
    )
    assert [one.result for one in done] == ["refused", "refused", "updated"]
    assert "limit" in done[0].reason
    assert "already" in done[1].reason
    assert await texts(memory) == ["b", "d"]


async def instead(policy: Any, operation: Operation, *stored: Memory, allowed: frozenset[str] = ALL) -> Any:
    """What a policy makes of an addition where these memories are found."""

    async def probe(text: str) -> list[Memory]:
        assert text == operation.text
        return list(stored)

    return await policy(operation, probe, allowed)


TEA = Memory("m1", "likes green tea in the morning", ("drinks",), score=0.95)


async def test_c109_policies() -> None:
    """The same again is dropped, with a new topic it is an update that has both topics; append_only keeps the
    addition."""
    same = add(TEA.text, topics=["Drinks"])
    assert await instead(merge_similar, same, TEA) is None
    more = await instead(merge_similar, add(TEA.text, topics=["Drinks", "habits"]), TEA)
    assert (more.kind, more.id, more.text, more.about["topics"]) == ("update", "m1", TEA.text, ("drinks", "habits"))
    assert await instead(append_only, same, TEA) == same
    assert await instead(preserve_history, same, TEA) is None


@pytest.mark.parametrize(
    ("text", "score", "kind"),
    [
        ("green tea", 0.95, None),
        ("likes green tea in the morning always", 0.5, None),
        ("likes black tea at night", 0.65, "update"),
        ("likes green tea with milk and honey", 0.3, "update"),
        ("likes to swim at night", 0.4, "add"),
    ],
)
async def test_how_alike_it_has_to_be(text: str, score: float, kind: str | None) -> None:
    """By its score or by common words; from a score of 0.90 or a share of 0.70 on it is the same, from 0.60 or 0.40 on
    it takes the place of the other."""
    found = await instead(merge_similar, add(text), TEA._replace(score=score))
    assert (None if found is None else found.kind) == kind
    if kind == "update":
        assert (found.text, found.id) == (text, "m1")


async def test_the_most_alike_counts() -> None:
    """The higher tier first, then the score, then the words."""
    close = [TEA._replace(id="m2", score=0.7), TEA._replace(id="m3", text="likes tea", score=0.8)]
    found = await instead(merge_similar, add("drinks black tea"), *[one._replace(text="black coffee") for one in close])
    assert found.id == "m3"
    assert await instead(merge_similar, add(TEA.text), *close, TEA._replace(score=0.3)) is None


async def test_policies_and_what_is_allowed() -> None:
    """Without additions the operation is left as it is; without updates the addition is."""
    more = add(TEA.text, topics=["habits"])
    for policy in (merge_similar, preserve_history):
        assert await instead(policy, more, TEA, allowed=frozenset({"update"})) == more
        assert await instead(policy, more, TEA, allowed=frozenset({"add"})) == more


async def test_another_event_is_never_merged() -> None:
    """Another day, other participants or another place is another event, however alike the texts are."""
    lunch = Memory("m1", "had lunch with Ben", kind="episode", event_time=1.0, participants=("Ben",), score=1.0)
    for about in ({"event_time": 2.0}, {"participants": ["Eve"]}):
        for policy in (merge_similar, preserve_history):
            operation = add(lunch.text, kind="episode", **about)
            assert await instead(policy, operation, lunch) == operation
    place = await instead(merge_similar, add(lunch.text, location="Rome"), lunch)
    assert (place.kind, place.about["location"]) == ("update", "Rome")


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("has a dog", "has a dog called Rex", "add"),
        ("has a small brown dog called Rex", "has a small brown dog called Rex Junior", "update"),
        ("has 2 small brown dogs called Rex", "has 3 small brown dogs called Rex", "add"),
        ("likes small brown dogs and cats", "does not like small brown dogs and cats", "add"),
        ("likes small brown dogs", "small brown dogs likes", None),
        ("lives in Oslo since 2019", "lives in Bergen since 2019", "add"),
    ],
)
async def test_what_history_is_preserved(old: str, new: str, kind: str | None) -> None:
    """Only what says all of the old memory and little else takes its place, with the same numbers and no new no."""
    found = await instead(preserve_history, add(new), Memory("m1", old, score=1.0))
    assert (None if found is None else found.kind) == kind


async def test_forms_of_a_word_are_the_same_word() -> None:
    """A question that says it in another form finds the memory, and a memory in another form is the same again."""
    memory = InMemoryMemory()
    await memory.add(APP, USER, "adopted two puppies")
    assert [one.text for one in await memory.search(APP, USER, "When did she adopt a puppy?")] == [
        "adopted two puppies"
    ]
