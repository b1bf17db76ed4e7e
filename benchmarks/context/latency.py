"""How long a search in sessions takes as they grow, and what an append costs: a table, one row a size and database.

    python benchmarks/context/latency.py [--sizes 1000 10000 100000] [--beside 100000] [--postgres URL] [--json FILE]

`in scope`: events of the user that asks. `beside`: events of other users in the same tables. Texts are made of words
with the frequencies of a language (Zipf), so questions have common and rare words. The times of searches are wall
clock, in milliseconds; of appends CPU time of this process, one by one, with and without anything to index (an event
without text), interleaved.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from graphagent.ledger import Event, SessionKey
from graphagent.messages import Message
from graphagent.services import SessionQuery
from runner.sessions import SqlSessions

PER_SESSION = 500
QUERIES = 200
APPENDS = 300
LANGUAGE = [f"{a}{b}{c}{d}" for a in "bdfgklmn" for b in "aeiou" for c in "prstvz" for d in ("an", "ip", "ock", "um")]
VOCABULARY = [first + second for first in LANGUAGE[::4] for second in LANGUAGE[::48]]
WEIGHTS = list(accumulate(1 / (rank + 10) for rank in range(len(VOCABULARY))))


def sentence(random_: random.Random, words: int) -> str:
    """So many words, common ones more often."""
    return " ".join(random_.choices(VOCABULARY, cum_weights=WEIGHTS, k=words))


async def fill(sessions: SqlSessions, users: list[str], events: int, random_: random.Random) -> None:
    """Give users so many events in all, in sessions of PER_SESSION."""
    for number in range(events // PER_SESSION):
        key = SessionKey("app", users[number % len(users)], f"s{number}")
        await sessions.create(*key)
        for place in range(PER_SESSION):
            role = Message.user if place % 2 else Message.assistant
            await sessions.append(key, Event(author="user", messages=(role(sentence(random_, 20)),)))
        print(f"\r  {(number + 1) * PER_SESSION:,} of {events:,} events", end="", file=sys.stderr)
    print(file=sys.stderr)


async def searched(sessions: SqlSessions, random_: random.Random) -> list[float]:
    """Milliseconds of each of QUERIES searches in all sessions of a user, five words each."""
    took = []
    for number in range(QUERIES + 10):
        query = SessionQuery(sentence(random_, 5))
        start = time.perf_counter()
        await sessions.search("app", "user", query)
        if number >= 10:
            took.append(1000 * (time.perf_counter() - start))
    return took


async def appended(sessions: SqlSessions, random_: random.Random) -> tuple[float, float]:
    """Median microseconds of CPU of an append that is indexed, and of one that isn't."""
    key = SessionKey("app", "user", "appends")
    await sessions.create(*key)
    took: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * APPENDS):
        indexed = bool(number % 2)
        text = sentence(random_, 20)
        message = Message.user(text) if indexed else Message.user([{"type": "data", "data": text}])
        event = Event(author="user", messages=(message,))
        start = time.process_time()
        await sessions.append(key, event)
        took[indexed].append(1e6 * (time.process_time() - start))
    return statistics.median(took[True]), statistics.median(took[False])


async def measured(url: str, size: int, beside: int) -> dict[str, float]:
    """One row of the table."""
    random_ = random.Random(size + beside)
    async with SqlSessions(url) as sessions:
        await fill(sessions, ["user"], size, random_)
        if beside:
            await fill(sessions, [f"other{number}" for number in range(20)], beside, random_)
        took = sorted(await searched(sessions, random_))
        indexed, plain = await appended(sessions, random_)
    return {
        "p50": took[len(took) // 2],
        "p95": took[int(len(took) * 0.95)],
        "append": indexed,
        "append without index": plain,
    }


async def analysed(url: str) -> None:
    """What autovacuum does within a minute."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as server:
        server.execute("ANALYZE")


def fresh_postgres(url: str) -> Any:
    """A context manager that gives the url of a fresh schema."""
    from contextlib import contextmanager

    import psycopg

    @contextmanager
    def schema() -> Any:
        name = f"latency_{random.getrandbits(40):x}"
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(f"CREATE SCHEMA {name}".encode())
            try:
                yield f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"
            finally:
                server.execute(f"DROP SCHEMA {name} CASCADE".encode())

    return schema()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--beside", type=int, default=100_000, help="events of other users, once, beside 10,000")
    parser.add_argument("--postgres", metavar="URL", help="measure PostgreSQL too")
    parser.add_argument("--json", type=Path, metavar="FILE")
    told = parser.parse_args()
    cases = [(size, 0) for size in told.sizes] + ([(10_000, told.beside)] if told.beside else [])
    found: dict[str, dict[str, float]] = {}
    print("database    in scope   beside      p50 ms    p95 ms   append us   without index")
    for size, beside in cases:
        with tempfile.TemporaryDirectory() as folder:
            found[f"sqlite.{size}.{beside}"] = row = asyncio.run(measured(f"sqlite:///{folder}/a.db", size, beside))
        show("sqlite", size, beside, row)
        if told.postgres:
            with fresh_postgres(told.postgres) as url:
                found[f"postgresql.{size}.{beside}"] = row = asyncio.run(measured(url, size, beside))
            show("postgresql", size, beside, row)
    if told.json:
        told.json.write_text(json.dumps(found, indent=1) + "\n")


def show(name: str, size: int, beside: int, row: dict[str, float]) -> None:
    """Print a row."""
    times = f"{row['p50']:9.2f} {row['p95']:9.2f} {row['append']:11.0f} {row['append without index']:15.0f}"
    print(f"{name:10} {size:9,} {beside:8,}   {times}", flush=True)


if __name__ == "__main__":
    main()
