"""Which commands a model may run: lists of programs, checked in every part of a command line.

Pure. Source: spec/services, 3.12. A list is no sandbox: a program that is allowed may start others. What keeps a
program from doing harm is the executor.
"""

from __future__ import annotations

import posixpath
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from graphagent.errors import ToolError, UsageError, alternatives

_DENIED = """
    sh bash zsh ash dash ksh mksh fish pwsh powershell cmd busybox toybox
    eval exec command source . builtin
    xargs env nohup timeout sudo su doas setsid unshare chroot runuser time nice ionice taskset stdbuf strace ltrace
    script flock prlimit chrt setpriv nsenter parallel watch
    trap alias unalias enable hash export unset readonly local declare typeset set shopt
    cd pushd popd printf read getopts let mapfile readarray jobs fc bind complete compgen
"""
BUILT_IN_DENY = frozenset(_DENIED.split())
"""What is never allowed while a policy is active: what starts any other program, or changes what the shell means."""
_SHELL_WORDS = "if then elif else fi for while until do done case esac select function time coproc in [[ ]] { } !"
_RESERVED = frozenset(_SHELL_WORDS.split())
_OPERATORS = ("&&", "||", "|", ";")
_REFUSED = {
    "$": "a variable or a command in a command",
    "`": "a command in a command",
    "<": "a redirection",
    ">": "a redirection",
    "(": "a subshell or a function",
    ")": "a subshell or a function",
    "{": "a block or a list in braces",
    "}": "a block or a list in braces",
    "*": "a glob",
    "?": "a glob",
    "[": "a glob",
    "]": "a glob",
    "!": "a negation",
    "#": "a comment",
    "&": "a program in the background",
}
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEERING = """
    PATH HOME ENV BASH_ENV PROMPT_COMMAND PS4 SHELL SHELLOPTS BASHOPTS IFS CDPATH GLOBIGNORE
    LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT PAGER EDITOR VISUAL BROWSER NODE_OPTIONS RUBYOPT
"""
_SCRUBBED = frozenset(_STEERING.split())
_SCRUBBED_PREFIXES = ("DYLD_", "BASH_FUNC_", "GIT_", "PYTHON", "PERL5")
_EXTERNAL = "env --"
"""Starts a program, and never anything that a shell has built in."""


