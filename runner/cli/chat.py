"""The command that talks with an agent."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread

from graphagent import SqlCheckpoints
from graphagent.agents.invocation import RunOptions
from graphagent.checkpoint.sql.urls import redacted
from graphagent.engine.result import Interrupt
from graphagent.errors import InterruptedRunError
from graphagent.ids import fresh_id
from graphagent.ledger import Event
from runner.cli.agents import load_agent
from runner.cli.ask import ask_all
from runner.cli.exits import Exit, exit_of
from runner.cli.options import DB_VARIABLE
from runner.cli.output import Output
from runner.cli.talk_options import USER, ChatOptions
from runner.cli.transcript import Transcript, usage_line
from runner.outcome import OUTCOME
from runner.runner import Runner
from runner.sessions import SqlSessions


def chat(options: ChatOptions, output: Output) -> int:
    """Talk with an agent until there is nothing more to say."""
    agent = load_agent(options.target)
    options = replace(options, session=options.session or fresh_id(), app=options.app or agent.name)

    async def talk() -> int:
        async with AsyncExitStack() as stack:
            services: dict[str, Any] = {}
            if options.db:
                services["checkpoints"] = await stack.enter_async_context(SqlCheckpoints(options.db))
                services["sessions"] = SqlSessions(options.db)
                stack.push_async_callback(services["sessions"].aclose)
            runner = await stack.enter_async_context(Runner(str(options.app), agent, **services))
            return await Talk(runner, options, output).go()

    _say_where(options, agent.name, output)
    return anyio.run(talk)


def _say_where(options: ChatOptions, name: str, output: Output) -> None:
    """Say how the talk is gone on with. A url that has a password in it is not repeated."""
    if not options.db:
        output.note(f"note: no --db and no {DB_VARIABLE}: the talk is forgotten when it ends")
        return
    words = ["graphagent", "chat", options.target, "--session", str(options.session)]
    if os.environ.get(DB_VARIABLE) != options.db:
        words += ["--db", options.db if redacted(options.db) == options.db else "<the same as before>"]
    words += [] if options.user == USER else ["--user", options.user]
    words += [] if options.app == name else ["--app", str(options.app)]
    words += [] if options.agent is None else ["--agent", options.agent]
    output.note(f"session {options.session}; go on with it later: {shlex.join(words)}")


class Talk:
    """A conversation: what a person says and answers, run by run."""

    def __init__(self, runner: Runner, options: ChatOptions, output: Output) -> None:
        self._runner = runner
        self._options = options
        self._output = output
        self._transcript = Transcript(output)
        self._given = None if options.message is None else list(options.message)
        self._exit: Exit = Exit.COMPLETED

    async def go(self) -> int:
        """Talk until the end of input, or until a question has no answer; returns the exit status of the last run."""
        while (said := await self._next()) is not None:
            if not said.strip():
                continue
            try:
                last = await self._run(said, None)
            except InterruptedRunError as error:
                self._output.note(f"{error}\nthe question comes first; say the other again afterwards")
                last = await self._run(None, {})
            while last.interrupts:
                answers = await anyio.to_thread.run_sync(self._answers, last, abandon_on_cancel=True)
                if answers is None:
                    return self._exit
                last = await self._run(None, answers)
        return self._exit

    async def _next(self) -> str | None:
        if self._given is not None:
            return self._given.pop(0) if self._given else None
        return await anyio.to_thread.run_sync(_read, abandon_on_cancel=True)

    def _answers(self, last: Event) -> dict[str, Any] | None:
        return ask_all([Interrupt(**one) for one in last.interrupts], self._output)

    async def _run(self, said: str | None, answers: Mapping[str, Any] | None) -> Event:
        """One run, its events printed; returns its completion. Raises what `Runner.run` raises."""
        request = fresh_id()
        options = RunOptions(request_id=request, agent=self._options.agent, answers=answers)
        last = Event()
        problem: Exception | None = None
        async with anyio.create_task_group() as group:
            with suppress(NotImplementedError):  # the event loop of Windows has no such receiver
                await group.start(self._cancel_at_signal, request)
            try:
                async for event in self._runner.run(self._options.user, str(self._options.session), said, options):
                    self._transcript.event(event)
                    last = event
            except Exception as error:  # raised as it is, not in the group's exception group
                problem = error
            group.cancel_scope.cancel()
        self._transcript.end_line()
        if problem is not None:
            raise problem
        if (used := usage_line(last.usage)) and not self._output.as_json:
            self._output.note(used)
        self._exit = exit_of(last.extensions[OUTCOME])
        if self._exit not in (Exit.COMPLETED, Exit.INTERRUPTED):
            self._output.note(f"{last.extensions[OUTCOME]}: {last.error.message if last.error else ''}")
        return last

    async def _cancel_at_signal(
        self, request: str, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """The first signal cancels the answer in an orderly way, the second ends the process."""
        async with anyio.create_task_group() as group:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                task_status.started()
                asked = False
                async for _ in signals:
                    if asked:
                        os._exit(Exit.CANCELLED)  # a thread that doesn't end would hold every other exit up
                    asked = True
                    self._output.note("cancelling; once more ends the process at once")
                    group.start_soon(self._runner.cancel, request)


def _read() -> str | None:
    """The next line; None at the end of input. The prompt is for persons only."""
    if sys.stdin.isatty():
        print("> ", end="", file=sys.stderr, flush=True)
    try:
        return input()
    except EOFError:
        return None
