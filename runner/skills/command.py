"""From what a model asks to the program that runs: working directory, environment, shell or none.

Pure. Source: spec/services, 2.7 and 3.12.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from graphagent.errors import ToolError, alternatives
from runner.skills.arguments import RunRules

FOLDERS = {"WORKSPACE_DIR": ".", "SKILLS_DIR": "skills", "WORK_DIR": "work", "OUTPUT_DIR": "out"}
"""The directories of a workspace by the variables that name them."""
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))(?=/|$)")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS = frozenset({*FOLDERS, "RUN_DIR", "PATH", "VIRTUAL_ENV", "SKILL_NAME"})
_LOADERS = frozenset({"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "OPENSSL_CONF", "BASH_ENV", "ENV"})
_SHELL_ONLY = frozenset(
    {"HOME", "PROMPT_COMMAND", "PS4", "SHELL", "SHELLOPTS", "BASHOPTS", "IFS", "CDPATH", "GLOBIGNORE"}
)
_SHELL_SIGNS = "\n\r;&|<>"
_STARTER_NAMES = """
    sh bash zsh ash dash ksh mksh fish pwsh powershell cmd busybox toybox eval exec command source . builtin xargs env
    nohup timeout sudo su doas setsid unshare chroot runuser time nice ionice taskset stdbuf strace ltrace script flock
"""
_STARTERS = frozenset(_STARTER_NAMES.split())
"""Programs that start any other, so that a list of what is denied would say nothing (spec/services, 3.12)."""
SHELL = (
    'root="$SKILLS_DIR/$1"; export PATH="$root/.venv/bin:$PATH:$root/bin" VIRTUAL_ENV="$root/.venv" SKILL_NAME="$1"; '
    'if [ -n "$3" ]; then export EDITOR="$WORKSPACE_DIR/$3" VISUAL="$WORKSPACE_DIR/$3"; fi; exec bash -c "$2" skill_run'
)
"""Sets the scene for the command, which is an argument and never a part of this text."""


class Where(NamedTuple):
    """A directory relative to the workspace; `warning`: why it isn't the one that was asked for."""

    cwd: str
    warning: str = ""


def directory_for(asked: str, skill: str) -> Where:
    """Where a command runs: in the skill's directory, or below it, or below a directory of the workspace that is named
    by its variable. What is absolute, or leads elsewhere, is the skill's directory."""
    root = f"skills/{skill}"
    path = asked.strip()
    if not path:
        return Where(root)
    found = inside(path, root)
    if found is None:
        return Where(root, f"cwd {path[:200]!r} leads out of the skill; the command ran in the skill's directory")
    return Where(found)


def inside(path: str, root: str) -> str | None:
    """A path as one relative to the workspace: below a directory that it names, else below `root`; None for one that
    leads out of there."""
    start = root
    if named := _VARIABLE.match(path):
        folder = FOLDERS.get(named[1] or named[2])
        if folder is None:
            return None
        start, path = folder, path[named.end() :].lstrip("/")
    elif path == root or path.startswith(f"{root}/"):
        path = path[len(root) :].lstrip("/")
    if path.startswith(("/", "~")) or "\\" in path or "\0" in path:
        return None
    whole = posixpath.normpath(posixpath.join(start, path)) if path else start
    below = whole == start or start == "." or whole.startswith(f"{start}/")
    return whole if below and not whole.startswith(("../", "/")) and whole != ".." else None


def environment(asked: Mapping[str, str], skill: str, rules: RunRules) -> tuple[dict[str, str], list[str]]:
    """The environment of a command, and warnings for what of it is not passed on."""
    given = {} if rules.env is None else rules.env(skill)
    refused = _OURS | _LOADERS if rules.shell else _OURS | _LOADERS | _SHELL_ONLY
    found: dict[str, str] = {}
    warnings: list[str] = []
    for name, value in [*asked.items(), *given.items()]:
        odd = not _ENV_NAME.fullmatch(name) or "\0" in value
        if odd or name.upper() in refused or name.upper().startswith(("DYLD_", "BASH_FUNC_")):
            warnings.append(f"env {name[:80]!r} is not passed on to the command")
        else:
            found.setdefault(name, value)
    return found, warnings


def shell_argv(command: str, skill: str, editor: str) -> tuple[str, ...]:
    """A command for a shell. `editor`: the program that is $EDITOR, relative to the workspace; empty: none."""
    return ("bash", "-c", SHELL, "skill_run", skill, command, editor)


def plain_argv(command: str, rules: RunRules) -> tuple[str, ...]:
    """A command as one program with arguments, if the lists allow it. Raises ToolError."""
    found = next((sign for sign in _SHELL_SIGNS if sign in command), None)
    if found is not None:
        raise ToolError(f"the command has {found!r} in it; only one program with its arguments can be run here")
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        raise ToolError(f"the command can't be read: {error}") from error
    if not argv or not argv[0]:
        raise ToolError("command is required")
    name = argv[0]
    denied = {one.casefold() for one in rules.deny} | (frozenset() if rules.allow else _STARTERS)
    if {name.casefold(), posixpath.basename(name).casefold()} & denied:
        raise ToolError(f"command '{name}' is denied")
    if rules.allow and name not in rules.allow:
        raise ToolError(f"command '{name}' is not allowed; {alternatives(name, rules.allow)}")
    return argv
