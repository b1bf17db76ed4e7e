"""Asks a person at the terminal what a run asks."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from graphagent.engine.questions import adapter_of, type_of
from graphagent.engine.result import Interrupt
from runner.cli.output import Output, jsonable
from runner.cli.stored import wanted
from runner.cli.values import answer_value


def can_ask() -> bool:
    """True if a person can be asked: input, output and messages are all at a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()


def ask_all(asked: Sequence[Interrupt], output: Output) -> dict[str, Any] | None:
    """The answer to every question by id; None if the person leaves (Ctrl-C or end of input) before the last one.

    A breakpoint wants no answer, only to go on.
    """
    answers: dict[str, Any] = {}
    try:
        for number, one in enumerate(asked, 1):
            output.note(f"\n[{number}/{len(asked)}] {_heading(one)}")
            if one.kind == "ask":
                answers[one.id] = _answer(one, output)
            else:
                _read("Enter goes on, Ctrl-C leaves the run waiting > ")
    except (EOFError, KeyboardInterrupt):
        output.note("")
        return None
    return answers


def _heading(one: Interrupt) -> str:
    if one.kind != "ask":
        return f"stopped at '{one.key}'"
    if isinstance(one.prompt, dict):
        lines = [_shown(name, value) for name, value in one.prompt.items()]
        return "\n".join([f"{one.key}:", *lines])
    return f"{one.key}: {one.prompt if isinstance(one.prompt, str) else json.dumps(jsonable(one.prompt))}"


def _shown(name: str, value: Any) -> str:
    if isinstance(value, list) and value:
        return "\n".join([f"  {name}:", *(f"    - {item}" for item in value)])
    return f"  {name}: {value}"


def _answer(one: Interrupt, output: Output) -> Any:
    accepted = adapter_of(type_of(one.schema))
    while True:
        text = _read(f"{wanted(one)} > ")
        value = answer_value(text, one)
        try:
            accepted.validate_python(value)
            return value
        except ValidationError as error:
            output.note(f"that doesn't fit: {error.errors(include_url=False)[0]['msg']}")


def _read(prompt: str) -> str:
    print(prompt, end="", file=sys.stderr, flush=True)
    return input()
