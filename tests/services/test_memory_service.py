"""Memory: its edge cases by number, its limit, and how texts are ranked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphagent.errors import ServiceError
from graphagent.services import Memory
from runner.memory import InMemoryMemory, SqlMemory
from runner.memory.ranking import rank
from runner.memory.words import words

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def open_memory(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Any]:
    """A function that opens a memory service of each kind."""
    if request.param == "memory":
        return InMemoryMemory
    if request.param == "sqlite":
        return lambda **options: SqlMemory(f"{tmp_path}/a.db", **options)
    url = request.getfixturevalue("shared_postgres_url")
    return lambda **options: SqlMemory(url, **options)


async def test_c102_the_same_fact_twice_is_one_memory(open_memory: Any, app: str) -> None:
    """Other topics change nothing about that: the id stays."""
    async with open_memory() as memory:
        first = await memory.add(app, "u", "likes tea", topics=["a"])
        again = await memory.add(app, "u", "likes tea", topics=["b"])
        assert first.id == again.id
        assert await memory.load(app, "u") == [again]


async def test_c103_one_memory_too_many_is_refused(open_memory: Any, app: str) -> None:
    """At the limit every add is refused, also of a text that is there; other users have limits of their own."""
    async with open_memory(limit=3) as memory:
        for number in range(3):
            await memory.add(app, "u", f"fact {number}")
        for text in ("fact 3", "fact 1"):
            with pytest.raises(ServiceError, match=r"3 memories.*limit="):
                await memory.add(app, "u", text)
        await memory.add(app, "other", "fact 0")
        assert len(await memory.load(app, "u")) == 3


async def test_c104_an_update_to_a_text_that_is_there_is_refused(open_memory: Any, app: str) -> None:
    """Both memories are as before."""
    async with open_memory() as memory:
        one, _ = await memory.add(app, "u", "A"), await memory.add(app, "u", "B")
        before = await memory.load(app, "u")
        with pytest.raises(ServiceError, match="already"):
            await memory.update(app, "u", one.id, "B")
        assert await memory.load(app, "u") == before


def remembered(*texts: str, topics: tuple[str, ...] = ()) -> list[Memory]:
    """Memories with these texts."""
    return [Memory(str(place), text, topics) for place, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The TLS certificates, and the host!", ["tls", "certif", "host"]),
        ("port 8443 a b", ["port", "8443"]),
        ("喜欢绿茶吗", ["喜欢", "欢绿", "绿茶", "喜欢绿", "欢绿茶"]),
        ("茶", ["茶"]),
        ("früh ÄRGER", ["fruh", "arger"]),
        ("", []),
    ],
)
def test_a_text_has_words(text: str, expected: list[str]) -> None:
    """Lower case, stemmed, two characters at least, no stop words; Chinese in pairs and triples."""
    assert [word for word, _ in words(text)] == expected


@pytest.mark.parametrize(
    ("query", "better", "worse"),
    [
        ("tls certificate", "the tls certificate is new", "the certificate of tls is new"),
        ("tls certificate", "a tls certificate", "a certificate"),
        ("rex host", "rex and others", "host and host and others"),
        ("tea", "tea", "tea and a very long list of other drinks such as coffee, cocoa, milk, juice and lemonade"),
    ],
)
def test_a_better_fit_comes_first(query: str, better: str, worse: str) -> None:
    """Words in order, more words, a rare word, a short text: each counts."""
    others = ["host one", "host two", "host three"] if "rex" in query else []
    found = rank(remembered(worse, better, *others), query, 10, 0.0)
    assert found[0].text == better


def test_scores_have_bounds() -> None:
    """A text that holds the query reaches the floor, topics count less than the text, no score is above 1."""
    (exact,) = rank(remembered("the and of"), "the and", 10)
    assert exact.score == 0.35
    text = rank(remembered("likes tea", "x"), "tea", 10)[0].score
    topic = rank([Memory("1", "likes it", ("tea",)), Memory("2", "x")], "tea", 10)[0].score
    assert 0.3 < topic < text <= 1.0
    assert rank(remembered("one of three"), "three four five six seven", 10) == []
    assert len(rank(remembered(*["tea"] * 5), "tea", 3)) == 3
    assert rank([], "tea", 3) == []
