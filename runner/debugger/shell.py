"""The prompt of the debugger, and scripts of commands: both call the commands of the table."""

from __future__ import annotations

import cmd
import contextlib
import os
import shlex
import sys
import textwrap
from collections.abc import Iterable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal
from rich.console import Console
from rich.text import Text

from graphagent.errors import GraphAgentError, UsageError
from runner.cli.exits import Exit
from runner.cli.output import Output
from runner.debugger import asking, breaking, changing, looking, moving  # noqa: F401 -- they fill the table
from runner.debugger.desk import Desk
from runner.debugger.table import Command, Reply, command, find, listing

PROMPT = "(ga) "
HISTORY_FILE = Path(os.environ.get("XDG_STATE_HOME", "~/.local/state")).expanduser() / "graphagent" / "debug_history"
HISTORY_LINES = 1000


@command("help", "?", usage="[COMMAND]", takes="command")
async def help_(desk: Desk, arguments: list[str]) -> Reply:
    """List the commands, or explain one."""
    if arguments:
        one = find(arguments[0])
        heading = f"{', '.join((one.name, *one.short))}  {one.usage}".rstrip()
        text = (
            f"{heading}\n{textwrap.fill(' '.join(one.help.split()), 88, initial_indent='  ', subsequent_indent='  ')}"
        )
        return Reply({"command": one.name, "short": one.short, "usage": one.usage, "help": one.help}, text)
    lines = []
    for group, found in listing().items():
        lines.append(f"{group}:")
        for one in found:
            names = f"{one.name} ({one.short[0]})" if one.short else one.name
            lines.append(f"  {names:18} {' '.join(one.help.split()).partition('. ')[0].rstrip('.')}")
    return Reply([one.name for group in listing().values() for one in group], "\n".join(lines))


@command("quit", "q", "exit")
async def quit_(desk: Desk, arguments: list[str]) -> Reply:
    """Leave. A run that is held can be gone on with later, also without the debugger."""
    held = desk.session.live
    await desk.session.leave()
    desk.done = True
    where = f"graphagent debug {shlex.quote(desk.target)} --lineage {shlex.quote(desk.session.lineage)} --db {desk.db}"
    return Reply({"held": held}, f"the run waits where it stands; go on with\n  {where}" if held else "")


