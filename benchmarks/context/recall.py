"""How much of the evidence of a question `search` in sessions brings back, on QMSum and LoCoMo, beside FTS5 porter.

    python benchmarks/context/recall.py --data DIR [--split tune|report] [--store memory|URL] [--embedder minilm]
                                        [--json FILE]

`report` (the default) is QMSum's test split and five conversations of LoCoMo, `tune` what the constants were chosen on:
the val split and the other five. Of a meeting all but the last 20 messages are searched. Figures: `hit@k`, the share of
questions with some evidence among the first k; `rec@k`, the share of the evidence; `shown`, the share with evidence in
what one tool call shows (5 hits, the first two with two messages on each side), and its tokens. Intervals are 95 %
bootstrap intervals over questions. The baseline is SQLite's FTS5, porter, OR of the words that are no stop words.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.context.data import Corpus, Said, locomo, qmsum
from benchmarks.context.meter import tokens
from graphagent.ids import fresh_id
from graphagent.ledger import Event, SessionKey
from graphagent.messages import Message
from graphagent.services import SessionQuery
from runner.sessions import InMemorySessions, SqlSessions
from runner.words import STOP_WORDS, pieces

TUNE = frozenset({"conv-26", "conv-30", "conv-41", "conv-42", "conv-43"})
VISIBLE = 20
KS = (1, 5, 10)
HITS, EXPANDED, AROUND = 5, 2, 2
Measures = dict[str, list[float]]


class Shown(NamedTuple):
    """The first ten messages that were found, and those that one tool call shows."""

    first: list[str]
    shown: set[str]


def corpora(folder: Path, split: str) -> dict[str, Corpus]:
    """The two sets of a split."""
    chats = locomo(folder)
    kept = {name: said for name, said in chats.conversations.items() if (name in TUNE) == (split == "tune")}
    meetings = qmsum(folder, "val" if split == "tune" else "test")
    hidden = {name: said[:-VISIBLE] for name, said in meetings.conversations.items()}
    return {
        "qmsum": Corpus(hidden, meetings.questions),
        "locomo": Corpus(kept, tuple(one for one in chats.questions if one.conversation in kept)),
    }


class Porter:
    """SQLite's FTS5 over the messages of one conversation."""

    def __init__(self, said: Sequence[Said]) -> None:
        self._said = said
        self._database = sqlite3.connect(":memory:")
        self._database.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61')")
        rows = [(at, one.text) for at, one in enumerate(said)]
        self._database.executemany("INSERT INTO t(rowid, x) VALUES (?, ?)", rows)

    async def find(self, text: str) -> Shown:
        """What one search finds."""
        words = [word for word in dict.fromkeys(pieces(text)) if word not in STOP_WORDS]
        query = " OR ".join(f'"{word}"' for word in words)
        sql = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t), rowid LIMIT 10"
        found = [row[0] for row in self._database.execute(sql, (query,))] if words else []
        shown = set(found[:HITS])
        for at in found[:EXPANDED]:
            near = range(max(0, at - AROUND), min(len(self._said), at + AROUND + 1))
            shown |= {other for other in near if self._said[other].session == self._said[at].session}
        return Shown([self._said[at].id for at in found], {self._said[at].id for at in shown})


class Ours:
    """The sessions of one conversation, each part of it one session."""

    def __init__(self, sessions: Any) -> None:
        self._sessions = sessions
        self._user = fresh_id()

    async def fill(self, said: Sequence[Said]) -> None:
        """Store a conversation."""
        made: set[str] = set()
        for one in said:
            key = SessionKey("recall", self._user, one.session)
            if one.session not in made:
                made.add(one.session)
                await self._sessions.create(*key)
            await self._sessions.append(key, Event(id=one.id, author="user", messages=(Message.user(one.text),)))

    async def find(self, text: str) -> Shown:
        """What one search finds."""
        found = await self._sessions.search("recall", self._user, SessionQuery(text, limit=KS[-1]))
        shown = {hit.event.id for hit in found[:HITS]}
        for hit in found[:EXPANDED]:
            near = await self._sessions.window(hit.key, hit.event.id, before=AROUND, after=AROUND)
            shown |= {event.id for event in near}
        return Shown([hit.event.id for hit in found], shown)

    async def clear(self) -> None:
        """Remove the sessions again."""
        for session in await self._sessions.list("recall", self._user):
            await self._sessions.delete(session.key)


