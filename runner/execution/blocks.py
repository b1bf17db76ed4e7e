"""Blocks of code in a text: found, and run one after the other. Source: spec/services, 4.1 and 4.7."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from graphagent.execution import Collected, ExecutionLimits, Program, Ran, Workspace
from graphagent.ids import fresh_id

LANGUAGES = {"python": "python", "py": "python", "python3": "python", "bash": "bash", "sh": "bash"}
"""The labels of code that can be run, and what runs it. Anything else, and a block without a label, is text."""
_PROGRAMS = {"python": ("python3", "py"), "bash": ("bash", "sh")}
BLOCK_LIMITS = ExecutionLimits(seconds=1.0)
_OPENS = re.compile(r"(`{3,})[ \t]*([^\s`]*)[^`]*")


class CodeBlock(NamedTuple):
    """Code and its language: `python` or `bash`."""

    language: str
    code: str


class BlocksRan(NamedTuple):
    """What blocks said together, each after the one before, with a line for each that failed. `failed`: the numbers of
    those, from 0; `ran`: how each ended; `files`: what they left in `out`."""

    output: str
    failed: tuple[int, ...]
    ran: tuple[Ran, ...]
    files: Collected


class _Fence(NamedTuple):
    """A fenced block: its first and last line in the text, its label, and what is between."""

    first: int
    last: int
    label: str
    code: str


def code_blocks(text: str) -> list[CodeBlock]:
    """The fenced blocks of a text whose label is a language that can be run, in their order."""
    found = (_block(one) for one in _fences(_lines(text)))
    return [one for one in found if one is not None]


def only_block(text: str) -> CodeBlock | None:
    """The block that a text is, if it is nothing else, but for white space around it; None for anything else: prose
    with a block in it is an answer, and not to be run."""
    lines = _lines(text.strip())
    found = _fences(lines)
    if len(found) != 1 or (found[0].first, found[0].last) != (0, len(lines) - 1):
        return None
    return _block(found[0])


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def _fences(lines: Sequence[str]) -> list[_Fence]:
    """The fenced blocks, as CommonMark has them: closed by a line of as many backticks or more. One without an end is
    none."""
    found: list[_Fence] = []
    begun: tuple[int, str, str] | None = None
    for number, line in enumerate(lines):
        if begun is None:
            opens = _OPENS.fullmatch(line)
            begun = None if opens is None else (number, opens[1], opens[2])
            continue
        first, fence, label = begun
        ends = line.rstrip()
        if len(ends) >= len(fence) and not ends.strip("`"):
            code = "".join(f"{one}\n" for one in lines[first + 1 : number])
            found.append(_Fence(first, number, label, code))
            begun = None
    return found


def _block(found: _Fence) -> CodeBlock | None:
    language = LANGUAGES.get(found.label.lower())
    return None if language is None or not found.code.strip() else CodeBlock(language, found.code)


async def run_blocks(
    workspace: Workspace, blocks: Sequence[CodeBlock], limits: ExecutionLimits = BLOCK_LIMITS
) -> BlocksRan:
    """Run blocks, each as a program of its own with these limits. One that fails doesn't keep the next from running.
    Their files stay in the workspace. Raises PathEscape, ExecutorUnavailable."""
    parts: list[str] = []
    failed: list[int] = []
    ran: list[Ran] = []
    for number, block in enumerate(blocks):
        program, ending = _PROGRAMS[block.language]
        path = f"work/.blocks/{fresh_id()}.{ending}"
        await workspace.put(path, block.code.encode("utf-8", "replace"))
        one = await workspace.run(Program((program, path), limits=limits))
        await workspace.remove(path)
        ran.append(one)
        parts.append((one.stdout + one.stderr).decode("utf-8", "replace"))
        if one.exit_code or one.stopped:
            failed.append(number)
            parts.append(f"Error executing code block {number}: {_why(one)}\n")
    return BlocksRan(_joined(parts), tuple(failed), tuple(ran), await workspace.collect(["out/**"]))


def _why(ran: Ran) -> str:
    return f"it reached its limit of {ran.stopped}" if ran.stopped else f"it ended with {ran.exit_code}"


def _joined(parts: Sequence[str]) -> str:
    """Parts, each beginning on a line of its own."""
    found = ""
    for part in parts:
        found += ("\n" if found and part and not found.endswith("\n") else "") + part
    return found