class Shell(cmd.Cmd):
    """Commands for one desk, whose session lives on the event loop behind the portal."""

    prompt = PROMPT

    def __init__(self, desk: Desk, portal: BlockingPortal, output: Output) -> None:
        super().__init__(stdout=output.stream)
        self._desk = desk
        self._portal = portal
        self._output = output
        self._console = Console(file=output.stream, highlight=False, soft_wrap=True)
        self._last: str | None = None
        self.failed = False

    # -- ways in ---------------------------------------------------------------------------------

    def script(self, lines: Iterable[str], *, echo: bool = True) -> int:
        """Call commands one after another; the first that can't be carried out ends it with status 2."""
        for line in lines:
            if echo and not self._desk.as_json:
                self._console.print(Text(f"{PROMPT}{line}", "bold"))
            self.onecmd(line)
            if self.failed:
                return Exit.MISUSE
            if self._desk.done:
                break
        return Exit.COMPLETED

    def interactive(self) -> int:
        """Read commands until the end of input."""
        with _remembered():
            while not self._desk.done:
                try:
                    self.cmdloop()
                except KeyboardInterrupt:
                    self._output.note("'quit' leaves; the run can be gone on with later")
        return Exit.COMPLETED

    # -- one command -----------------------------------------------------------------------------

    def onecmd(self, line: str) -> bool:
        """Carry out one line; True at the end."""
        self.failed = False
        if line == "EOF":
            line = "quit"
        try:
            words = shlex.split(line, posix=True)
        except ValueError as error:
            return self._refused(line, UsageError(f"'{line}' can't be read: {error}"))
        if not words:
            return self.emptyline()
        try:
            called = find(words[0])
            reply = self._call(called, _arguments(called, line, words))
        except GraphAgentError as error:
            return self._refused(line, error)
        self._last = line if called.again else None
        if self._desk.as_json:
            self._output.line({"command": line, "result": reply.document}, "")
        elif reply.text:
            self._console.print(_coloured(reply.text))
        return self._desk.done

    def emptyline(self) -> bool:
        """An empty line repeats the last command that moved."""
        return self.onecmd(self._last) if self._last is not None else False

    def _refused(self, line: str, error: GraphAgentError) -> bool:
        self.failed = True
        if self._desk.as_json:
            self._output.line({"command": line, "error": {"type": type(error).__name__, "message": str(error)}}, "")
        else:
            self._console.print(Text(f"! {error}", "red"))
        return False

    def _call(self, called: Command, arguments: list[str]) -> Reply:
        """The reply of a command. Ctrl-C while it runs holds the run at its next step."""
        future = self._portal.start_task_soon(called.call, self._desk, arguments)
        while True:
            try:
                return future.result()
            except KeyboardInterrupt:
                self._output.note("holding the run at its next step; once more leaves it there")
                try:
                    self._portal.call(self._desk.session.halt)
                    return future.result()
                except KeyboardInterrupt:
                    future.cancel()
                    raise
            except CancelledError as error:
                raise UsageError("the command was cut off") from error

    # -- completion ------------------------------------------------------------------------------

    def completenames(self, text: str, *ignored: Any) -> list[str]:
        """Commands that begin so."""
        return sorted({one.name for group in listing().values() for one in group if one.name.startswith(text)})

    def completedefault(self, text: str, line: str, begin: int, end: int) -> list[str]:
        """What may stand at this place of a command."""
        try:
            takes = find(line.split()[0]).takes
            known = self._portal.call(self._known, takes)
        except GraphAgentError:
            return []
        return sorted(name for name in known if name.startswith(text))

    async def _known(self, takes: str) -> Iterable[str]:
        desk = self._desk
        match takes:
            case "node":
                return (await desk.graph()).names
            case "field":
                return (await desk.graph()).schema.names
            case "checkpoint":
                return [one.id for one in await desk.session.timeline(desk.moment.namespace)]
            case "breakpoint":
                return [str(one.id) for one in desk.session.breakpoints]
            case "key":
                return [one.key for one in desk.moment.waits]
            case "command":
                return [one.name for group in listing().values() for one in group]
            case _:
                return []


def _arguments(called: Command, line: str, words: list[str]) -> list[str]:
    """The arguments of a command. Expressions keep their quotation marks."""
    rest = line.strip()[len(words[0]) :].strip()
    if called.name == "print":
        return [rest] if rest else []
    if called.name in ("break", "tbreak") and (" if " in f" {rest}" or rest.startswith("when ")):
        return rest.split()
    return words[1:]


def _coloured(text: str) -> Text:
    """The text with what stands out: why the run stopped, what differs, code of failures."""
    shown = Text(text)
    for pattern, style in (
        (r"(?m)^\* .*$", "bold yellow"),
        (r"(?m)^\s+\+ .*$", "green"),
        (r"(?m)^\s+- .*$", "red"),
        (r"(?m)^  ! .*$", "bold red"),
        (r"(?m)^  next: .*$", "cyan"),
        (r"(?m)^  \(.*\)$", "dim"),
    ):
        shown.highlight_regex(pattern, style)
    return shown


@contextlib.contextmanager
def _remembered() -> Any:
    """Lines typed earlier are there again, where the system has readline."""
    try:
        import readline
    except ImportError:  # Windows
        yield
        return
    readline.set_completer_delims(" \t\n")
    readline.parse_and_bind("tab: complete")
    with contextlib.suppress(OSError):
        HISTORY_FILE.parent.mkdir(parents=True, exist_ok=True)
        readline.read_history_file(HISTORY_FILE)
    try:
        yield
    finally:
        readline.set_history_length(HISTORY_LINES)
        with contextlib.suppress(OSError):
            readline.write_history_file(HISTORY_FILE)


def at_terminal() -> bool:
    """True if a person types."""
    return sys.stdin.isatty()
