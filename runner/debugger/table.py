"""The commands of the debugger by name: how each is called, what it says of itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import getdoc
from typing import Any, Literal, NamedTuple

from graphagent.errors import UsageError, alternatives
from runner.debugger.desk import Desk


class Reply(NamedTuple):
    """What a command has to say: as data, and as text for persons."""

    document: Any
    text: str


Call = Callable[[Desk, list[str]], Awaitable[Reply]]
Takes = Literal["", "node", "field", "checkpoint", "breakpoint", "key", "command"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `short`: other names of it. `usage`: its arguments as help shows them. `takes`: what tab completes.
    `again`: an empty line repeats it."""

    name: str
    short: tuple[str, ...]
    usage: str
    call: Call
    takes: Takes = ""
    again: bool = False
    group: str = ""

    @property
    def help(self) -> str:
        """What it does."""
        return getdoc(self.call) or ""


TABLE: dict[str, Command] = {}
"""All commands, by every name."""


def command(name: str, *short: str, usage: str = "", takes: Takes = "", again: bool = False) -> Callable[[Call], Call]:
    """Make an async function `(desk, arguments) -> Reply` a command; its docstring is its help."""

    def made(call: Call) -> Call:
        group = call.__module__.rpartition(".")[2]
        one = Command(name, short, usage, call, takes, again, group)
        TABLE.update(dict.fromkeys((name, *short), one))
        return call

    return made


def find(name: str) -> Command:
    """The command of that name, or the only one that begins so. Raises UsageError."""
    if name in TABLE:
        return TABLE[name]
    begin = {TABLE[known].name for known in TABLE if known.startswith(name)}
    if len(begin) == 1:
        return TABLE[begin.pop()]
    known = sorted(begin) or sorted({one.name for one in TABLE.values()})
    raise UsageError(f"there is no command '{name}': {alternatives(name, known)}; 'help' lists them")


def one_of(arguments: Sequence[str], usage: str) -> str:
    """The only argument. Raises UsageError."""
    if len(arguments) != 1:
        raise UsageError(f"this takes one argument: {usage}")
    return arguments[0]


def listing() -> Mapping[str, list[Command]]:
    """The commands by group, each once."""
    found: dict[str, list[Command]] = {}
    for one in dict.fromkeys(TABLE.values()):
        found.setdefault(one.group, []).append(one)
    return found