@asynccontextmanager
async def stored(sessions: Any, said: Sequence[Said]) -> AsyncIterator[Ours]:
    """A conversation in a session service."""
    ours = Ours(sessions)
    await ours.fill(said)
    yield ours
    await ours.clear()


async def measure(name: str, corpus: Corpus, sessions: Any) -> tuple[Measures, Measures]:
    """The measures of each question, of ours and of the baseline."""
    ours: Measures = {}
    theirs: Measures = {}
    for number, (conversation, said) in enumerate(corpus.conversations.items(), 1):
        print(f"\r{name}: conversation {number} of {len(corpus.conversations)}   ", end="", file=sys.stderr)
        texts = {one.id: one.text for one in said}
        asked = [one for one in corpus.questions if one.conversation == conversation and one.evidence & texts.keys()]
        baseline = Porter(said)
        async with stored(sessions, said) as search:
            for question in asked:
                evidence = question.evidence & texts.keys()
                _note(ours, await search.find(question.text), evidence, texts)
                _note(theirs, await baseline.find(question.text), evidence, texts)
    print(file=sys.stderr)
    return ours, theirs


def _note(into: Measures, found: Shown, evidence: Iterable[str], texts: dict[str, str]) -> None:
    wanted = set(evidence)
    values = {
        "shown.hit": float(bool(wanted & found.shown)),
        "shown.tokens": sum(tokens(texts[id]) for id in found.shown),
    }
    for k in KS:
        got = len(wanted & set(found.first[:k]))
        values[f"hit@{k}"], values[f"rec@{k}"] = float(got > 0), got / len(wanted)
    for name, value in values.items():
        into.setdefault(name, []).append(value)


def interval(values: Sequence[float], times: int = 2000) -> tuple[float, float]:
    """The bootstrap interval of the mean that holds 95 %."""
    draw = random.Random(len(values))
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(times))
    return means[int(times * 0.025)], means[int(times * 0.975)]


async def run(told: argparse.Namespace) -> dict[str, float]:
    """Measure and print; the figures by name."""
    figures: dict[str, float] = {}
    options = {"embedder": _embedder(told.embedder)} if told.embedder else {}
    made: Any = InMemorySessions if told.store == "memory" else SqlSessions
    place = [] if told.store == "memory" else [told.store]
    async with made(*place, **options) as sessions:
        for name, corpus in corpora(told.data, told.split).items():
            ours, theirs = await measure(name, corpus, sessions)
            print(f"\n{name}, {told.split}: {len(ours['hit@1'])} questions")
            for measure_, values in ours.items():
                mean, other = sum(values) / len(values), sum(theirs[measure_]) / len(values)
                low, high = interval(values)
                shape = ".0f" if measure_ == "shown.tokens" else ".3f"
                ends = f"[{low:{shape}}, {high:{shape}}]"
                print(f"  {measure_:14}{mean:9{shape}}  {ends:18} FTS5 porter {other:{shape}}")
                figures |= {
                    f"{name}.{measure_}": mean,
                    f"{name}.{measure_}.low": low,
                    f"{name}.{measure_}.high": high,
                    f"{name}.{measure_}.porter": other,
                }
    return figures


def _embedder(name: str) -> Any:
    from benchmarks.context.embedders import EMBEDDERS

    return EMBEDDERS[name]()


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--split", choices=["tune", "report"], default="report")
    parser.add_argument("--store", default="memory", help="memory, or the url of a database")
    parser.add_argument("--embedder", choices=["minilm"], help="rank by meaning too")
    parser.add_argument("--json", type=Path, metavar="FILE")
    told = parser.parse_args()
    figures = asyncio.run(run(told))
    if told.json:
        told.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