class Segment(NamedTuple):
    """A program with its arguments. `before`: the operator between it and the one before; empty for the first."""

    before: str
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommandPolicy:
    """Lists of programs. `allow`: only these; `deny`: these never, by their name or as the end of a path, whatever the
    case of letters. In `allow` a name fits only itself, not a path that ends with it; a path fits as it is. With both
    lists empty there is no policy. Raises UsageError for a name that is blank.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all(name.strip() for name in (*self.allow, *self.deny)):
            raise UsageError("CommandPolicy: a command in `allow` or `deny` has no name, so that it would never fit")

    @property
    def active(self) -> bool:
        """True if there is anything in the lists."""
        return bool(self.allow or self.deny)

    def checked(self, command: str) -> str:
        """The command as a shell is to have it: every word quoted, every program started as a program, so that it can
        mean nothing but what was checked. Raises ToolError for a command that is refused."""
        segments = segments_of(command)
        for one in segments:
            self._check(one.argv[0])
        parts = []
        for one in segments:
            parts += [one.before] if one.before else []
            parts += [_EXTERNAL, *map(shlex.quote, one.argv)]
        return " ".join(parts)

    def _check(self, name: str) -> None:
        names = {name.casefold(), posixpath.basename(name).casefold()}
        if names & {one.casefold() for one in self.deny}:
            raise ToolError(f"command '{name}' is denied")
        if names & BUILT_IN_DENY:
            raise ToolError(f"command '{name}' is denied: with a list of commands, what starts others is never allowed")
        if name in _RESERVED or "=" in name or name.startswith("-"):
            raise ToolError(f"command '{name}' is refused: it is a word of the shell, not a program")
        if self.allow and not any(self._fits(name, one) for one in self.allow):
            raise ToolError(f"command '{name}' is not allowed; {alternatives(name, self.allow)}")

    @staticmethod
    def _fits(name: str, entry: str) -> bool:
        if "/" in name or "/" in entry or sys.platform == "linux":
            return name == entry
        return name.casefold() == entry.casefold()


NO_POLICY = CommandPolicy()


def segments_of(command: str) -> list[Segment]:
    """The programs of a command line that are joined by `|`, `&&`, `||` and `;`. Raises ToolError for anything else
    that a shell would see in it."""
    found: list[Segment] = []
    before = ""
    words: list[str] = []
    at = 0
    _no_controls(command)
    while at < len(command):
        if command[at] == " ":
            at += 1
            continue
        operator = _operator(command, at)
        if operator:
            found.append(_segment(before, words))
            before, words, at = operator, [], at + len(operator)
            continue
        word, at = _word(command, at)
        words.append(word)
    found.append(_segment(before, words))
    return found


def _segment(before: str, words: list[str]) -> Segment:
    if not words or not words[0]:
        raise ToolError(f"there is no command {f'after {before!r}' if before else ''}".rstrip())
    return Segment(before, tuple(words))


def _no_controls(command: str) -> None:
    for letter in command:
        if ord(letter) < 32 or ord(letter) == 127 or "\ud800" <= letter <= "\udfff":
            raise ToolError(f"the command has {letter!r} in it; give one line of printable text")


def _operator(command: str, at: int) -> str:
    """The operator that begins here, if one does. Raises ToolError for one that isn't known."""
    found = next((one for one in _OPERATORS if command.startswith(one, at)), "")
    after = command[at + len(found) : at + len(found) + 1]
    if found and after and after in "|&;":
        raise ToolError(f"the command has {found + after!r} in it; programs are joined only by | && || and ;")
    return found


def _word(command: str, at: int) -> tuple[str, int]:
    """The word that begins here, as the shell would understand it, and where it ends."""
    found: list[str] = []
    start = at
    while at < len(command) and command[at] not in " |;":
        letter = command[at]
        if letter == "&" and command.startswith("&&", at):
            break
        if letter in _REFUSED:
            raise ToolError(f"the command has {letter!r} in it, {_REFUSED[letter]}; quote it if it is meant as it is")
        if letter == "~" and at == start:
            raise ToolError("a word begins with '~'; give the path, or quote it if it is meant as it is")
        if letter == "'":
            text, at = _single(command, at + 1)
        elif letter == '"':
            text, at = _double(command, at + 1)
        elif letter == "\\":
            text, at = command[at + 1 : at + 2], at + 2
            if not text:
                raise ToolError("the command ends with a backslash")
        else:
            text, at = letter, at + 1
        found.append(text)
    return "".join(found), at


def _single(command: str, at: int) -> tuple[str, int]:
    end = command.find("'", at)
    if end < 0:
        raise ToolError("the command has a quote without an end")
    return command[at:end], end + 1


def _double(command: str, at: int) -> tuple[str, int]:
    found: list[str] = []
    while at < len(command):
        letter, after = command[at], command[at + 1 : at + 2]
        if letter == '"':
            return "".join(found), at + 1
        if letter in "$`":
            raise ToolError(f"the command has {letter!r} in double quotes; single quotes keep it as it is")
        if letter == "\\" and after and after in '$`"\\':
            letter, at = after, at + 1
        found.append(letter)
        at += 1
    raise ToolError("the command has a quote without an end")


def scrubbed(env: Mapping[str, str]) -> dict[str, str]:
    """An environment without what decides which programs are found, what they load, and what a shell does first."""
    return {name: value for name, value in env.items() if _passes(name)}


def _passes(name: str) -> bool:
    plain = _ENV_NAME.fullmatch(name) is not None
    return plain and name.upper() not in _SCRUBBED and not name.upper().startswith(_SCRUBBED_PREFIXES)
