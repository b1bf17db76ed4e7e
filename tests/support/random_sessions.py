"""Random sessions, as agents leave them and as faults do: cut off rounds, lone results, siblings, summaries."""

from __future__ import annotations

from random import Random
from typing import Any

from graphagent.ledger import Boundary, Event, Session, Summary
from graphagent.messages import Message, ToolCall
from processors import (
    HistoryLimit,
    Pairing,
    SessionProjector,
    Summaries,
    Visibility,
    Voice,
    default_pipeline,
)

APP = "app"
KEYS = (APP, APP, APP, "app/a", "app/b", "app/a/x", "")
SIBLING_OF = {"app/a": "app/b", "app/b": "app/a"}


def random_events(random: Random) -> list[Event]:
    """Up to six turns, well-behaved or not. A text says of which key it is: `key|number`."""
    events: list[Event] = []
    clock = [0.0]

    def add(author: str, key: str, *messages: Message, **fields: Any) -> None:
        clock[0] += random.choice([0.0, 1.0])
        place = f"e{len(events)}"
        events.append(Event(id=place, author=author, filter_key=key, messages=messages, timestamp=clock[0], **fields))

    for turn in range(random.randrange(7)):
        ids: dict[str, Any] = {"request_id": f"r{turn}", "invocation_id": f"i{turn}", "branch": "bot"}
        add("user", APP, Message.user(f"app|said {turn}"), **ids)
        for number in range(random.randrange(5)):
            key, author = random.choice(KEYS), random.choice(["bot", "bot", "other"])
            text = f"{key}|{turn}.{number}"
            if random.random() < 0.4:
                add(author, key, Message.assistant(text, reasoning=random.choice([None, "hm"])), **ids)
                continue
            calls = [f"c{random.randrange(4)}" for _ in range(random.randrange(1, 4))]
            made = tuple(ToolCall(id=call, name="look") for call in calls)
            add(author, key, Message.assistant(random.choice(["", text]), tool_calls=made), **ids)
            results = [Message.tool(f"{text} of {call}", call) for call in dict.fromkeys(calls)]
            random.shuffle(results)
            results = results[: random.choice([0, 1, 9, 9])] + results[: random.choice([0, 0, 1])]
            if results and random.random() < 0.3:
                for result in results:
                    add(author, random.choice([key, random.choice(KEYS)]), result, kind="tool_result", **ids)
            elif results:
                add(author, key, *results, kind="tool_result", **ids)
    random.shuffle(events) if random.random() < 0.1 else None
    return events


def random_session(random: Random) -> Session:
    """A session with such events, and perhaps summaries."""
    events = random_events(random)
    summaries = {}
    for key in ("", APP, "app/a"):
        if random.random() < 0.3:
            last = random.choice([*(event.id for event in events), ""])
            boundary = Boundary(filter_key=key, last_event_id=last, cutoff_at=random.random() * 8)
            summaries[key] = Summary(text=f"{key}|SUM", boundary=boundary, updated_at=0.0)
    return Session(app=APP, user="ann", id="s", events=events, summaries=summaries)


def random_projector(random: Random) -> SessionProjector:
    """A projector with random policies."""
    return SessionProjector(
        default_pipeline(
            visibility=Visibility(random.choice(["prefix", "subtree", "exact", "all"])),
            summaries=random.choice([None, Summaries(), Summaries("user")]),
            pairing=Pairing(unanswered=random.choice(["close", "strip"])),
            voice=Voice(prefix=random.random() < 0.5),
            limit=HistoryLimit(random.randrange(6)),
        )
    )
