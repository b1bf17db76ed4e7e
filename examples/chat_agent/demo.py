"""The demo: a talk of two turns, of which the second needs the first.

Run it with `python -m examples.chat_agent.demo`; give messages of your own instead, and `--db` and `--session` to go on
with a talk later. Its model is a script, unless `--model` names a real one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import anyio

from examples.chat_agent.agent import NAME, make_agent
from examples.chat_agent.script import script
from examples.models import HELP, chosen_model
from graphagent import SqlCheckpoints
from graphagent.agents import Agent
from graphagent.ledger import Event
from runner import Runner
from runner.sessions import SqlSessions

USER = "user"
MESSAGES = ("How many days are there from 2026-01-31 to 2026-03-01?", "And what did you say that day of the week is?")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit status of the process."""
    parser = argparse.ArgumentParser(prog="python -m examples.chat_agent.demo", description=__doc__)
    parser.add_argument("message", nargs="*", help="what to say, one turn each", default=list(MESSAGES))
    parser.add_argument("--model", metavar="NAME", help=HELP)
    parser.add_argument("--db", metavar="URL", help="keep the talk, such as in sqlite:///talk.db")
    parser.add_argument("--session", default="demo", help="which talk (demo)")
    given = parser.parse_args(arguments)
    with chosen_model(given.model, script) as model:
        return anyio.run(talk, make_agent(model), given.message, given.db, given.session)


async def talk(agent: Agent, messages: Sequence[str], database: str | None, session: str) -> int:
    """Say the messages turn by turn and print what comes back; 1 as soon as a run does not complete."""
    async with AsyncExitStack() as stack:
        services: dict[str, Any] = {}
        if database is not None:
            services["checkpoints"] = await stack.enter_async_context(SqlCheckpoints(database))
            services["sessions"] = SqlSessions(database)
            stack.push_async_callback(services["sessions"].aclose)
        runner = await stack.enter_async_context(Runner(NAME, agent, **services))
        for message in messages:
            print(f"> {message}")
            last = Event()
            async for last in runner.run(USER, session, message):
                for line in lines(last):
                    print(line)
            if last.extensions["outcome"] != "completed":
                print(f"{last.extensions['outcome']}: {last.error.message if last.error else ''}")
                return 1
    return 0


def lines(event: Event) -> Iterator[str]:
    """What a person sees of an event: calls, results, and answers once they are whole."""
    for message in event.messages if not event.partial else ():
        for call in message.tool_calls:
            arguments = ", ".join(f"{name}={json.dumps(value)}" for name, value in call.arguments.items())
            yield f"  {call.name}({arguments})"
        if message.role == "tool":
            yield f"    -> {message.text}"
        elif message.text and event.author != USER:
            yield message.text


if __name__ == "__main__":
    raise SystemExit(main())
